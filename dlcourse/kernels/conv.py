"""Convolution as a matrix product, with the columns of a few images at a time.

A column is one window of the image laid flat: kh·kw·C numbers for each output pixel, so all columns together are
kh·kw times the input (nine times for 3×3). Here they are made for a block of images that fits a core's cache, used and
overwritten; backward makes them again from x. That is less memory, and also faster than one large matrix: the product
reads its columns from cache and not from main memory.
"""

from collections.abc import Iterator

import numpy as np

from dlcourse.kernels.windows import Pair, out_size, taps

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
    of one block.
    """
    kh, kw, _, filters = W.shape
    out_hw = _out_hw(x, (kh, kw), stride, padding, dilation)
    y = np.empty((len(x), *out_hw, filters), x.dtype) if out is None else out
    matrix = W.reshape(-1, filters)
    for images, cols in column_blocks(x, (kh, kw), stride, padding, dilation):
        rows = y[images].reshape(-1, filters)
        np.matmul(cols, matrix, out=rows)
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
    """-> dx like x, dW like W, db (F,).  Needs x and not y.  Allocates the three, the columns and padded images of
    one block, and one array like W.

    dW = Σ columnsᵀ dy, and the columns' own gradient dy Wᵀ is added back to the pixels that they were copied from.
    """
    kh, kw, channels, filters = W.shape
    out_hw = dy.shape[1:3]
    matrix = W.reshape(-1, filters)
    dx = np.zeros_like(x) if need_dx else None
    dW, dW_block = np.zeros_like(matrix), np.empty_like(matrix)
    for images, cols in column_blocks(x, (kh, kw), stride, padding, dilation):
        rows = dy[images].reshape(-1, filters)
        dW += np.matmul(cols.T, rows, out=dW_block)
        if dx is not None:
            np.matmul(rows, matrix.T, out=cols)  # the columns have been used: their gradient takes their place
            dcols = cols.reshape(-1, *out_hw, kh, kw, channels)
            for i, j, outputs, pixels in taps(x.shape[1:3], out_hw, (kh, kw), stride, padding, dilation):
                dx[images][pixels] += dcols[outputs][:, :, :, i, j]
    return dx, dW.reshape(W.shape), dy.sum(axis=(0, 1, 2))


def column_blocks(
    x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair
) -> Iterator[tuple[slice, np.ndarray]]:
    """Yield (images, columns): a slice of the batch and its columns (n·H'·W', kh·kw·C), in one buffer that the next
    block overwrites and the caller may, too."""
    n, h, w, c = x.shape
    (ph, pw), out_hw = padding, _out_hw(x, kernel, stride, padding, dilation)
    step = block_images(n, out_hw, kernel, c, x.itemsize)
    buffer = np.empty((step, *out_hw, *kernel, c), x.dtype)
    padded = np.zeros((step, h + 2 * ph, w + 2 * pw, c), x.dtype) if ph or pw else None
    for start in range(0, n, step):
        images = slice(start, min(start + step, n))
        source = x[images]
        if padded is not None:
            padded[: len(source), ph : ph + h, pw : pw + w] = source
            source = padded[: len(source)]
        cols = buffer[: len(source)]
        np.copyto(cols, _windows(source, kernel, stride, dilation, out_hw))
        yield images, cols.reshape(-1, cols[0, 0, 0].size)


def block_images(n: int, out_hw: Pair, kernel: Pair, channels: int, itemsize: int) -> int:
    """How many images make a block."""
    column_bytes = out_hw[0] * out_hw[1] * kernel[0] * kernel[1] * channels * itemsize
    return max(1, min(n, BLOCK_BYTES // column_bytes))


def conv2d_workspace(
    batch: int, in_shape: tuple[int, ...], kernel: Pair, stride: Pair, padding: Pair, dilation: Pair, itemsize: int
) -> int:
    """Bytes of the columns and the padded images of one block: what `column_blocks` holds."""
    h, w, c = in_shape
    out_hw = tuple(map(out_size, (h, w), kernel, stride, padding, dilation))
    columns = out_hw[0] * out_hw[1] * kernel[0] * kernel[1] * c
    padded = (h + 2 * padding[0]) * (w + 2 * padding[1]) * c if any(padding) else 0
    return block_images(batch, (out_hw[0], out_hw[1]), kernel, c, itemsize) * (columns + padded) * itemsize


def _out_hw(x: np.ndarray, kernel: Pair, stride: Pair, padding: Pair, dilation: Pair) -> Pair:
    height, width = map(out_size, x.shape[1:3], kernel, stride, padding, dilation)
    return height, width


def _windows(x: np.ndarray, kernel: Pair, stride: Pair, dilation: Pair, out_hw: Pair) -> np.ndarray:
    """A view (n, H', W', kh, kw, C) of padded images: each window where it stands, nothing copied. Channels last: with
    dilation 1 a row of a window is kw·C numbers side by side, so the copy that follows goes in long runs."""
    n, _, _, c = x.shape
    sn, sh, sw, sc = x.strides
    shape = (n, *out_hw, *kernel, c)
    strides = (sn, sh * stride[0], sw * stride[1], sh * dilation[0], sw * dilation[1], sc)
    return np.lib.stride_tricks.as_strided(x, shape, strides, writeable=False)
