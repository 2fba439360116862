"""08.1  Forward through all layers."""

import numpy as np

from dlcourse import layers as L
from dlcourse.exercises.unit import solution, wrong
from dlcourse.model import Sequential

parts = "y", "saved"
hints = """
- One loop over layers.items(). What does the second layer get as its x?
- layer.forward(own, x, train=train) gives y and what the layer keeps. y is the x of the next layer.
- A ReLU has no entry in params: params.get(name, {}) gives an empty dictionary for it.
- Fill saved[name] = kept in the loop, and at the end return x, saved if train else None.
"""
costs = ((1.5, "arrays of layers that are done, held although train is False; use one name for what goes on"),)


@solution
def forward_all(layers, params, x, train):
    """layers {name: layer}, params {name: {"W": …}}, x (N, …), train True or False -> y, saved or None."""
    saved = {}
    for name, layer in layers.items():
        own = params.get(name, {})  # a ReLU has no parameters
        x, kept = layer.forward(own, x, train=train)  # the same name again: what came before can go
        if train:
            saved[name] = kept
    return x, saved if train else None


def network(rng, in_shape, layers, dtype=np.float64):
    """The layers by name, and parameters with biases that are not 0."""
    model = Sequential(layers)
    params = model.init(in_shape, rng, dtype)
    for own in params.values():
        for array in own.values():
            if isinstance(array, np.ndarray):
                array += rng.standard_normal(array.shape).astype(dtype)
    return dict(model.named()), params


def networks(rng):
    made = []
    for what, in_shape, count, layers in (
        ("one affine layer, 2 samples", (2,), 2, [L.Affine(3)]),
        ("a ReLU alone, which has no parameters", (3,), 1, [L.ReLU()]),
        ("four layers of the same width, float32", (4,), 4, [L.Affine(4), L.ReLU(), L.Affine(4), L.Tanh()]),
        ("widths 5, 3, 2, numbers up to ±1000", (5,), 3, [L.Affine(3), L.Sigmoid(), L.Affine(2)]),
        ("a convolution first", (4, 4, 1), 1, [L.Conv2D(2, 3, padding=1), L.ReLU(), L.Flatten(), L.Affine(3)]),
        ("a BatchNorm, which is another in training", (3,), 4, [L.Affine(2), L.BatchNorm(), L.ReLU()]),
    ):
        dtype = np.float32 if "float32" in what else np.float64
        x = (1000 if "1000" in what else 1) * rng.uniform(-1, 1, (count, *in_shape))
        made.append((what, *network(rng, in_shape, layers, dtype), x.astype(dtype)))
    return made


@wrong
def keeps_inputs(layers, params, x, train):
    """You keep the input of each layer. A ReLU keeps its output, a max pooling an index: each layer knows what its
    backward needs, and hands it out as the second thing that forward returns. Keep that."""
    saved = {}
    for name, layer in layers.items():
        saved[name] = x
        x, _ = layer.forward(params.get(name, {}), x, train=train)
    return x, saved if train else None


@wrong
def keeps_always(layers, params, x, train):
    """You keep arrays although train is False. Nobody will call backward then, so every array that is kept is memory
    for nothing: pass train on to the layers, and return None in place of saved."""
    saved = {}
    for name, layer in layers.items():
        x, saved[name] = layer.forward(params.get(name, {}), x, train=True)
    return x, saved


@wrong
def all_have_parameters(layers, params, x, train):
    """You look up params[name] for every layer. ReLU and Flatten have no parameters and no entry. params.get(name, {})
    gives an empty dictionary for them."""
    saved = {}
    for name, layer in layers.items():
        x, saved[name] = layer.forward(params[name], x, train=train)
    return x, saved if train else None


@wrong
def not_handed_on(layers, params, x, train):
    """Each of your layers gets the same x. A layer's x is what the layer before it gave: use the name x again for its
    output."""
    saved, y = {}, x
    for name, layer in layers.items():
        y, saved[name] = layer.forward(params.get(name, {}), x, train=train)
    return y, saved if train else None


@wrong
def forward_where_parameters_are(layers, params, x, train):
    """You walk through params, so the layers without parameters, ReLU and Flatten, are passed over. Walk through
    layers, and look the parameters up."""
    with_parameters = {name: layers[name] for name in params}
    return forward_all(with_parameters, params, x, train)


@wrong
def always_in_training(layers, params, x, train):
    """You pass train=True to every layer and throw away what they keep. They made it all the same; and BatchNorm or
    dropout give another y in training. Pass on train as it is."""
    y, saved = forward_all(layers, params, x, True)
    return y, saved if train else None


also_wrong = (lambda layers, *a: ((both := forward_all(layers, *a))[0], both[1] or dict.fromkeys(layers)),)


def inputs(rng):
    for what, layers, params, x in networks(rng):
        yield f"{what}, train=True", (layers, params, x, True)
        yield f"{what}, train=False", (layers, params, x, False)


def large(rng):
    layers, params = network(rng, (256,), [layer for _ in range(6) for layer in (L.Affine(256), L.ReLU())], np.float32)
    return layers, params, rng.standard_normal((1024, 256), dtype=np.float32), False
