"""05.1  How many places a window has."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- Begin with stride 1 and no padding: 4 pixels, a window of 3. Its left edge can stand at pixel 0 and at pixel 1.
- The padded axis has size + 2 · padding pixels. The left edge can move to the right by at most that minus kernel.
- It moves in steps of stride, and a part of a step does not count: that is //. The place at 0 counts too: + 1.
"""


@solution
def out_size(size, kernel, stride, padding):
    # The left edge of the window goes from 0 to size + 2·padding − kernel, in steps of stride.
    last_start = size + 2 * padding - kernel
    return last_start // stride + 1  # + 1 for the place at 0


@wrong
def rounded_up(size, kernel, stride, padding):
    """You rounded up where the stride does not divide. Then the last window would reach over the end of the padded
    picture. A partial window is left out: round down."""
    return -(-(size + 2 * padding - kernel) // stride) + 1


@wrong
def padded_once(size, kernel, stride, padding):
    """You added the padding once. It is laid on both sides of the picture, so the axis has size + 2 · padding pixels."""
    return (size + padding - kernel) // stride + 1


@wrong
def kernel_forgotten(size, kernel, stride, padding):
    """You let the window start at each stride-th pixel of the whole axis. But it needs kernel pixels from its left edge
    on, so the edge cannot go to the end. Where is its last start?"""
    return (size + 2 * padding) // stride


@wrong
def not_whole(size, kernel, stride, padding):
    """You divided with /. A number of places is a whole number, and a part of a step does not count: // rounds down."""
    return (size + 2 * padding - kernel) / stride + 1


@wrong
def stride_forgotten(size, kernel, stride, padding):
    """The stride is missing. The left edge moves in steps of stride, so there are fewer places: divide by it."""
    return size + 2 * padding - kernel + 1


@wrong
def padding_forgotten(size, kernel, stride, padding):
    """The padding is missing. It is laid on both sides of the picture, so the axis has size + 2 · padding pixels."""
    return (size - kernel) // stride + 1


also_wrong = (
    lambda size, kernel, stride, padding: (size + 2 * padding - kernel) // stride,
    lambda size, kernel, stride, padding: (size + 2 * padding - kernel + 1) // stride,
)


def inputs(rng):
    yield "5 pixels, kernel 2, stride 2", (5, 2, 2, 0)
    yield "4 pixels, kernel 3", (4, 3, 1, 0)
    yield "32 pixels, kernel 3, padding 1", (32, 3, 1, 1)
    yield "16 pixels, kernel 7, stride 3, padding 2", (16, 7, 3, 2)
    yield "28 pixels, kernel 5, stride 2, padding 2", (28, 5, 2, 2)
    yield "224 pixels, kernel 7, stride 2, padding 3", (224, 7, 2, 3)
    yield "1 pixel, kernel 1", (1, 1, 1, 0)
    yield "7 pixels, kernel 7, stride 5", (7, 7, 5, 0)
    yield "8 pixels, kernel 3, stride 5", (8, 3, 5, 0)
