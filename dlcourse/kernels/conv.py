"""Convolution as a matrix product, with the columns of a few images at a time.

A column is one window of the image laid flat: kh·kw·C numbers for each output pixel, so all columns together are
kh·kw times the input (nine times for 3×3). Here they are made for a block of images that fits a core's cache, used and
overwritten; backward makes them again from x. That is less memory, and also faster than one large matrix: the product
reads its columns from cache and not from main memory. With `strip` a block can be a few rows of one image: fewer bytes still.
"""

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from dlcourse.kernels.checks import Array, floats
from dlcourse.kernels.sums import sum_rows
from dlcourse.kernels.windows import Pair, offset, out_size

BLOCK_BYTES = 1 << 20  # columns of a block: at least one image, and about this much; half of a usual level-2 cache


def conv2d(
    x: Array,
    W: Array,
    b: Array,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    strip: int | None = None,
    out: Array | None = None,
) -> Array:
    """y[n, p, q, f] = b[f] + Σ_ijc xpad[n, p·s + i·d, q·s + j·d, c] W[i, j, c, f].

    x (N, H, W, C), W (kh, kw, C, F), b (F,) -> y (N, H', W', F).  Allocates y, and the columns and the padded images
    of one block: of `strip` bytes at most, but at least one row of outputs; without it about 1 MiB, but at least one image.
    Raises ValueError if `out` is not in one piece in memory.
    """
    floats(x)
    kh, kw, _, filters = W.shape
    windows = padded_windows(x.shape[1:3], (kh, kw), stride, padding, dilation, strip)
    y = np.empty((len(x), *windows.out_hw, filters), x.dtype) if out is None else out
    for place, columns in column_blocks(x, windows):
        rows = y[place].reshape(-1, filters, copy=False)  # reshape must not copy, or `out` would stay empty
        np.matmul(columns, W.reshape(-1, filters), out=rows)
        rows += b
    return y


def conv2d_backward(
    dy: Array,
    x: Array,
    W: Array,
    *,
    stride: Pair = (1, 1),
    padding: Pair = (0, 0),
    dilation: Pair = (1, 1),
    strip: int | None = None,
    need_dx: bool = True,
    out: Array | None = None,
) -> tuple[Array | None, Array, Array]:
    """dy (N, H', W', F) -> dx like x, dW like W, db (F,).  Needs x and not y.  Allocates the three, the columns of one
    block with the images that they are cut from, and one array like W.

    dW[i, j] = Σ x_windowᵀ dy over all windows, at tap (i, j); dx is a convolution of dy, its pixels laid `stride` apart,
    with W turned by half a turn (Dumoulin and Visin 2016).  Raises ValueError if `out` is not in one piece in memory.
    """
    floats(dy)
    kh, kw, _, _ = W.shape
    window = (kh, kw), stride, padding, dilation, strip
    dx = _conv2d_dx(dy, W, transposed_windows(x.shape[1:3], dy.shape[1:3], *window), out) if need_dx else None
    dW = _conv2d_dW(dy, x, padded_windows(x.shape[1:3], *window)).reshape(W.shape)
    return dx, dW, sum_rows(dy)


def _conv2d_dW(dy: Array, x: Array, windows: "Windows") -> Array:
    """dW = Σ columnsᵀ dy, with the columns of x made again: (kh·kw·C, F)."""
    filters = dy.shape[3]
    dW = np.zeros((windows.kernel[0] * windows.kernel[1] * x.shape[3], filters), x.dtype)
    of_block = np.empty_like(dW)
    for place, columns in column_blocks(x, windows):
        dW += np.matmul(columns.T, dy[place].reshape(-1, filters), out=of_block)
    return dW


def _conv2d_dx(dy: Array, W: Array, windows: "Windows", out: Array | None) -> Array:
    """dx is a convolution too: of dy, spread out by the stride, with W turned by half a turn. So each pixel gathers what
    its outputs send back, where adding to the pixels output by output would run in short steps over memory."""
    channels = W.shape[2]
    turned = W[::-1, ::-1].transpose(0, 1, 3, 2).reshape(-1, channels)
    dx = np.empty((len(dy), *windows.out_hw, channels), dy.dtype) if out is None else out
    for place, columns in column_blocks(dy, windows):
        np.matmul(columns, turned, out=dx[place].reshape(-1, channels, copy=False))
    return dx


