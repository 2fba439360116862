"""Right and wrong answers to the exercises of notebook 08, and the inputs that they are tried on."""

import math
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from dlcourse import layers as L
from dlcourse.model import Sequential

Layers = Mapping[str, Any]
Tree = dict[str, Any]


def _network(
    rng: np.random.Generator, in_shape: tuple[int, ...], layers: list[Any], dtype: Any = np.float64
) -> tuple[Layers, Tree]:
    """The layers by name, and parameters with biases that are not 0."""
    model = Sequential(layers)
    params = model.init(in_shape, rng, dtype)
    for own in params.values():
        own["b"] += rng.standard_normal(own["b"].shape).astype(dtype)
    return dict(model.named()), params


def _networks(rng: np.random.Generator) -> Iterator[tuple[str, Layers, Tree, np.ndarray]]:
    layers, params = _network(rng, (2,), [L.Affine(3)])
    yield "one affine layer, 2 samples", layers, params, rng.standard_normal((2, 2))
    layers, params = _network(rng, (3,), [L.ReLU()])
    yield "a ReLU alone, which has no parameters", layers, params, rng.standard_normal((1, 3))
    layers, params = _network(rng, (4,), [L.Affine(4), L.ReLU(), L.Affine(4), L.Tanh()], np.float32)
    yield "four layers of the same width, float32", layers, params, rng.standard_normal((4, 4)).astype(np.float32)
    layers, params = _network(rng, (5,), [L.Affine(3), L.Sigmoid(), L.Affine(2)])
    yield "widths 5, 3, 2, numbers up to ±1000", layers, params, rng.uniform(-1000, 1000, (3, 5))
    layers, params = _network(rng, (4, 4, 1), [L.Conv2D(2, 3, padding=1), L.ReLU(), L.Flatten(), L.Affine(3)])
    yield "a convolution first, one picture", layers, params, rng.standard_normal((1, 4, 4, 1))


# 08.1


