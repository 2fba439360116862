"""What several test files share: reference loops, the list of layers, and backward passes that are wrong on purpose."""

from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, NamedTuple

import numpy as np

from dlcourse import layers as L
from dlcourse import tree
from dlcourse.model import Sequential

# Reference: six loops or more, one number at a time.


def conv_by_loops(x, W, b, stride=(1, 1), padding=(0, 0), dilation=(1, 1)):
    (n, height, width, _), (kh, kw, channels, filters) = x.shape, W.shape
    places = [
        (size + 2 * p - d * (k - 1) - 1) // s + 1
        for size, k, s, p, d in zip((height, width), (kh, kw), stride, padding, dilation, strict=True)
    ]
    y = np.zeros((n, *places, filters))
    for image, row, column, f in np.ndindex(y.shape):
        total = b[f]
        for i, j, c in np.ndindex(kh, kw, channels):
            h = row * stride[0] + i * dilation[0] - padding[0]
            w = column * stride[1] + j * dilation[1] - padding[1]
            if 0 <= h < height and 0 <= w < width:
                total += x[image, h, w, c] * W[i, j, c, f]
        y[image, row, column, f] = total
    return y


def pool_by_loops(reduce, x, kernel, stride, padding):
    """`reduce` gets the numbers of a window that are in the image, and how many taps the window has."""
    n, height, width, channels = x.shape
    places = [
        (size + 2 * p - k) // s + 1 for size, k, s, p in zip((height, width), kernel, stride, padding, strict=True)
    ]
    y = np.zeros((n, *places, channels))
    for image, row, column, c in np.ndindex(y.shape):
        inside = []
        for i, j in np.ndindex(*kernel):
            h, w = row * stride[0] + i - padding[0], column * stride[1] + j - padding[1]
            if 0 <= h < height and 0 <= w < width:
                inside.append(x[image, h, w, c])
        y[image, row, column, c] = reduce(inside, kernel[0] * kernel[1])
    return y


def channels_last(array) -> np.ndarray:
    """Images as PyTorch prints them, (N, C, H, W), in the order of this package."""
    return np.ascontiguousarray(np.array(array).transpose(0, 2, 3, 1))


# Every layer, for the tests that hold for all of them. A new layer is one more line here.


class Case(NamedTuple):
    name: str
    layer: Any
    small: tuple[int, ...]  # for gradients
    large: tuple[int, ...]  # for bytes: a megabyte or so in a batch of 7, so that a forgotten array stands out


CASES = (
    Case("affine", L.Affine(5), (4,), (4801,)),
    Case("affine_sequence", L.Affine(3), (2, 4), (61, 301)),
    Case("relu", L.ReLU(), (7,), (41, 37, 9)),
    Case("leaky_relu", L.LeakyReLU(0.2), (7,), (41, 37, 9)),
    Case("sigmoid", L.Sigmoid(), (7,), (41, 37, 9)),
    Case("tanh", L.Tanh(), (7,), (41, 37, 9)),
    Case("gelu", L.GELU(), (7,), (41, 37, 9)),
    Case("conv", L.Conv2D(3, 3, padding=1), (4, 5, 2), (41, 37, 9)),
    Case("conv_uneven", L.Conv2D(2, (3, 2), stride=(2, 3), padding=(2, 0), dilation=(1, 2)), (5, 6, 2), (81, 77, 9)),
    Case("conv_wide", L.Conv2D(17, 3), (3, 3, 2), (9, 7, 131)),
    Case("conv_in_strips", L.Conv2D(3, 3, padding=1, strip=20_000), (4, 5, 2), (41, 37, 9)),
    Case("max_pool", L.MaxPool2D(2), (4, 6, 2), (83, 37, 9)),
    Case("max_pool_overlapping", L.MaxPool2D((3, 2), stride=1, padding=1), (4, 3, 2), (41, 37, 9)),
    Case("avg_pool", L.AvgPool2D(2), (4, 6, 2), (83, 37, 9)),
    Case("avg_pool_overlapping", L.AvgPool2D((3, 2), stride=(2, 1), padding=1), (4, 3, 2), (41, 37, 9)),
    Case("avg_pool_uncounted", L.AvgPool2D(3, stride=1, padding=1, count_padding=False), (3, 4, 2), (241, 137, 1)),
    Case("flatten", L.Flatten(), (2, 3, 2), (41, 37, 9)),
    Case("dropout", L.Dropout(0.4), (9,), (41, 37, 9)),
    Case("dropout_of_nothing", L.Dropout(0.0), (9,), (41, 37, 9)),
    Case("batch_norm", L.BatchNorm(), (4,), (41, 37, 9)),
    Case("batch_norm_images", L.BatchNorm(), (3, 2, 2), (41, 37, 9)),
    Case("batch_norm_features", L.BatchNorm(), (3,), (17001,)),
    Case("layer_norm", L.LayerNorm(), (5,), (41, 333)),
    Case("packed_relu", L.Packed(L.ReLU()), (7,), (41, 37, 9)),
    Case("packed_leaky_relu", L.Packed(L.LeakyReLU(0.2)), (7,), (41, 37, 9)),
    Case("packed_dropout", L.Packed(L.Dropout(0.4)), (9,), (41, 37, 9)),
    Case("layer_norm_of_two", L.LayerNorm(), (3, 2), (9001, 2)),
)

