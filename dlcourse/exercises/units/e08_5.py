"""08.5  The auditor."""

import math

from dlcourse import layers as L
from dlcourse.exercises.unit import solution, wrong
from dlcourse.model import Sequential

hints = """
- Two things go along the chain: the shape, which layer.out_shape(shape) gives, and the name.
- hasattr(layer, "filters") finds a convolution, hasattr(layer, "units") an affine layer; all others have 0.
- A convolution has kh · kw · C weights for each filter and one bias for each filter. C is shape[-1].
- An affine layer has (shape[-1] + 1) · units. The 1 is the bias: one for each output.
"""


@solution
def count_all(layers, in_shape):
    """layers {name: layer}, in_shape without the batch -> {name: how many numbers the layer learns}, 0 for none."""
    counts, shape = {}, in_shape  # the shape goes along: each layer sees what the one before it gives
    for name, layer in layers.items():
        if hasattr(layer, "filters"):
            counts[name] = (math.prod(layer.kernel_size) * shape[-1] + 1) * layer.filters
        elif hasattr(layer, "units"):
            counts[name] = (shape[-1] + 1) * layer.units
        else:
            counts[name] = 0
        shape = layer.out_shape(shape)
    return counts


def counts_by(layers, in_shape, rule, follow=True):
    """rule(kernel cells, channels or features in, out) for each layer; they follow from the layers before it."""
    counts, shape = {}, in_shape
    for name, layer in layers.items():
        if hasattr(layer, "filters"):
            counts[name] = rule(math.prod(layer.kernel_size), shape[-1], layer.filters)
        else:
            counts[name] = rule(1, shape[-1], layer.units) if hasattr(layer, "units") else 0
        shape = layer.out_shape(shape) if follow else shape
    return counts


def with_biases(kernel, c, out):
    return (kernel * c + 1) * out


@wrong
def wrong_1(layers, shape):
    """You have a bias for each input. A bias is added to an output, so there are as many as there are outputs: (inputs
    + 1) · outputs, and not inputs · (outputs + 1)."""
    return counts_by(layers, shape, lambda kernel, c, out: kernel * c * (out + 1))


@wrong
def wrong_2(layers, shape):
    """You left out the bias: one number more for each filter or unit."""
    return counts_by(layers, shape, lambda kernel, c, out: kernel * c * out)


@wrong
def wrong_3(layers, shape):
    """You count one side of the window. A filter has a weight for each cell of it: height times width."""
    return counts_by(layers, shape, lambda kernel, c, out: (math.isqrt(kernel) * c + 1) * out)


@wrong
def wrong_4(layers, shape):
    """Your filters have one window for all channels together. A filter has a window for each channel of its input: kh ·
    kw · C weights."""
    return counts_by(layers, shape, lambda k, c, out: ((k if k > 1 else c) + 1) * out)


@wrong
def wrong_5(layers, shape):
    """You give each layer the shape of the network's input. A layer sees what the layer before it gives: shape =
    layer.out_shape(shape)."""
    return counts_by(layers, shape, with_biases, follow=False)


@wrong
def after_the_layer(layers, in_shape):
    """You count each layer with the shape of its own output. Its weights meet its input: count first, and take shape =
    layer.out_shape(shape) after that."""
    counts = {}
    for name, layer in layers.items():
        in_shape = layer.out_shape(in_shape)
        counts[name] = count_all({name: layer}, in_shape)[name] if hasattr(layer, "units") else 0
        if hasattr(layer, "filters"):
            counts[name] = with_biases(math.prod(layer.kernel_size), in_shape[-1], layer.filters)
    return counts


def rows_for_channels(layers, in_shape):
    counts = {}
    for name, layer in layers.items():
        cells = math.prod(layer.kernel_size) if hasattr(layer, "filters") else 1
        out = getattr(layer, "filters", getattr(layer, "units", 0))
        counts[name] = with_biases(cells, in_shape[0], out)
        in_shape = layer.out_shape(in_shape)
    return counts


also_wrong = (
    rows_for_channels,
    lambda layers, shape: {name: n for name, n in count_all(layers, shape).items() if n},
)


def inputs(rng):
    def named(*layers):
        return dict(Sequential(layers).named())

    yield "one affine layer, 5 to 3", (named(L.Affine(3)), (5,))
    yield "one convolution 3 × 3, grey pictures", (named(L.Conv2D(4, 3)), (6, 6, 1))
    yield "digits: flatten, 128, 10", (named(L.Flatten(), L.Affine(128), L.ReLU(), L.Affine(10)), (8, 8, 1))
    no_padding = named(L.Conv2D(8, (3, 2)), L.ReLU(), L.MaxPool2D(2), L.Conv2D(5, 3), L.Flatten(), L.Affine(2))
    yield "a window of 3 × 2, no padding, odd sizes", (no_padding, (11, 12, 3))
