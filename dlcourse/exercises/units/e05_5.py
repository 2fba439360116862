"""05.5  The whole gradient of a convolution."""

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
parts = "dx", "dW", "db"
hints = """
- db and dW are in section 4. For dx, go the same ways as forward: where it read a pixel, add to that pixel's gradient.
- Make zeros of the padded size. For each (i, j) of the kernel, the pixels that it meets get dy @ W[i, j].T added. They
  are the slice that forward reads. Last, cut the padding off.
- No columns are needed: with met = the slice of padded x for (i, j), all in rows, dW[i, j] = met.T @ dy in rows. One
  picture at a time, add dW up.
"""
costs = (
    (12.0, "the columns of the whole batch and their gradient"),
    (6.0, "the columns of the whole batch, or their gradient"),
    (1.5, "padded arrays of the whole batch; take one picture at a time"),
)


@solution
def conv_backward(dy, x, W, stride=1, padding=0):
    kh, kw, channels, filters = W.shape
    n, h, w, _ = x.shape
    inside = slice(padding, padding + h), slice(padding, padding + w)
    dx, dW = np.empty_like(x), np.zeros_like(W)
    padded = np.zeros((h + 2 * padding, w + 2 * padding, channels), x.dtype)
    dpadded = np.empty_like(padded)
    for image in range(n):
        padded[inside] = x[image]
        dpadded[:] = 0
        rows = dy[image].reshape(-1, filters)
        for i in range(kh):
            for j in range(kw):
                # the pixels that W[i, j] meets: forward reads them, backward adds to them
                met = (slice(i, i + stride * dy.shape[1], stride), slice(j, j + stride * dy.shape[2], stride))
                dW[i, j] += padded[met].reshape(-1, channels).T @ rows
                dpadded[met] += dy[image] @ W[i, j].T
        dx[image] = dpadded[inside]  # without the border
    return dx, dW, dy.sum(axis=(0, 1, 2))


def out_size(size, kernel, stride, padding):
    return (size + 2 * padding - kernel) // stride + 1


def layer(rng, x_shape, filters, kernel, stride, padding, dtype=np.float64):
    kh, kw = kernel
    x = rng.standard_normal(x_shape).astype(dtype)
    W = rng.standard_normal((kh, kw, x_shape[3], filters)).astype(dtype)
    return x, W, rng.standard_normal(filters).astype(dtype), stride, padding


def convolutions(rng):
    for what, *sizes in LAYERS:
        yield what, layer(rng, *sizes)
    yield "float32", layer(rng, (2, 6, 6, 4), 3, (3, 3), 1, 1, np.float32)


def a_large_convolution(rng):
    return layer(rng, (16, 32, 32, 16), 16, (3, 3), 1, 1, np.float32)


def my_conv(x, W, b, stride=1, padding=0):
    """One picture and one row of the kernel at a time: strips of kw·C numbers, a third of the columns for 3 × 3."""
    kh, kw, channels, filters = W.shape
    n, h, w, _ = x.shape
    out_h, out_w = out_size(h, kh, stride, padding), out_size(w, kw, stride, padding)
    y = np.empty((n, out_h, out_w, filters), x.dtype)
    y[:] = b
    padded = np.zeros((h + 2 * padding, w + 2 * padding, channels), x.dtype)
    strips = np.empty((h + 2 * padding, out_w, kw, channels), x.dtype)
    for image in range(n):
        padded[padding : padding + h, padding : padding + w] = x[image]
        for j in range(kw):
            strips[:, :, j] = padded[:, j : j + stride * out_w : stride]
        for i in range(kh):
            rows = strips[i : i + stride * out_h : stride].reshape(out_h, out_w, kw * channels)
            y[image] += rows @ W[i].reshape(kw * channels, filters)
    return y


def backward(dy, x, W, stride, padding, overwrite=False, cut=True):
    kh, kw, channels, filters = W.shape
    n, h, w, _ = x.shape
    inside = slice(padding, padding + h), slice(padding, padding + w)
    out_h, out_w = dy.shape[1:3]
    dx = np.empty_like(x) if cut else np.empty((n, h + 2 * padding, w + 2 * padding, channels), x.dtype)
    dW = np.zeros_like(W)
    padded = np.zeros((h + 2 * padding, w + 2 * padding, channels), x.dtype)
    dpadded = np.empty_like(padded)
    for image in range(n):
        padded[inside] = x[image]
        dpadded[:] = 0
        rows = dy[image].reshape(-1, filters)
        for i in range(kh):
            for j in range(kw):
                met = slice(i, i + stride * out_h, stride), slice(j, j + stride * out_w, stride)
                dW[i, j] += padded[met].reshape(-1, channels).T @ rows
                part = dy[image] @ W[i, j].T
                dpadded[met] = part if overwrite else dpadded[met] + part
        dx[image] = dpadded[inside] if cut else dpadded
    return dx, dW, dy.sum(axis=(0, 1, 2))


