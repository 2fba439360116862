"""05.4  A fifth way."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

LAYERS = (
    ("one picture, 4 × 4, one channel, kernel 2 × 2", (1, 4, 4, 1), 1, (2, 2), 1, 0),
    ("5 × 5, kernel 2 × 2, stride 2: the last row and column are left over", (1, 5, 5, 1), 1, (2, 2), 2, 0),
    ("two pictures, 5 × 6, three channels, two filters, kernel 3 × 2", (2, 5, 6, 3), 2, (3, 2), 1, 0),
    ("padding 1", (3, 4, 5, 2), 3, (3, 3), 1, 1),
    ("stride 2 that does not divide, padding 1", (2, 8, 7, 2), 2, (3, 3), 2, 1),
    ("16 × 16, kernel 7 × 7, stride 3, padding 2", (1, 16, 16, 1), 2, (7, 7), 3, 2),
    ("stride larger than the kernel", (2, 7, 8, 2), 2, (2, 2), 3, 0),
)
hints = """
- Between columns (kh · kw copies of a pixel) and offsets (none) there is a middle: copy along the width only. Then a
  pixel is copied kw times (Cho and Brand, 2017).
- Take one picture. Make strips (H + 2·padding, W', kw, C): strips[:, :, j] = padded[:, j : j + s·W' : s]. That is one
  loop over kw.
- Row i of the kernel meets the rows i, i + s, … of the strips. So add, for each i, strips[i : i + s·H' : s].reshape(H',
  W', kw·C) @ W[i].reshape(kw·C, F). Begin with the bias.
"""
costs = (
    (7.0, "the columns of the whole batch, or another array that grows with it"),
    (3.5, "copies of the windows of many pictures at once"),
    (1.5, "a padded copy of the whole batch, or a product as large as y; take one picture at a time"),
)


@solution
def my_conv(x, W, b, stride=1, padding=0):
    # Strips: windows along the width only, of one picture (Cho and Brand, 2017). A pixel is copied kw times.
    kh, kw, channels, filters = W.shape
    n, h, w, _ = x.shape
    out_h = (h + 2 * padding - kh) // stride + 1
    out_w = (w + 2 * padding - kw) // stride + 1
    y = np.empty((n, out_h, out_w, filters), x.dtype)
    y[:] = b
    padded = np.zeros((h + 2 * padding, w + 2 * padding, channels), x.dtype)
    strips = np.empty((h + 2 * padding, out_w, kw, channels), x.dtype)
    for image in range(n):
        padded[padding : padding + h, padding : padding + w] = x[image]
        for j in range(kw):
            strips[:, :, j] = padded[:, j : j + stride * out_w : stride]
        for i in range(kh):  # row i of the kernel meets the rows i, i + stride, … of the strips
            rows = strips[i : i + stride * out_h : stride].reshape(out_h, out_w, kw * channels)
            y[image] += rows @ W[i].reshape(kw * channels, filters)
    return y


def layer(rng, x_shape, filters, kernel, stride, padding, dtype=np.float64):
    kh, kw = kernel
    x = rng.standard_normal(x_shape).astype(dtype)
    W = rng.standard_normal((kh, kw, x_shape[3], filters)).astype(dtype)
    return x, W, rng.standard_normal(filters).astype(dtype), stride, padding


@wrong
def turned(x, W, b, stride=1, padding=0):
    """You turned the kernel by half a turn. That is what mathematics calls a convolution. Deep learning does not turn
    it: W[i, j] meets x[p + i, q + j]."""
    return my_conv(x, W[::-1, ::-1], b, stride, padding)


@wrong
def bias_at_each_tap(x, W, b, stride=1, padding=0):
    """The bias is added once for each place of the kernel, kh · kw times. Add it once."""
    return my_conv(x, W, W.shape[0] * W.shape[1] * b, stride, padding)


@wrong
def bias_forgotten(x, W, b, stride=1, padding=0):
    """The bias is missing. Each filter adds its own number to all places."""
    return my_conv(x, W, 0 * b, stride, padding)


@wrong
def padded_with_the_edge(x, W, b, stride=1, padding=0):
    """Your border repeats the pixels of the edge. Padding is a border of zeros."""
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return my_conv(np.pad(x, around, mode="edge"), W, b, stride, 0)


@wrong
def side_by_side(x, W, b, stride=1, padding=0):
    """Your windows stand one pixel apart, whatever the stride is. Place p begins at pixel p · stride."""
    return my_conv(x, W, b, 1, padding)


also_wrong = (lambda x, W, b, stride, padding: my_conv(x, W, b, stride, padding).astype(np.float64),)


def inputs(rng):
    for what, *sizes in LAYERS:
        yield what, layer(rng, *sizes)
    yield "float32", layer(rng, (2, 6, 6, 4), 3, (3, 3), 1, 1, np.float32)


def large(rng):
    return layer(rng, (16, 32, 32, 16), 16, (3, 3), 1, 1, np.float32)
