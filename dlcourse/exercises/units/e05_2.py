"""05.2  All windows, each in a row."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- Make an empty array (N, H', W', kh, kw, C) of the dtype of x first. Fill it, and reshape it in the last line.
- The simple way: loop over p and q, and copy padded[:, p·s : p·s + kh, q·s : q·s + kw] to [:, p, q].
- The quick way: loop over i and j of the kernel. Its number (i, j) meets the pixels i, i + s, i + 2s, … of the rows and
  j, j + s, … of the columns: padded[:, i : i + s·H' : s, j : j + s·W' : s].
"""


@solution
def im2col(x, kernel, stride, padding):
    (kh, kw), (n, h, w, channels) = kernel, x.shape
    padded = np.zeros((n, h + 2 * padding, w + 2 * padding, channels), x.dtype)
    padded[:, padding : padding + h, padding : padding + w] = x
    out_h = (h + 2 * padding - kh) // stride + 1
    out_w = (w + 2 * padding - kw) // stride + 1
    windows = np.empty((n, out_h, out_w, kh, kw, channels), x.dtype)
    for i in range(kh):
        for j in range(kw):
            # W[i, j] meets each stride-th pixel from (i, j) on: one copy for all places at once
            windows[:, :, :, i, j] = padded[:, i : i + stride * out_h : stride, j : j + stride * out_w : stride]
    return windows.reshape(-1, kh * kw * channels)


def with_axes(x, kernel, stride, padding, *order):
    """The windows with their axes, (N, H', W', kh, kw, C), in another order; then each in a row."""
    size = [(n + 2 * padding - k) // stride + 1 for n, k in zip(x.shape[1:3], kernel, strict=True)]
    windows = im2col(x, kernel, stride, padding).reshape(len(x), *size, *kernel, x.shape[3])
    return windows.transpose(order).reshape(-1, windows[0, 0, 0].size)


@wrong
def channels_first(x, kernel, stride, padding):
    """In each of your rows the channel comes first, then the places of the window: (C, kh, kw). The weights are (kh,
    kw, C, F), so the channel must come last, or the product meets the wrong weights."""
    return with_axes(x, kernel, stride, padding, 0, 1, 2, 5, 3, 4)


@wrong
def columns_before_rows(x, kernel, stride, padding):
    """Inside your rows the window goes column by column: kw before kh. The weights are (kh, kw, C, F): row by row."""
    return with_axes(x, kernel, stride, padding, 0, 1, 2, 4, 3, 5)


@wrong
def pictures_last(x, kernel, stride, padding):
    """Your rows go place by place, and through all pictures at each place. The output is (N, H', W', F): the picture
    must be the slowest axis, or a reshape mixes the pictures."""
    return with_axes(x, kernel, stride, padding, 1, 2, 0, 3, 4, 5)


@wrong
def not_padded(x, kernel, stride, padding):
    """You left the padding out. Lay x into an array of zeros of H + 2 · padding rows and W + 2 · padding columns first."""
    return im2col(x, kernel, stride, 0)


@wrong
def padded_on_all_axes(x, kernel, stride, padding):
    """np.pad(x, padding) lays a border around all four axes: you have more pictures and more channels than before. Pad
    the height and the width only: ((0, 0), (padding, padding), (padding, padding), (0, 0))."""
    return im2col(np.pad(x, padding), kernel, stride, 0)


@wrong
def every_place(x, kernel, stride, padding):
    """You have a row for each place of stride 1. The windows stand stride pixels apart: place p begins at p · stride."""
    return im2col(x, kernel, 1, padding)


also_wrong = (
    lambda x, kernel, stride, padding: im2col(x, kernel, stride, padding).T,
    lambda x, kernel, stride, padding: im2col(x, kernel, stride, padding).astype(np.float64),
)


def inputs(rng):
    yield "one picture, 3 × 3, one channel, kernel 2 × 2", (np.arange(9.0).reshape(1, 3, 3, 1), (2, 2), 1, 0)
    yield "two pictures, 4 × 5, three channels, kernel 2 × 3", (rng.standard_normal((2, 4, 5, 3)), (2, 3), 1, 0)
    yield "stride 2 that does not divide, padding 1", (rng.standard_normal((2, 6, 5, 2)), (3, 2), 2, 1)
    yield "stride larger than the kernel", (rng.standard_normal((1, 7, 8, 2)), (2, 2), 3, 0)
    yield "float32", (rng.standard_normal((3, 4, 4, 2), dtype=np.float32), (3, 3), 1, 1)
    yield "whole numbers in uint8", (rng.integers(0, 256, (2, 4, 4, 3), dtype=np.uint8), (1, 3), 1, 0)
