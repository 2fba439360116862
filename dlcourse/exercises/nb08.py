"""Exercises of notebook 08."""

import math
from collections.abc import Callable, Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np

from dlcourse import layers as L
from dlcourse.exercises.exercise import Exercise, Wrong
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


def _keeps_inputs(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved = {}
    for name, layer in layers.items():
        saved[name] = x
        x, _ = layer.forward(params.get(name, {}), x, train=train)
    return x, saved if train else None


def _keeps_always(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved = {}
    for name, layer in layers.items():
        x, saved[name] = layer.forward(params.get(name, {}), x, train=True)
    return x, saved


def _all_have_parameters(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved = {}
    for name, layer in layers.items():
        x, saved[name] = layer.forward(params[name], x, train=train)
    return x, saved if train else None


def _not_handed_on(layers: Layers, params: Tree, x: np.ndarray, train: bool) -> tuple[np.ndarray, Any]:
    saved, y = {}, x
    for name, layer in layers.items():
        y, saved[name] = layer.forward(params.get(name, {}), x, train=train)
    return y, saved if train else None


def _forward_inputs(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    for what, layers, params, x in _networks(rng):
        yield f"{what}, train=True", (layers, params, x, True)
        yield f"{what}, train=False", (layers, params, x, False)


def _forward_big(rng: np.random.Generator) -> tuple:
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


def _from_first_to_last(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    return backward_all(dict(reversed(list(layers.items()))), params, saved, dy)


def _same_dy_for_all(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    grads, dx = {}, dy
    for name, layer in reversed(list(layers.items())):
        dx, own = layer.backward(params.get(name, {}), saved[name], dy)
        if own:
            grads[name] = own
    return dx, grads


def _with_empty_ones(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    grads = {}
    for name, layer in reversed(list(layers.items())):
        dy, grads[name] = layer.backward(params.get(name, {}), saved[name], dy)
    return dy, grads


def _divided_by_samples(layers: Layers, params: Tree, saved: Tree, dy: np.ndarray) -> tuple[np.ndarray, Tree]:
    dx, grads = backward_all(layers, params, saved, dy)
    return dx, {name: {key: d / len(dy) for key, d in own.items()} for name, own in grads.items()}


def _backward_inputs(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    for what, layers, params, x in _networks(rng):
        y, saved = forward_all(layers, params, x, True)
        yield what, (layers, params, saved, rng.standard_normal(y.shape).astype(y.dtype))


# 08.3


def he_std(shape: tuple[int, ...]) -> float:
    return math.sqrt(2 / math.prod(shape[:-1]))


def _weights(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "affine, 2 inputs, 3 outputs", ((2, 3),)
    yield "affine, square", ((256, 256),)
    yield "one input", ((1, 5),)
    yield "convolution 3 × 3, 3 channels, 32 filters", ((3, 3, 3, 32),)
    yield "convolution 5 × 1, 2 channels, 7 filters", ((5, 1, 2, 7),)
    yield "the large affine layer of the story", ((4096, 512),)


# 08.4


def saved_bytes(widths: tuple[int, ...], batch: int, itemsize: int) -> int:
    return batch * itemsize * sum(widths[:-1])


def _chains(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "one layer from 3 to 2, one sample", ((3, 2), 1, 4)
    yield "digits: 64, 128, 10", ((64, 128, 10), 100, 4)
    yield "16 layers of 256, batch 1,024", ((256,) * 17, 1024, 4)
    yield "five widths, float64", ((7, 5, 3, 5, 2), 6, 8)


# 08.5


def _counts(layers: Layers, in_shape: tuple[int, ...], rule: Callable[..., int], follow: bool = True) -> dict[str, int]:
    """rule(kernel cells, channels or features in, out) for each layer; they follow from the layers before it."""
    counts, shape = {}, in_shape
    for name, layer in layers.items():
        if hasattr(layer, "filters"):
            counts[name] = rule(math.prod(layer.kernel_size), shape[-1], layer.filters)
        else:
            counts[name] = rule(1, shape[-1], layer.units) if hasattr(layer, "units") else 0
        shape = layer.out_shape(shape) if follow else shape
    return counts


def _with_biases(kernel: int, c: int, out: int) -> int:
    return (kernel * c + 1) * out


def count_all(layers: Layers, in_shape: tuple[int, ...]) -> dict[str, int]:
    return _counts(layers, in_shape, _with_biases)


def _to_count(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def named(*layers: Any) -> Layers:
        return dict(Sequential(layers).named())

    yield "one affine layer, 5 to 3", (named(L.Affine(3)), (5,))
    yield "one convolution 3 × 3, grey pictures", (named(L.Conv2D(4, 3)), (6, 6, 1))
    yield "digits: flatten, 128, 10", (named(L.Flatten(), L.Affine(128), L.ReLU(), L.Affine(10)), (8, 8, 1))
    no_padding = named(L.Conv2D(8, (3, 2)), L.ReLU(), L.MaxPool2D(2), L.Conv2D(5, 3), L.Flatten(), L.Affine(2))
    yield "a window of 3 × 2, no padding, odd sizes", (no_padding, (11, 12, 3))


EXERCISES = [
    Exercise(
        id="08.1",
        title="Forward through all layers",
        reference=forward_all,
        inputs=_forward_inputs,
        hints=(
            "One loop over layers.items(). What does the second layer get as its x?",
            "layer.forward(own, x, train=train) gives y and what the layer keeps. y is the x of the next layer.",
            "A ReLU has no entry in params: params.get(name, {}) gives an empty dictionary for it.",
            "Fill saved[name] = kept in the loop, and at the end return x, saved if train else None.",
        ),
        wrong=(
            Wrong(
                _keeps_inputs,
                "You keep the input of each layer. A ReLU keeps its output, a max pooling an index: each layer knows what "
                "its backward needs, and hands it out as the second thing that forward returns. Keep that.",
            ),
            Wrong(
                _keeps_always,
                "You keep arrays although train is False. Nobody will call backward then, so every array that is kept is "
                "memory for nothing: pass train on to the layers, and return None in place of saved.",
            ),
            Wrong(
                _all_have_parameters,
                "You look up params[name] for every layer. ReLU and Flatten have no parameters and no entry. "
                "params.get(name, {}) gives an empty dictionary for them.",
            ),
            Wrong(
                _not_handed_on,
                "Each of your layers gets the same x. A layer's x is what the layer before it gave: use the name x again "
                "for its output.",
            ),
        ),
        big=_forward_big,
        costs=(
            (1.5, "you hold arrays of layers that are done, although train is False; use one name for what goes on"),
        ),
        parts=("y", "saved"),
    ),
    Exercise(
        id="08.2",
        title="Backward through all layers",
        reference=backward_all,
        inputs=_backward_inputs,
        hints=(
            "Which layer's backward can run first, when all that you have is dy of the whole network?",
            "reversed(list(layers.items())) goes from the last layer to the first.",
            "dx of a layer is dy of the layer before it: dy, own = layer.backward(params.get(name, {}), saved[name], dy).",
            "Put own into grads[name] only where it is not empty, and return dy, grads at the end.",
        ),
        wrong=(
            Wrong(
                _from_first_to_last,
                "You go from the first layer to the last. dy is the gradient of the network's output, so only the last layer "
                "can use it. Its dx is dy for the layer before it: go through the layers in reverse.",
            ),
            Wrong(
                _same_dy_for_all,
                "Each of your layers gets the dy of the whole network. By the chain rule a layer's dy is the dx of the layer "
                "that follows it: use the name dy again for what backward returns.",
            ),
            Wrong(
                _with_empty_ones,
                "Your gradients have an empty entry for each layer without parameters. Optimizers walk through params and "
                "grads side by side, so both must have the same names: leave the empty ones out.",
            ),
            Wrong(
                _divided_by_samples,
                "Your gradients are divided by the number of samples. dy holds that 1/N already, since the loss is a mean. "
                "Divide nowhere.",
            ),
        ),
        parts=("dx", "grads"),
    ),
    Exercise(
        id="08.3",
        title="The start of He",
        reference=he_std,
        inputs=_weights,
        hints=(
            "fan_in is how many products are added up to make one output. How many is that for W of the shape (256, 10)?",
            "One output pixel of a convolution adds up kh · kw · C_in products: all axes of W but the last.",
            "The standard deviation is the square root of 2 / fan_in; math.prod(shape[:-1]) is fan_in.",
        ),
        wrong=(
            Wrong(
                lambda shape: 2 / math.prod(shape[:-1]),
                "This is the variance, 2 / fan_in. The standard deviation is its square root.",
            ),
            Wrong(
                lambda shape: math.sqrt(1 / math.prod(shape[:-1])),
                "You have 1 / fan_in. That keeps the size where all numbers pass. ReLU sets half of them to 0, and the 2 "
                "makes that good.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / shape[-2]),
                "For a convolution you count the channels only. One output adds up kh · kw · C_in products: the window "
                "belongs to fan_in. With 3 × 3 your numbers would grow by a factor of 3 in each layer.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / (math.prod(shape[:-2]) * shape[-1])),
                "You take fan_out, to how many outputs one input goes. That keeps the size of the gradients on the way back. "
                "The exercise asks for the way forward: how many products make one output.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / shape[-1]),
                "You divide by the last axis, the number of outputs. What matters is how many products are added up for one "
                "of them: all axes but the last.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / shape[0]),
                "You divide by the first axis. For (D_in, D_out) that is right, but for (kh, kw, C_in, C_out) it is the "
                "height of the window. Take the product of all axes but the last.",
            ),
            Wrong(
                lambda shape: math.sqrt(2 / (math.prod(shape[:-2]) * sum(shape[-2:]))),
                "This is the start of Glorot and Bengio, 2 / (fan_in + fan_out). It is made for tanh. He's counts fan_in only.",
            ),
        ),
    ),
    Exercise(
        id="08.4",
        title="What a chain keeps",
        reference=saved_bytes,
        inputs=_chains,
        hints=(
            "An affine layer keeps its input. A ReLU keeps its output. Write down who keeps what for the widths 64, 128, 10.",
            "The output of a ReLU and the input of the affine layer after it are one array: count it once.",
            "Of the widths 64, 128, 10 two arrays are kept: x, with 64 numbers a sample, and the output of the ReLU, with 128.",
        ),
        wrong=(
            Wrong(
                lambda w, n, item: n * item * (w[0] + 2 * sum(w[1:-1])),
                "You count the arrays between two layers twice, once for the ReLU and once for the affine layer. Both keep "
                "the same array in memory. It has two names and one strip of bytes.",
            ),
            Wrong(
                lambda w, n, item: n * item * sum(w),
                "You count the output of the last affine layer too. Its backward needs its input and not its output, and no "
                "ReLU follows. The loss gets it, and it is not kept for backward.",
            ),
            Wrong(
                lambda w, n, item: n * item * sum(w[1:-1]),
                "You left out the input of the first layer. Its dW is x transposed times dy, so x has to stay until the very "
                "end of backward.",
            ),
            Wrong(
                lambda w, n, item: item * sum(w[:-1]),
                "This is what one sample keeps. A batch keeps as many times that as it has samples.",
            ),
            Wrong(
                lambda w, n, item: item * sum((d + 1) * u for d, u in pairwise(w)),
                "These are the bytes of the parameters. They do not depend on the batch. What is kept for backward are the "
                "arrays that go through the network.",
            ),
        ),
    ),
    Exercise(
        id="08.5",
        title="The auditor",
        reference=count_all,
        inputs=_to_count,
        hints=(
            "Two things go along the chain: the shape, which layer.out_shape(shape) gives, and the name.",
            'hasattr(layer, "filters") finds a convolution, hasattr(layer, "units") an affine layer; all others have 0.',
            "A convolution has kh · kw · C weights for each filter and one bias for each filter. C is shape[-1].",
            "An affine layer has (shape[-1] + 1) · units. The 1 is the bias: one for each output.",
        ),
        wrong=(
            Wrong(
                lambda layers, shape: _counts(layers, shape, lambda kernel, c, out: kernel * c * (out + 1)),
                "You have a bias for each input. A bias is added to an output, so there are as many as there are outputs: "
                "(inputs + 1) · outputs, and not inputs · (outputs + 1).",
            ),
            Wrong(
                lambda layers, shape: _counts(layers, shape, lambda kernel, c, out: kernel * c * out),
                "You left out the bias: one number more for each filter or unit.",
            ),
            Wrong(
                lambda layers, shape: _counts(layers, shape, lambda kernel, c, out: (math.isqrt(kernel) * c + 1) * out),
                "You count one side of the window. A filter has a weight for each cell of it: height times width.",
            ),
            Wrong(
                lambda layers, shape: _counts(layers, shape, lambda k, c, out: ((k if k > 1 else c) + 1) * out),
                "Your filters have one window for all channels together. A filter has a window for each channel of its "
                "input: kh · kw · C weights.",
            ),
            Wrong(
                lambda layers, shape: _counts(layers, shape, _with_biases, follow=False),
                "You give each layer the shape of the network's input. A layer sees what the layer before it gives: "
                "shape = layer.out_shape(shape).",
            ),
            Wrong(
                lambda layers, shape: {name: n for name, n in count_all(layers, shape).items() if n},
                "Layers without parameters are missing. An auditor lists every layer, with 0 where there is nothing to learn.",
            ),
        ),
    ),
]
