"""Right and wrong answers to the exercises of notebook 05, and the inputs that they are tried on."""

from collections.abc import Iterator

import numpy as np

Cases = Iterator[tuple[str, tuple]]


def window_sizes(rng: np.random.Generator) -> Cases:
    yield "5 pixels, kernel 2, stride 2", (5, 2, 2, 0)
    yield "4 pixels, kernel 3", (4, 3, 1, 0)
    yield "32 pixels, kernel 3, padding 1", (32, 3, 1, 1)
    yield "16 pixels, kernel 7, stride 3, padding 2", (16, 7, 3, 2)
    yield "28 pixels, kernel 5, stride 2, padding 2", (28, 5, 2, 2)
    yield "224 pixels, kernel 7, stride 2, padding 3", (224, 7, 2, 3)
    yield "1 pixel, kernel 1", (1, 1, 1, 0)
    yield "7 pixels, kernel 7, stride 5", (7, 7, 5, 0)
    yield "8 pixels, kernel 3, stride 5", (8, 3, 5, 0)


def out_size(size, kernel, stride, padding):
    return (size + 2 * padding - kernel) // stride + 1


def rounded_up(size, kernel, stride, padding):
    return -(-(size + 2 * padding - kernel) // stride) + 1


def padded_once(size, kernel, stride, padding):
    return (size + padding - kernel) // stride + 1


def first_forgotten(size, kernel, stride, padding):
    return (size + 2 * padding - kernel) // stride


def kernel_forgotten(size, kernel, stride, padding):
    return (size + 2 * padding) // stride


def not_whole(size, kernel, stride, padding):
    return (size + 2 * padding - kernel) / stride + 1


def pictures_and_windows(rng: np.random.Generator) -> Cases:
    yield "one picture, 3 × 3, one channel, kernel 2 × 2", (np.arange(9.0).reshape(1, 3, 3, 1), (2, 2), 1, 0)
    yield "two pictures, 4 × 5, three channels, kernel 2 × 3", (rng.standard_normal((2, 4, 5, 3)), (2, 3), 1, 0)
    yield "stride 2 that does not divide, padding 1", (rng.standard_normal((2, 6, 5, 2)), (3, 2), 2, 1)
    yield "stride larger than the kernel", (rng.standard_normal((1, 7, 8, 2)), (2, 2), 3, 0)
    yield "float32", (rng.standard_normal((3, 4, 4, 2), dtype=np.float32), (3, 3), 1, 1)
    yield "whole numbers in uint8", (rng.integers(0, 256, (2, 4, 4, 3), dtype=np.uint8), (1, 3), 1, 0)


def _windows(x, kernel, stride, padding, dtype=None):
    """(N, H', W', kh, kw, C): a copy of every window."""
    (kh, kw), (n, h, w, c) = kernel, x.shape
    out_h, out_w = out_size(h, kh, stride, padding), out_size(w, kw, stride, padding)
    padded = np.zeros((n, h + 2 * padding, w + 2 * padding, c), x.dtype)
    padded[:, padding : padding + h, padding : padding + w] = x
    windows = np.empty((n, out_h, out_w, kh, kw, c), dtype or x.dtype)
    for i in range(kh):
        for j in range(kw):
            windows[:, :, :, i, j] = padded[:, i : i + stride * out_h : stride, j : j + stride * out_w : stride]
    return windows


def im2col(x, kernel, stride, padding):
    kh, kw = kernel
    return _windows(x, kernel, stride, padding).reshape(-1, kh * kw * x.shape[3])


def channels_first(x, kernel, stride, padding):
    windows = _windows(x, kernel, stride, padding)
    return windows.transpose(0, 1, 2, 5, 3, 4).reshape(-1, windows[0, 0, 0].size)


def columns_before_rows(x, kernel, stride, padding):
    windows = _windows(x, kernel, stride, padding)
    return windows.transpose(0, 1, 2, 4, 3, 5).reshape(-1, windows[0, 0, 0].size)


def windows_in_columns(x, kernel, stride, padding):
    return im2col(x, kernel, stride, padding).T


def pictures_last(x, kernel, stride, padding):
    windows = _windows(x, kernel, stride, padding)
    return windows.transpose(1, 2, 0, 3, 4, 5).reshape(-1, windows[0, 0, 0].size)


def in_float64(x, kernel, stride, padding):
    return _windows(x, kernel, stride, padding, np.float64).reshape(-1, kernel[0] * kernel[1] * x.shape[3])


def not_padded(x, kernel, stride, padding):
    return im2col(x, kernel, stride, 0)


def padded_on_all_axes(x, kernel, stride, padding):
    return im2col(np.pad(x, padding), kernel, stride, 0)


def every_place(x, kernel, stride, padding):
    return im2col(x, kernel, 1, padding)


def layers(rng: np.random.Generator) -> Cases:
    yield "two pictures, 5 × 4, 3 channels, 2 filters, 3 × 3", ((2, 5, 4, 3), 2, 3, 1, 0, 4)
    yield "the second convolution of the story", ((100, 32, 32, 32), 32, 3, 1, 1, 4)
    yield "the same in float64", ((100, 32, 32, 32), 32, 3, 1, 1, 8)
    yield "stride 2 that does not divide", ((8, 15, 16, 3), 64, 4, 2, 0, 4)
    yield "kernel 1 × 1", ((1, 8, 8, 16), 4, 1, 1, 0, 4)
    yield "7 × 7, stride 2, padding 3, float16", ((32, 224, 224, 3), 64, 7, 2, 3, 2)


def conv_bytes(x_shape, filters, kernel, stride, padding, itemsize):
    n, h, w, channels = x_shape
    places = n * out_size(h, kernel, stride, padding) * out_size(w, kernel, stride, padding)
    kept = n * h * w * channels * itemsize
    return places * filters * itemsize, places * kernel * kernel * channels * itemsize, kept


def a_window_a_pixel(x_shape, filters, kernel, stride, padding, itemsize):
    n, h, w, channels = x_shape
    kept = n * h * w * channels * itemsize
    return n * h * w * filters * itemsize, kernel * kernel * kept, kept


def filters_for_channels(x_shape, filters, kernel, stride, padding, itemsize):
    output, _, kept = conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)
    return output, kernel * kernel * output, kept


