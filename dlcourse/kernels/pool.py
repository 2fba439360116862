"""Pooling over windows of images (N, H, W, C), one tap of the window at a time: no columns. `kernel`, `stride`, `padding`
and `in_hw` are (height, width)."""

import numpy as np

from dlcourse.kernels.checks import Array, floats
from dlcourse.kernels.windows import Pair, out_size, taps


def max_pool2d(
    x: Array, *, kernel: Pair, stride: Pair, padding: Pair = (0, 0), out: Array | None = None
) -> tuple[Array, Array]:
    """x (N, H, W, C) -> y (N, H', W', C), the largest of each window, and `index` of the same shape: which tap it came from, in row
    order; of equal ones the first. Padding counts as -∞.  Allocates y, index (see `index_dtype`) and a byte mask."""
    floats(x)
    out_hw = _out_hw(x, kernel, stride, padding)
    y = np.empty((len(x), *out_hw, x.shape[3]), x.dtype) if out is None else out
    y.fill(-np.inf)
    index = np.zeros(y.shape, index_dtype(kernel))
    for i, j, outputs, pixels in taps(x.shape[1:3], out_hw, kernel, stride, padding):
        best, candidate, winner = y[outputs], x[pixels], index[outputs]
        # Taps come in rising order, so the last one that beat the best before it has the largest number. Arithmetic on
        # the byte mask is eight times as fast as a masked copy.
        better = np.greater(candidate, best).view(np.uint8)
        np.maximum(winner, np.multiply(better, i * kernel[1] + j, dtype=index.dtype), out=winner)
        np.maximum(best, candidate, out=best)  # NaN comes through
    return y, index


def max_pool2d_backward(
    dy: Array,
    index: Array,
    *,
    in_hw: Pair,
    kernel: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    need_dx: bool = True,
    out: Array | None = None,
) -> Array | None:
    """-> dx (N, H, W, C): each dy added to the pixel that won its window.  Needs index.  Allocates dx and a byte mask, and
    if windows overlap one array like dy."""
    floats(dy)
    if not need_dx:
        return None
    dx = _zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype, out)
    for i, j, outputs, pixels in taps(in_hw, dy.shape[1:3], kernel, stride, padding):
        won = index[outputs] == i * kernel[1] + j
        if overlapping(kernel, stride):
            dx[pixels] += dy[outputs] * won
        else:  # each pixel is in one window at most
            np.multiply(dy[outputs], won, out=dx[pixels])
    return dx


def overlapping(kernel: Pair, stride: Pair) -> bool:
    """Whether a pixel can be in more than one window."""
    return stride[0] < kernel[0] or stride[1] < kernel[1]


def index_dtype(kernel: Pair) -> np.dtype:
    """The smallest unsigned integer that counts the taps of a window: one byte up to 16×16."""
    return np.min_scalar_type(kernel[0] * kernel[1] - 1)


def avg_pool2d(
    x: Array,
    *,
    kernel: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    count_padding: bool = True,
    out: Array | None = None,
) -> Array:
    """x (N, H, W, C) -> y (N, H', W', C), the mean of each window. Padding counts as zeros; with `count_padding=False` it is left out
    of the mean.  Allocates y."""
    floats(x)
    out_hw = _out_hw(x, kernel, stride, padding)
    y = _zeros((len(x), *out_hw, x.shape[3]), x.dtype, out)
    for _, _, outputs, pixels in taps(x.shape[1:3], out_hw, kernel, stride, padding):
        y[outputs] += x[pixels]
    y /= _counts(x.shape[1:3], out_hw, kernel, stride, padding, count_padding, x.dtype)
    return y


def avg_pool2d_backward(
    dy: Array,
    *,
    in_hw: Pair,
    kernel: Pair,
    stride: Pair,
    padding: Pair = (0, 0),
    count_padding: bool = True,
    need_dx: bool = True,
    out: Array | None = None,
) -> Array | None:
    """-> dx (N, H, W, C): each dy shared equally by the pixels of its window.  Needs shapes only.  Allocates dx and one
    array like dy."""
    floats(dy)
    if not need_dx:
        return None
    out_hw = dy.shape[1:3]
    share = dy / _counts(in_hw, out_hw, kernel, stride, padding, count_padding, dy.dtype)
    dx = _zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype, out)
    for _, _, outputs, pixels in taps(in_hw, out_hw, kernel, stride, padding):
        dx[pixels] += share[outputs]
    return dx


def _counts(
    in_hw: Pair, out_hw: Pair, kernel: Pair, stride: Pair, padding: Pair, count_padding: bool, dtype: np.dtype
) -> Array:
    """How many pixels each window's sum is divided by: (H', W', 1)."""
    if count_padding:
        return np.full((1, 1, 1), kernel[0] * kernel[1], dtype)
    counts = np.zeros((1, *out_hw, 1), dtype)
    for _, _, outputs, _ in taps(in_hw, out_hw, kernel, stride, padding):
        counts[outputs] += 1
    return counts[0]


def _zeros(shape: tuple[int, ...], dtype: np.dtype, out: Array | None) -> Array:
    if out is None:
        return np.zeros(shape, dtype)
    out.fill(0)
    return out


def _out_hw(x: Array, kernel: Pair, stride: Pair, padding: Pair) -> Pair:
    height, width = map(out_size, x.shape[1:3], kernel, stride, padding)
    return height, width