def forward_all(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved = {}
    for name, layer in layers.items():
        x, kept = layer.forward(params.get(name, {}), x, train=train)
        if train:
            saved[name] = kept
    return x, saved if train else None


def keeps_inputs(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved = {}
    for name, layer in layers.items():
        saved[name] = x
        x, _ = layer.forward(params.get(name, {}), x, train=train)
    return x, saved if train else None


def keeps_always(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved = {}
    for name, layer in layers.items():
        x, saved[name] = layer.forward(params.get(name, {}), x, train=True)
    return x, saved


def all_have_parameters(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved = {}
    for name, layer in layers.items():
        x, saved[name] = layer.forward(params[name], x, train=train)
    return x, saved if train else None


def not_handed_on(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved, y = {}, x
    for name, layer in layers.items():
        y, saved[name] = layer.forward(params.get(name, {}), x, train=train)
    return y, saved if train else None


def nones_for_nothing(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved = {}
    for name, layer in layers.items():
        x, saved[name] = layer.forward(params.get(name, {}), x, train=train)
    return x, saved


def forward_where_parameters_are(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    with_parameters = {name: layers[name] for name in params}
    return forward_all(with_parameters, params, x, train)


def forward_inputs(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    for what, layers, params, x in _networks(rng):
        yield f"{what}, train=True", (layers, params, x, True)
        yield f"{what}, train=False", (layers, params, x, False)


def forward_big(rng: np.random.Generator) -> tuple:
    layers, params = _network(rng, (256,), [layer for _ in range(6) for layer in (L.Affine(256), L.ReLU())], np.float32)
    return layers, params, rng.standard_normal((1024, 256), dtype=np.float32), False


# 08.2


def backward_all(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    grads = {}
    for name, layer in reversed(list(layers.items())):
        dy, own = layer.backward(params.get(name, {}), saved[name], dy)
        if own:
            grads[name] = own
    return dy, grads


def from_first_to_last(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    return backward_all(dict(reversed(list(layers.items()))), params, saved, dy)


def same_dy_for_all(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    grads, dx = {}, dy
    for name, layer in reversed(list(layers.items())):
        dx, own = layer.backward(params.get(name, {}), saved[name], dy)
        if own:
            grads[name] = own
    return dx, grads


def with_empty_ones(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    grads = {}
    for name, layer in reversed(list(layers.items())):
        dy, grads[name] = layer.backward(params.get(name, {}), saved[name], dy)
    return dy, grads


def divided_by_samples(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    dx, grads = backward_all(layers, params, saved, dy)
    return dx, {name: {key: d / len(dy) for key, d in own.items()} for name, own in grads.items()}


def takes_out(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    grads = {}
    for name, layer in reversed(list(layers.items())):
        dy, own = layer.backward(params.get(name, {}), saved.pop(name), dy)
        if own:
            grads[name] = own
    return dy, grads


def backward_where_parameters_are(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    return backward_all({name: layers[name] for name in params}, params, saved, dy)


def backward_inputs(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    for what, layers, params, x in _networks(rng):
        y, saved = forward_all(layers, params, x, True)
        yield what, (layers, params, saved, rng.standard_normal(y.shape).astype(y.dtype))


# 08.3


def he_std(shape: tuple[int, ...]) -> float:
    return math.sqrt(2 / math.prod(shape[:-1]))


def weights(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "affine, 2 inputs, 3 outputs", ((2, 3),)
    yield "affine, square", ((256, 256),)
    yield "one input", ((1, 5),)
    yield "convolution 3 × 3, 3 channels, 32 filters", ((3, 3, 3, 32),)
    yield "convolution 5 × 1, 2 channels, 7 filters", ((5, 1, 2, 7),)
    yield "the large affine layer of the story", ((4096, 512),)


# 08.4


def saved_bytes(widths: tuple[int, ...], batch: int, itemsize: int) -> int:
    return batch * itemsize * sum(widths[:-1])


def chains(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "one layer from 3 to 2, one sample", ((3, 2), 1, 4)
    yield "digits: 64, 128, 10", ((64, 128, 10), 100, 4)
    yield "16 layers of 256, batch 1,024", ((256,) * 17, 1024, 4)
    yield "five widths, float64", ((7, 5, 3, 5, 2), 6, 8)


# 08.5


def counts_by(
    layers: Layers, in_shape: tuple[int, ...], rule: Callable[..., int], follow: bool = True
) -> dict[str, int]:
    """rule(kernel cells, channels or features in, out) for each layer; they follow from the layers before it."""
    counts, shape = {}, in_shape
    for name, layer in layers.items():
        if hasattr(layer, "filters"):
            counts[name] = rule(math.prod(layer.kernel_size), shape[-1], layer.filters)
        else:
            counts[name] = rule(1, shape[-1], layer.units) if hasattr(layer, "units") else 0
        shape = layer.out_shape(shape) if follow else shape
    return counts


def with_biases(kernel: int, c: int, out: int) -> int:
    return (kernel * c + 1) * out


def count_all(layers: Layers, in_shape: tuple[int, ...]) -> dict[str, int]:
    return counts_by(layers, in_shape, with_biases)


def after_the_layer(layers: Layers, in_shape: tuple[int, ...]) -> dict[str, int]:
    """Each layer counted with the shape of its own output."""
    counts = {}
    for name, layer in layers.items():
        in_shape = layer.out_shape(in_shape)
        counts[name] = count_all({name: layer}, in_shape)[name] if hasattr(layer, "units") else 0
        if hasattr(layer, "filters"):
            counts[name] = with_biases(math.prod(layer.kernel_size), in_shape[-1], layer.filters)
    return counts


def rows_for_channels(layers: Layers, in_shape: tuple[int, ...]) -> dict[str, int]:
    """The first axis of a shape, which is the height of a picture, taken for the channels."""
    counts = {}
    for name, layer in layers.items():
        cells = math.prod(layer.kernel_size) if hasattr(layer, "filters") else 1
        out = getattr(layer, "filters", getattr(layer, "units", 0))
        counts[name] = with_biases(cells, in_shape[0], out)
        in_shape = layer.out_shape(in_shape)
    return counts


def to_count(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def named(*layers: Any) -> Layers:
        return dict(Sequential(layers).named())

    yield "one affine layer, 5 to 3", (named(L.Affine(3)), (5,))
    yield "one convolution 3 × 3, grey pictures", (named(L.Conv2D(4, 3)), (6, 6, 1))
    yield "digits: flatten, 128, 10", (named(L.Flatten(), L.Affine(128), L.ReLU(), L.Affine(10)), (8, 8, 1))
    no_padding = named(L.Conv2D(8, (3, 2)), L.ReLU(), L.MaxPool2D(2), L.Conv2D(5, 3), L.Flatten(), L.Affine(2))
    yield "a window of 3 × 2, no padding, odd sizes", (no_padding, (11, 12, 3))
