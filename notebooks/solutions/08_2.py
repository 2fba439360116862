def backward_all(layers, params, saved, dy):
    """layers {name: layer}, saved {name: what the layer kept}, dy like y -> dx, grads {name: {"W": dW, …}}."""
    grads = {}
    for name, layer in reversed(list(layers.items())):
        dy, own = layer.backward(params.get(name, {}), saved[name], dy)  # dx here is dy of the layer before
        if own:  # the same names as in params: none for a ReLU
            grads[name] = own
    return dy, grads


check("08.2", backward_all)
