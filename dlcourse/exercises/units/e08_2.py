"""08.2  Backward through all layers."""

from dlcourse.exercises.unit import solution, wrong
from dlcourse.exercises.units.e08_1 import forward_all, networks

parts = "dx", "grads"
hints = """
- Which layer's backward can run first, when all that you have is dy of the whole network?
- reversed(list(layers.items())) goes from the last layer to the first.
- dx of a layer is dy of the layer before it: dy, own = layer.backward(params.get(name, {}), saved[name], dy).
- Put own into grads[name] only where it is not empty, and return dy, grads at the end.
"""


@solution
def backward_all(layers, params, saved, dy):
    """layers {name: layer}, saved {name: what the layer kept}, dy like y -> dx, grads {name: {"W": dW, …}}."""
    grads = {}
    for name, layer in reversed(list(layers.items())):
        dy, own = layer.backward(params.get(name, {}), saved[name], dy)  # dx here is dy of the layer before
        if own:  # the same names as in params: none for a ReLU
            grads[name] = own
    return dy, grads


@wrong
def from_first_to_last(layers, params, saved, dy):
    """You go from the first layer to the last. dy is the gradient of the network's output, so only the last layer can
    use it. Its dx is dy for the layer before it: go through the layers in reverse."""
    return backward_all(dict(reversed(list(layers.items()))), params, saved, dy)


@wrong
def same_dy_for_all(layers, params, saved, dy):
    """Each of your layers gets the dy of the whole network. By the chain rule a layer's dy is the dx of the layer that
    follows it: use the name dy again for what backward returns."""
    grads, dx = {}, dy
    for name, layer in reversed(list(layers.items())):
        dx, own = layer.backward(params.get(name, {}), saved[name], dy)
        if own:
            grads[name] = own
    return dx, grads


@wrong
def with_empty_ones(layers, params, saved, dy):
    """Your gradients have an empty entry for each layer without parameters. Optimizers walk through params and grads
    side by side, so both must have the same names: leave the empty ones out."""
    grads = {}
    for name, layer in reversed(list(layers.items())):
        dy, grads[name] = layer.backward(params.get(name, {}), saved[name], dy)
    return dy, grads


@wrong
def divided_by_samples(layers, params, saved, dy):
    """Your gradients are divided by the number of samples. dy holds that 1/N already, since the loss is a mean. Divide
    nowhere."""
    dx, grads = backward_all(layers, params, saved, dy)
    return dx, {name: {key: d / len(dy) for key, d in own.items()} for name, own in grads.items()}


@wrong
def takes_out(layers, params, saved, dy):
    """You take the arrays out of saved. The notebook does this next, when the caller asks for it. Here nobody did, and
    saved belongs to the caller: look up saved[name]."""
    grads = {}
    for name, layer in reversed(list(layers.items())):
        dy, own = layer.backward(params.get(name, {}), saved.pop(name), dy)
        if own:
            grads[name] = own
    return dy, grads


@wrong
def backward_where_parameters_are(layers, params, saved, dy):
    """You walk through params, so the layers without parameters are passed over. But dy has to go through a ReLU too:
    it sets a part of it to 0. Walk through layers, from the last to the first."""
    return backward_all({name: layers[name] for name in params}, params, saved, dy)


def inputs(rng):
    for what, layers, params, x in networks(rng)[:-1]:
        y, saved = forward_all(layers, params, x, True)
        yield what, (layers, params, saved, rng.standard_normal(y.shape).astype(y.dtype))