WITH_PARAMS = tuple(case for case in CASES if case.layer.init(case.small, np.random.default_rng(0)))


def by_name(cases=CASES) -> dict[str, Any]:
    """Arguments of `pytest.mark.parametrize` for one test a layer."""
    return {"argvalues": cases, "ids": [case.name for case in cases]}


# Backward passes that are wrong on purpose: each is (layer, params, saved, dy) -> (dx, grads).


def scaled_dx(layer, params, saved, dy):
    dx, grads = layer.backward(params, saved, dy)
    return dx * 1.001, grads


def sign_of_dx_lost(layer, params, saved, dy):
    dx, grads = layer.backward(params, saved, dy)
    return np.abs(dx), grads


def one_row_of_dx_dropped(layer, params, saved, dy):
    dx, grads = layer.backward(params, saved, dy)
    dx = dx.copy()
    dx[-1] = 0
    return dx, grads


def dx_in_another_order(layer, params, saved, dy):
    dx, grads = layer.backward(params, saved, dy)
    return dx.reshape(-1)[::-1].reshape(dx.shape), grads


def scaled_grads(layer, params, saved, dy):
    dx, grads = layer.backward(params, saved, dy)
    return dx, tree.map_leaves(lambda g: g * 1.001, grads)


def grads_of_the_first_sample(layer, params, saved, dy):
    """The sum over the batch is missing."""
    first = dy.copy()
    first[1:] = 0
    return layer.backward(params, saved, dy)[0], layer.backward(params, saved, first)[1]


def mean_over_the_batch(layer, params, saved, dy):
    dx, grads = layer.backward(params, saved, dy)
    return dx, tree.map_leaves(lambda g: g / len(dy), grads)


def flipped_grads(layer, params, saved, dy):
    """A kernel that is turned round, as where convolution and correlation are mixed up."""
    dx, grads = layer.backward(params, saved, dy)
    return dx, tree.map_leaves(lambda g: np.flip(g, axis=0).copy(), grads)


def first_of_grads_left_out(layer, params, saved, dy):
    """For a convolution: one tap of the window."""
    dx, grads = layer.backward(params, saved, dy)
    grads = tree.copy(grads)
    for g in tree.leaves(grads):
        g[:1] = 0
    return dx, grads


WRONG_DX = (scaled_dx, sign_of_dx_lost, one_row_of_dx_dropped, dx_in_another_order)
WRONG_GRADS = (scaled_grads, grads_of_the_first_sample, mean_over_the_batch, flipped_grads, first_of_grads_left_out)


@dataclass(frozen=True)
class Wrong:
    """A layer with a backward pass of `fault`."""

    layer: Any
    fault: Any

    def init(self, in_shape, rng, dtype=np.float32):
        return self.layer.init(in_shape, rng, dtype)

    def forward(self, params, x, *, train=False, rng=None):
        return self.layer.forward(params, x, train=train, rng=rng)

    def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
        return self.fault(self.layer, params, saved, dy)


# Data and bytes.


# Networks, and one forward pass of them.

NESTED = Sequential(
    [L.Affine(4), Sequential([L.ReLU(), Sequential([L.Affine(3), L.BatchNorm()])]), L.Tanh(), Sequential([L.Affine(2)])]
)


def forward(model, in_shape, batch=4, dtype=np.float32, seed=0):
    """-> params, x, y, saved, dy."""
    rng = np.random.default_rng(seed)
    params = model.init(in_shape, rng=rng, dtype=dtype)
    x = rng.standard_normal((batch, *in_shape)).astype(dtype)
    y, saved = model.forward(params, x, train=True, rng=np.random.default_rng(1))
    return params, x, y, saved, rng.standard_normal(y.shape).astype(dtype)


def blobs(n: int, shape: tuple[int, ...] = (8, 8, 1), classes: int = 10, seed: int = 0) -> SimpleNamespace:
    """Images like digits: uint8, each class a pattern of its own with noise over it."""
    rng = np.random.default_rng(seed)
    patterns = np.random.default_rng(99).integers(0, 200, (classes, *shape))
    y = rng.integers(0, classes, n)
    x = (patterns[y] + rng.integers(0, 56, (n, *shape))).astype(np.uint8)
    return SimpleNamespace(x=x, y=y)


def assert_close(actual: Any, desired: Any, rtol: float) -> None:
    """Equal but for rounding: no entry is off by more than rtol × the largest one.

    Another BLAS kernel adds in another order. An entry that nearly cancels is then off by the rounding of its terms,
    which are as large as the other entries: a tolerance relative to the entry itself holds on one processor only.
    """
    largest = float(np.abs(desired).max(initial=0))
    np.testing.assert_allclose(actual, desired, rtol=0, atol=rtol * largest)


def same_bits(a: Any, b: Any) -> bool:
    """Whether two trees of arrays are equal, names, dtypes and every bit."""
    a, b = tree.flatten(a), tree.flatten(b)
    return a.keys() == b.keys() and all(
        a[name].dtype == b[name].dtype and np.asarray(a[name]).tobytes() == np.asarray(b[name]).tobytes() for name in a
    )
