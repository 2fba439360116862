def forward_all(layers, params, x, train):
    """layers {name: layer}, params {name: {"W": …}}, x (N, …), train True or False -> y, saved or None."""
    saved = {}
    for name, layer in layers.items():
        own = params.get(name, {})  # a ReLU has no parameters
        x, kept = layer.forward(own, x, train=train)  # the same name again: what came before can go
        if train:
            saved[name] = kept
    return x, saved if train else None


check("08.1", forward_all)