@wrong
def overwritten(dy, x, W, stride=1, padding=0):
    """A pixel of your dx gets a part from one window only, the last that meets it. It must get one from each: += on zeros
    in place of =. And += with arrays of places counts a place once: take slices, or np.add.at."""
    return backward(dy, x, W, stride, padding, overwrite=True)


@wrong
def kernel_turned(dy, x, W, stride=1, padding=0):
    """In your dx the kernel stands the wrong way round. When dx gathers from dy, as a convolution, W must be turned by
    half a turn, W[::-1, ::-1]. When dy is scattered into dx, it must not be turned."""
    _, dW, db = conv_backward(dy, x, W, stride, padding)
    return conv_backward(dy, x, W[::-1, ::-1], stride, padding)[0], dW, db


def divided_by_batch(dy, x, W, stride=1, padding=0):
    dx, dW, db = conv_backward(dy, x, W, stride, padding)
    return dx, dW / len(x), db / len(x)


def bias_a_place(dy, x, W, stride=1, padding=0):
    dx, dW, _ = conv_backward(dy, x, W, stride, padding)
    return dx, dW, dy.sum(axis=0)


@wrong
def size_from_the_output(dy, x, W, stride=1, padding=0):
    """You computed the size of dx backwards from the output. Where the stride does not divide, pixels at the end are
    met by no window, and your dx lacks them. Take the size of x: their gradient is 0."""
    dx, dW, db = conv_backward(dy, x, W, stride, padding)
    reached = [(out - 1) * stride + k - 2 * padding for out, k in zip(dy.shape[1:3], W.shape[:2], strict=True)]
    return dx[:, : reached[0], : reached[1]], dW, db


def stride_forgotten(dy, x, W, stride=1, padding=0):
    _, dW, db = conv_backward(dy, x, W, stride, padding)
    return conv_backward(dy, x, W, 1, padding)[0], dW, db


def cut_from_both_ends(dy, x, W, stride=1, padding=0):
    dx, dW, db = backward(dy, x, W, stride, padding, cut=False)
    return dx[:, padding:-padding, padding:-padding], dW, db


@wrong
def index_arrays(dy, x, W, stride=1, padding=0):
    """Each pixel of your dx got the part of one window. dx[r, q] += … with arrays of places writes a place that occurs
    several times only once. np.add.at adds each time; slices, one for each (i, j), need no such care."""
    dx, dW, db = backward(dy[:, ::-1, ::-1], x[:, ::-1, ::-1], W[::-1, ::-1], stride, padding, overwrite=True)
    _, dW, db = conv_backward(dy, x, W, stride, padding)
    return dx[:, ::-1, ::-1], dW, db


@wrong
def dW_without_stride(dy, x, W, stride=1, padding=0):
    """Your dW meets pixels that stand side by side. The windows stand stride pixels apart, as in forward: i : i + stride *
    H' : stride."""
    dx, _, db = conv_backward(dy, x, W, stride, padding)
    return dx, conv_backward(dy, x, W, 1, padding)[1], db


@wrong
def dW_without_border(dy, x, W, stride=1, padding=0):
    """Your dW reads x from its own first pixel on. Forward read the padded picture, whose border stands before it too: pad
    x as forward does, and read that."""
    dx, _, db = conv_backward(dy, x, W, stride, padding)
    moved = np.pad(x, ((0, 0), (0, 2 * padding), (0, 2 * padding), (0, 0)))
    return dx, conv_backward(dy, moved, W, stride)[1], db


also_wrong = (
    lambda dy, x, W, stride, padding: backward(dy, x, W, stride, padding, cut=False),
    divided_by_batch,
    bias_a_place,
    stride_forgotten,
    cut_from_both_ends,
)


def inputs(rng):
    few = [np.arange(1.0, 1 + n * n).reshape(1, n, n, 1) for n in (2, 3)]
    digits = np.array([1.0, 10, 100, 1000]).reshape(2, 2, 1, 1)
    yield "whole numbers: a picture of 3 × 3, kernel 1, 10, 100, 1000", (*few, digits, 1, 0)
    for what, arguments in convolutions(rng):
        x, W, _, stride, padding = arguments
        dy = rng.standard_normal(my_conv(*arguments).shape).astype(x.dtype)
        yield what, (dy, x, W, stride, padding)


def large(rng):
    x, W, _, stride, padding = a_large_convolution(rng)
    return rng.standard_normal((16, 32, 32, 16), dtype=np.float32), x, W, stride, padding