def always_four(x_shape, filters, kernel, stride, padding, itemsize):
    return conv_bytes(x_shape, filters, kernel, stride, padding, 4)


def one_picture(x_shape, filters, kernel, stride, padding, itemsize):
    return conv_bytes((1, *x_shape[1:]), filters, kernel, stride, padding, itemsize)


def keeps_columns(x_shape, filters, kernel, stride, padding, itemsize):
    output, columns, _ = conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)
    return output, columns, columns


def keeps_both(x_shape, filters, kernel, stride, padding, itemsize):
    output, columns, kept = conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)
    return output, columns, kept + output


def keeps_nothing(x_shape, filters, kernel, stride, padding, itemsize):
    return *conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)[:2], 0


def keeps_the_border(x_shape, filters, kernel, stride, padding, itemsize):
    n, h, w, channels = x_shape
    kept = n * (h + 2 * padding) * (w + 2 * padding) * channels * itemsize
    return *conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)[:2], kept


def keeps_weights(x_shape, filters, kernel, stride, padding, itemsize):
    output, columns, kept = conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)
    return output, columns, kept + kernel * kernel * x_shape[3] * filters * itemsize


def kernel_once(x_shape, filters, kernel, stride, padding, itemsize):
    output, columns, kept = conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)
    return output, columns // kernel, kept


def _layer(rng, x_shape, filters, kernel, stride, padding, dtype=np.float64):
    kh, kw = kernel
    x = rng.standard_normal(x_shape).astype(dtype)
    W = rng.standard_normal((kh, kw, x_shape[3], filters)).astype(dtype)
    return x, W, rng.standard_normal(filters).astype(dtype), stride, padding


LAYERS = (
    ("one picture, 4 × 4, one channel, kernel 2 × 2", (1, 4, 4, 1), 1, (2, 2), 1, 0),
    ("5 × 5, kernel 2 × 2, stride 2: the last row and column are left over", (1, 5, 5, 1), 1, (2, 2), 2, 0),
    ("two pictures, 5 × 6, three channels, two filters, kernel 3 × 2", (2, 5, 6, 3), 2, (3, 2), 1, 0),
    ("padding 1", (3, 4, 5, 2), 3, (3, 3), 1, 1),
    ("stride 2 that does not divide, padding 1", (2, 8, 7, 2), 2, (3, 3), 2, 1),
    ("16 × 16, kernel 7 × 7, stride 3, padding 2", (1, 16, 16, 1), 2, (7, 7), 3, 2),
    ("stride larger than the kernel", (2, 7, 8, 2), 2, (2, 2), 3, 0),
)


