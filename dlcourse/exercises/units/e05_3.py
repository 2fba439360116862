"""05.3  The bytes of a convolution, beforehand."""

from dlcourse.exercises.unit import solution, wrong

parts = "output", "columns", "kept"
hints = """
- First the number of places: N · H' · W', with the formula of exercise 05.1 for each axis.
- At each place the output has F numbers, and a row of the columns has kernel · kernel · C numbers.
- Backward needs the windows of x for dW. What can they be made from again?
"""


@solution
def conv_bytes(x_shape, filters, kernel, stride, padding, itemsize):
    n, h, w, channels = x_shape
    out_h = (h + 2 * padding - kernel) // stride + 1
    out_w = (w + 2 * padding - kernel) // stride + 1
    places = n * out_h * out_w
    output = places * filters * itemsize
    columns = places * kernel * kernel * channels * itemsize  # a row for each place, whatever the filters
    kept = n * h * w * channels * itemsize  # x: the columns can be made from it again
    return output, columns, kept


@wrong
def a_window_a_pixel(x_shape, filters, kernel, stride, padding, itemsize):
    """You counted a window for each pixel of the input. There is one for each place, H' · W' of them, which the stride,
    the kernel and the padding decide."""
    n, h, w, channels = x_shape
    kept = n * h * w * channels * itemsize
    return n * h * w * filters * itemsize, kernel * kernel * kept, kept


@wrong
def filters_for_channels(x_shape, filters, kernel, stride, padding, itemsize):
    """Your columns grow with the filters. A window is cut from the input: it has kernel · kernel · C numbers, however
    many filters look at it."""
    output, _, kept = conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)
    return output, kernel * kernel * output, kept


@wrong
def keeps_columns(x_shape, filters, kernel, stride, padding, itemsize):
    """You keep the columns. That is what the textbook layer does. They can be made again from x, so it is enough to
    keep x."""
    output, columns, _ = conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)
    return output, columns, columns


@wrong
def keeps_both(x_shape, filters, kernel, stride, padding, itemsize):
    """You keep the output too. Look at the three gradients: y stands in none of them."""
    output, columns, kept = conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)
    return output, columns, kept + output


@wrong
def keeps_the_border(x_shape, filters, kernel, stride, padding, itemsize):
    """You keep x with its border. The border is zeros and can be laid again in backward: keep x without it."""
    n, h, w, channels = x_shape
    kept = n * (h + 2 * padding) * (w + 2 * padding) * channels * itemsize
    return *conv_bytes(x_shape, filters, kernel, stride, padding, itemsize)[:2], kept


@wrong
def stride_forgotten(x_shape, filters, kernel, stride, padding, itemsize):
    """The stride is missing in the number of places: with a stride there are fewer (05.1)."""
    return conv_bytes(x_shape, filters, kernel, 1, padding, itemsize)


also_wrong = (
    lambda *a: conv_bytes(*a[:5], 4),
    lambda x_shape, *a: conv_bytes((1, *x_shape[1:]), *a),
    lambda *a: (*conv_bytes(*a)[:2], 0),
    lambda x_shape, f, k, *a: (*(r := conv_bytes(x_shape, f, k, *a))[:2], r[2] + k * k * x_shape[3] * f * a[-1]),
    lambda x_shape, f, k, *a: ((r := conv_bytes(x_shape, f, k, *a))[0], r[1] // k, r[2]),
    lambda *a: (*conv_bytes(*a[:4], 0, a[5])[:2], conv_bytes(*a)[2]),
)


def inputs(rng):
    yield "two pictures, 5 × 4, 3 channels, 2 filters, 3 × 3", ((2, 5, 4, 3), 2, 3, 1, 0, 4)
    yield "the second convolution of the story", ((100, 32, 32, 32), 32, 3, 1, 1, 4)
    yield "the same in float64", ((100, 32, 32, 32), 32, 3, 1, 1, 8)
    yield "stride 2 that does not divide", ((8, 15, 16, 3), 64, 4, 2, 0, 4)
    yield "kernel 1 × 1", ((1, 8, 8, 16), 4, 1, 1, 0, 4)
    yield "7 × 7, stride 2, padding 3, float16", ((32, 224, 224, 3), 64, 7, 2, 3, 2)
