"""05.5  The whole gradient of a convolution."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong
from dlcourse.exercises.units import e05_4

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


def overwriting(dy, x, W, stride, padding):
    """dx of one window for each pixel: the last that meets it."""
    n, h, w, channels = x.shape
    dx = np.zeros((n, h + 2 * padding, w + 2 * padding, channels), x.dtype)
    for i, j in np.ndindex(W.shape[:2]):
        dx[:, i : i + stride * dy.shape[1] : stride, j : j + stride * dy.shape[2] : stride] = dy @ W[i, j].T
    return dx[:, padding : padding + h, padding : padding + w]


def mixed(dy, x, W, stride, padding, *, dx=None, dW=None, db=None):
    """The right gradients, with others in the place of some."""
    right = conv_backward(dy, x, W, stride, padding)
    return tuple(mine if other is None else other for mine, other in zip(right, (dx, dW, db), strict=True))


def not_cut(dy, x, W, stride, padding):
    """dx with its border."""
    return conv_backward(dy, np.pad(x, ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0))), W, stride)[0]


@wrong
def overwritten(dy, x, W, stride=1, padding=0):
    """A pixel of your dx gets a part from one window only, the last that meets it. It must get one from each: += on zeros
    in place of =. And += with arrays of places counts a place once: take slices, or np.add.at."""
    return mixed(dy, x, W, stride, padding, dx=overwriting(dy, x, W, stride, padding))


@wrong
def kernel_turned(dy, x, W, stride=1, padding=0):
    """In your dx the kernel stands the wrong way round. When dx gathers from dy, as a convolution, W must be turned by
    half a turn, W[::-1, ::-1]. When dy is scattered into dx, it must not be turned."""
    return mixed(dy, x, W, stride, padding, dx=conv_backward(dy, x, W[::-1, ::-1], stride, padding)[0])


@wrong
def size_from_the_output(dy, x, W, stride=1, padding=0):
    """You computed the size of dx backwards from the output. Where the stride does not divide, pixels at the end are
    met by no window, and your dx lacks them. Take the size of x: their gradient is 0."""
    rows, columns = ((dy.shape[k] - 1) * stride + W.shape[k - 1] - 2 * padding for k in (1, 2))
    return mixed(dy, x, W, stride, padding, dx=conv_backward(dy, x, W, stride, padding)[0][:, :rows, :columns])


@wrong
def index_arrays(dy, x, W, stride=1, padding=0):
    """Each pixel of your dx got the part of one window. dx[r, q] += … with arrays of places writes a place that occurs
    several times only once. np.add.at adds each time; slices, one for each (i, j), need no such care."""
    turned = overwriting(dy[:, ::-1, ::-1], x, W[::-1, ::-1], stride, padding)
    return mixed(dy, x, W, stride, padding, dx=turned[:, ::-1, ::-1])


@wrong
def dW_without_stride(dy, x, W, stride=1, padding=0):
    """Your dW meets pixels that stand side by side. The windows stand stride pixels apart, as in forward: i : i + stride *
    H' : stride."""
    return mixed(dy, x, W, stride, padding, dW=conv_backward(dy, x, W, 1, padding)[1])


@wrong
def dW_without_border(dy, x, W, stride=1, padding=0):
    """Your dW reads x from its own first pixel on. Forward read the padded picture, whose border stands before it too: pad
    x as forward does, and read that."""
    moved = np.pad(x, ((0, 0), (0, 2 * padding), (0, 2 * padding), (0, 0)))
    return mixed(dy, x, W, stride, padding, dW=conv_backward(dy, moved, W, stride)[1])


also_wrong = (
    lambda dy, x, W, s, pad: mixed(dy, x, W, s, pad, dx=not_cut(dy, x, W, s, pad)),
    lambda dy, x, W, s, pad: mixed(dy, x, W, s, pad, dx=not_cut(dy, x, W, s, pad)[:, pad:-pad, pad:-pad]),
    lambda dy, x, W, s, pad: conv_backward(dy, x, W, s, pad)[:1] + conv_backward(dy / len(x), x, W, s, pad)[1:],
    lambda dy, x, W, s, pad: mixed(dy, x, W, s, pad, db=dy.sum(axis=0)),
    lambda dy, x, W, s, pad: mixed(dy, x, W, s, pad, dx=conv_backward(dy, x, W, 1, pad)[0]),
)


def inputs(rng):
    few = [np.arange(1.0, 1 + n * n).reshape(1, n, n, 1) for n in (2, 3)]
    digits = np.array([1.0, 10, 100, 1000]).reshape(2, 2, 1, 1)
    yield "whole numbers: a picture of 3 × 3, kernel 1, 10, 100, 1000", (*few, digits, 1, 0)
    for what, (x, W, b, stride, padding) in e05_4.inputs(rng):
        dy = rng.standard_normal(e05_4.my_conv(x, W, b, stride, padding).shape).astype(x.dtype)
        yield what, (dy, x, W, stride, padding)


def large(rng):
    x, W, _, stride, padding = e05_4.large(rng)
    return rng.standard_normal((16, 32, 32, 16), dtype=np.float32), x, W, stride, padding