def convolutions(rng: np.random.Generator) -> Cases:
    for what, *sizes in LAYERS:
        yield what, _layer(rng, *sizes)
    yield "float32", _layer(rng, (2, 6, 6, 4), 3, (3, 3), 1, 1, np.float32)


def a_large_convolution(rng: np.random.Generator) -> tuple:
    return _layer(rng, (16, 32, 32, 16), 16, (3, 3), 1, 1, np.float32)


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


def turned(x, W, b, stride=1, padding=0):
    return my_conv(x, W[::-1, ::-1], b, stride, padding)


def bias_at_each_tap(x, W, b, stride=1, padding=0):
    return my_conv(x, W, W.shape[0] * W.shape[1] * b, stride, padding)


def bias_forgotten(x, W, b, stride=1, padding=0):
    return my_conv(x, W, 0 * b, stride, padding)


def always_float64(x, W, b, stride=1, padding=0):
    return my_conv(x, W, b, stride, padding).astype(np.float64)


def padded_with_the_edge(x, W, b, stride=1, padding=0):
    around = ((0, 0), (padding, padding), (padding, padding), (0, 0))
    return my_conv(np.pad(x, around, mode="edge"), W, b, stride, 0)


def side_by_side(x, W, b, stride=1, padding=0):
    return my_conv(x, W, b, 1, padding)


def gradients(rng: np.random.Generator) -> Cases:
    for what, arguments in convolutions(rng):
        x, W, _, stride, padding = arguments
        dy = rng.standard_normal(my_conv(*arguments).shape).astype(x.dtype)
        yield what, (dy, x, W, stride, padding)


def large_gradients(rng: np.random.Generator) -> tuple:
    x, W, _, stride, padding = a_large_convolution(rng)
    return rng.standard_normal((16, 32, 32, 16), dtype=np.float32), x, W, stride, padding


def conv_backward(dy, x, W, stride=1, padding=0):
    """One picture and one place of the kernel at a time: no columns."""
    return _backward(dy, x, W, stride, padding)


def _backward(dy, x, W, stride, padding, overwrite=False, cut=True):
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


def overwritten(dy, x, W, stride=1, padding=0):
    return _backward(dy, x, W, stride, padding, overwrite=True)


def padding_not_cut(dy, x, W, stride=1, padding=0):
    return _backward(dy, x, W, stride, padding, cut=False)


def kernel_turned(dy, x, W, stride=1, padding=0):
    _, dW, db = conv_backward(dy, x, W, stride, padding)
    return conv_backward(dy, x, W[::-1, ::-1], stride, padding)[0], dW, db


def divided_by_batch(dy, x, W, stride=1, padding=0):
    dx, dW, db = conv_backward(dy, x, W, stride, padding)
    return dx, dW / len(x), db / len(x)


def bias_a_place(dy, x, W, stride=1, padding=0):
    dx, dW, _ = conv_backward(dy, x, W, stride, padding)
    return dx, dW, dy.sum(axis=0)


def size_from_the_output(dy, x, W, stride=1, padding=0):
    """dx as large as the windows reach: (H' - 1)·s + kh - 2·padding."""
    dx, dW, db = conv_backward(dy, x, W, stride, padding)
    reached = [(out - 1) * stride + k - 2 * padding for out, k in zip(dy.shape[1:3], W.shape[:2], strict=True)]
    return dx[:, : reached[0], : reached[1]], dW, db


def stride_forgotten(dy, x, W, stride=1, padding=0):
    """Outputs taken for neighbours, one pixel apart, in dx."""
    _, dW, db = conv_backward(dy, x, W, stride, padding)
    return conv_backward(dy, x, W, 1, padding)[0], dW, db


def cut_from_both_ends(dy, x, W, stride=1, padding=0):
    """dx[padding:-padding], which is empty where padding is 0."""
    dx, dW, db = _backward(dy, x, W, stride, padding, cut=False)
    return dx[:, padding:-padding, padding:-padding], dW, db