class Windows(NamedTuple):
    """Windows over a padded image: zeros of size `padded`, on which the part `source` of an image is laid at `target`."""

    padded: Pair
    source: tuple[slice, slice]
    target: tuple[slice, slice]
    kernel: Pair
    stride: Pair
    dilation: Pair
    out_hw: Pair
    strip: int | None = None

    def block(self, n: int, channels: int, itemsize: int) -> Pair:
        """How many of n images make a block, and how many rows of each."""
        height, row = self.out_hw[0], self.out_hw[1] * self.kernel[0] * self.kernel[1] * channels * itemsize
        if self.strip is None or self.strip >= height * row:
            return max(1, min(n, (self.strip or BLOCK_BYTES) // (height * row))), height
        return 1, max(1, self.strip // row)

    def nbytes(self, n: int, channels: int, itemsize: int) -> int:
        """The bytes that `column_blocks` holds: the columns of a block and, unless the image is used as it is, the
        padded images."""
        images, rows = self.block(n, channels, itemsize)
        columns = rows * self.out_hw[1] * self.kernel[0] * self.kernel[1]
        padded = 0 if self.unpadded else self.padded[0] * self.padded[1]
        return images * (columns + padded) * channels * itemsize

    @property
    def unpadded(self) -> bool:
        """Whether the windows run over the image as it is."""
        whole = tuple(slice(0, size, 1) for size in self.padded)
        return self.source == whole and self.target == whole


def padded_windows(
    in_hw: Pair, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, strip: int | None = None
) -> Windows:
    """The windows of a convolution over its padded input."""
    out_h, out_w = map(out_size, in_hw, kernel, stride, padding, dilation)
    (h, w), (ph, pw) = in_hw, padding
    source = slice(0, h, 1), slice(0, w, 1)
    target = slice(ph, ph + h, 1), slice(pw, pw + w, 1)
    return Windows((h + 2 * ph, w + 2 * pw), source, target, kernel, stride, dilation, (out_h, out_w), strip)


def transposed_windows(
    in_hw: Pair,
    out_hw: Pair,
    kernel: Pair,
    stride: Pair,
    padding: Pair,
    dilation: Pair,
    strip: int | None = None,
) -> Windows:
    """The windows over dy that give dx, one for each pixel: those of a convolution of dy, dilated by the stride and padded,
    with W turned ("transposed convolution")."""
    reach = [d * (k - 1) for k, d in zip(kernel, dilation, strict=True)]
    padded = in_hw[0] + reach[0], in_hw[1] + reach[1]
    (source_h, target_h), (source_w, target_w) = map(offset, reach, padded, out_hw, stride, padding)
    return Windows(padded, (source_h, source_w), (target_h, target_w), kernel, (1, 1), dilation, in_hw, strip)


def column_blocks(x: Array, windows: Windows) -> Iterator[tuple[tuple[slice, slice], Array]]:
    """Yield ((images, rows), columns): which outputs, and the columns of their windows (n·rows·W', kh·kw·C), in one buffer that
    the next block overwrites."""
    n, c = len(x), x.shape[3]
    step, height = windows.block(n, c, x.itemsize)
    buffer = np.empty((step, height, windows.out_hw[1], *windows.kernel, c), x.dtype)
    padded = None if windows.unpadded else np.zeros((step, *windows.padded, c), x.dtype)
    every = _cut(x if padded is None else padded, windows)
    for start in range(0, n, step):
        images = slice(start, min(start + step, n))
        count = images.stop - start
        if padded is not None:
            padded[:count, *windows.target] = x[images, *windows.source]
        cut = every[images] if padded is None else every[:count]
        for top in range(0, windows.out_hw[0], height):
            rows = slice(top, min(top + height, windows.out_hw[0]))
            columns = buffer[:count, : rows.stop - top]
            np.copyto(columns, cut[:, rows])
            yield (images, rows), columns.reshape(-1, columns[0, 0, 0].size)


def _cut(x: Array, windows: Windows) -> Array:
    """A view (n, H', W', kh, kw, C) of images: each window where it stands, nothing copied. Channels last: with
    dilation 1 a row of a window is kw·C numbers side by side, so the copy that follows goes in long runs."""
    (stride_h, stride_w), (d_h, d_w) = windows.stride, windows.dilation
    reach = [d * (k - 1) + 1 for k, d in zip(windows.kernel, windows.dilation, strict=True)]
    every = np.lib.stride_tricks.sliding_window_view(x, reach, axis=(1, 2))  # (n, …, …, C, reach_h, reach_w)
    return every[:, ::stride_h, ::stride_w, :, ::d_h, ::d_w].transpose(0, 1, 2, 4, 5, 3)
