"""Convolution as a matrix product, with the columns of a few images at a time.

A column is one window of the image laid flat: kh·kw·C numbers for each output pixel, so all columns together are
kh·kw times the input (nine times for 3×3). Here they are made for a block of images that fits a core's cache, used and
overwritten; backward makes them again from x. That is less memory, and also faster than one large matrix: the product
reads its columns from cache and not from main memory.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dlcourse.kernels.windows import Pair, out_size, tap

BLOCK_BYTES = 1 << 20  # columns of a block: at least one image, and about this much; half of a usual level-2 cache


def conv2d(
    x: np.ndarray,
    W: np.ndarray,
    b: np.ndarray,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    out: np.ndarray | None = None,
) -> np.ndarray:
    """y[n, p, q, f] = b[f] + Σ_ijc xpad[n, p·s + i·d, q·s + j·d, c] W[i, j, c, f].

    x (N, H, W, C), W (kh, kw, C, F), b (F,) -> y (N, H', W', F).  Allocates y, and the columns and the padded images
    of one block.  Raises ValueError where `out` is not in one piece in memory.
    """
    kh, kw, _, filters = W.shape
    windows = padded_windows(x.shape[1:3], (kh, kw), stride, padding, dilation)
    y = np.empty((len(x), *windows.out_hw, filters), x.dtype) if out is None else out
    for images, columns in column_blocks(x, windows):
        rows = y[images].reshape(-1, filters, copy=False)  # a copy would take the result, and `out` nothing
        np.matmul(columns, W.reshape(-1, filters), out=rows)
        rows += b
    return y


def conv2d_backward(
    dy: np.ndarray,
    x: np.ndarray,
    W: np.ndarray,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    need_dx: bool = True,
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """-> dx like x, dW like W, db (F,).  Needs x and not y.  Allocates the three, the columns of one block with the
    images that they are cut from, and one array like W."""
    kh, kw, _, _ = W.shape
    window = {"kernel": (kh, kw), "stride": stride, "padding": padding, "dilation": dilation}
    dx = _conv2d_dx(dy, W, spread_windows(x.shape[1:3], dy.shape[1:3], **window)) if need_dx else None
    dW = _conv2d_dW(dy, x, padded_windows(x.shape[1:3], **window)).reshape(W.shape)
    images = dy.reshape(len(dy), -1, dy.shape[3])  # (N, H'·W', F)
    # A product with ones: `sum` over all pixels goes through memory in short steps of F numbers, and takes longer.
    db = (np.ones(images.shape[1], dy.dtype) @ images).sum(axis=0)
    return dx, dW, db


def _conv2d_dW(dy: np.ndarray, x: np.ndarray, windows: "Windows") -> np.ndarray:
    """dW = Σ columnsᵀ dy, with the columns of x made again: (kh·kw·C, F)."""
    filters = dy.shape[3]
    dW = np.zeros((windows.kernel[0] * windows.kernel[1] * x.shape[3], filters), x.dtype)
    of_block = np.empty_like(dW)
    for images, columns in column_blocks(x, windows):
        dW += np.matmul(columns.T, dy[images].reshape(-1, filters), out=of_block)
    return dW


def _conv2d_dx(dy: np.ndarray, W: np.ndarray, windows: "Windows") -> np.ndarray:
    """dx is a convolution too: of dy, spread out by the stride, with W turned by half a turn. So each pixel gathers what
    its outputs send back, where adding to the pixels output by output would run in short steps over memory."""
    channels = W.shape[2]
    turned = W[::-1, ::-1].transpose(0, 1, 3, 2).reshape(-1, channels)
    dx = np.empty((len(dy), *windows.out_hw, channels), dy.dtype)
    for images, columns in column_blocks(dy, windows):
        np.matmul(columns, turned, out=dx[images].reshape(-1, channels))
    return dx


class Windows(NamedTuple):
    """Windows over a canvas: zeros of size `canvas`, on which the part `taken` of an image is laid at `placed`."""

    canvas: Pair
    taken: tuple[slice, slice]
    placed: tuple[slice, slice]
    kernel: Pair
    stride: Pair
    dilation: Pair
    out_hw: Pair

    def block(self, n: int, channels: int, itemsize: int) -> int:
        """How many of n images make a block."""
        columns = self.out_hw[0] * self.out_hw[1] * self.kernel[0] * self.kernel[1] * channels * itemsize
        return max(1, min(n, BLOCK_BYTES // columns))

    def nbytes(self, n: int, channels: int, itemsize: int) -> int:
        """The bytes that `column_blocks` holds: the columns of a block and, unless the image is used as it is, its
        canvas."""
        columns = self.out_hw[0] * self.out_hw[1] * self.kernel[0] * self.kernel[1]
        canvas = 0 if self.bare else self.canvas[0] * self.canvas[1]
        return self.block(n, channels, itemsize) * (columns + canvas) * channels * itemsize

    @property
    def bare(self) -> bool:
        """Whether the canvas is just the image."""
        whole = tuple(slice(0, size, 1) for size in self.canvas)
        return self.taken == whole and self.placed == whole


def padded_windows(in_hw: Pair, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Windows:
    """The windows of a convolution over its padded input."""
    out_h, out_w = map(out_size, in_hw, kernel, stride, padding, dilation)
    (h, w), (ph, pw) = in_hw, padding
    taken = slice(0, h, 1), slice(0, w, 1)
    placed = slice(ph, ph + h, 1), slice(pw, pw + w, 1)
    return Windows((h + 2 * ph, w + 2 * pw), taken, placed, kernel, stride, dilation, (out_h, out_w))


def spread_windows(in_hw: Pair, out_hw: Pair, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Windows:
    """The windows over dy that give dx: one for each pixel, over outputs laid `stride` apart."""
    reach = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    canvas = in_hw[0] + reach[0], in_hw[1] + reach[1]
    (take_h, place_h), (take_w, place_w) = map(tap, reach, canvas, out_hw, stride, padding)
    return Windows(canvas, (take_h, take_w), (place_h, place_w), kernel, (1, 1), dilation, in_hw)


def column_blocks(x: np.ndarray, windows: Windows) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (images, columns): a slice of the batch and the columns of its windows (n·H'·W', kh·kw·C), in one buffer
    that the next block overwrites."""
    n, c = len(x), x.shape[3]
    step = windows.block(n, c, x.itemsize)
    buffer = np.empty((step, *windows.out_hw, *windows.kernel, c), x.dtype)
    canvas = None if windows.bare else np.zeros((step, *windows.canvas, c), x.dtype)
    for start in range(0, n, step):
        images = slice(start, min(start + step, n))
        source = x[images]
        if canvas is not None:
            canvas[: len(source), *windows.placed] = source[:, *windows.taken]
            source = canvas[: len(source)]
        columns = buffer[: len(source)]
        np.copyto(columns, _cut(source, windows))
        yield images, columns.reshape(-1, columns[0, 0, 0].size)


def _cut(x: np.ndarray, windows: Windows) -> np.ndarray:
    """A view (n, H', W', kh, kw, C) of images: each window where it stands, nothing copied. Channels last: with
    dilation 1 a row of a window is kw·C numbers side by side, so the copy that follows goes in long runs."""
    sn, sh, sw, sc = x.strides
    (stride_h, stride_w), (d_h, d_w) = windows.stride, windows.dilation
    shape = (len(x), *windows.out_hw, *windows.kernel, x.shape[3])
    strides = (sn, sh * stride_h, sw * stride_w, sh * d_h, sw * d_w, sc)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
