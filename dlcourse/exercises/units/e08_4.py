"""08.4  What a chain keeps."""

from itertools import pairwise

from dlcourse.exercises.unit import solution, wrong

hints = """
- An affine layer keeps its input. A ReLU keeps its output. Write down who keeps what for the widths 64, 128, 10.
- The output of a ReLU and the input of the affine layer after it are one array: count it once.
- Of the widths 64, 128, 10 two arrays are kept: x, with 64 numbers a sample, and the output of the ReLU, with 128.
"""


@solution
def saved_bytes(widths, batch, itemsize):
    """widths (D_0, D_1, …, D_L) of affine layers with a ReLU between each two -> bytes kept for backward."""
    kept = widths[:-1]  # x, and the output of each ReLU, which is the input of the next affine layer: one array
    return batch * itemsize * sum(kept)


@wrong
def relu_twice(w, n, item):
    """You count the arrays between two layers twice, once for the ReLU and once for the affine layer. Both keep the
    same array in memory. It has two names and one strip of bytes."""
    return n * item * (w[0] + 2 * sum(w[1:-1]))


@wrong
def scores_too(w, n, item):
    """You count the output of the last affine layer too. Its backward needs its input and not its output, and no ReLU
    follows. The loss gets it, and it is not kept for backward."""
    return n * item * sum(w)


@wrong
def without_pictures(w, n, item):
    """You left out the input of the first layer. Its dW is x transposed times dy, so x has to stay until the very end
    of backward."""
    return n * item * sum(w[1:-1])


@wrong
def with_masks(w, n, item):
    """You add a mask of one byte a number for each ReLU. Ours keeps no mask: it keeps its output, and y > 0 is computed
    from that in backward."""
    return n * (item * sum(w[:-1]) + sum(w[1:-1]))


@wrong
def outputs(widths, batch, itemsize):
    """You count the output of each affine layer. Backward needs its input; and its output is kept by nobody, since
    ReLU keeps its own."""
    return batch * itemsize * sum(widths[1:])


@wrong
def inputs_and_outputs(widths, batch, itemsize):
    """You count the input and the output of each affine layer. An affine layer keeps its input alone, and a ReLU's
    output is the next one's input: one array."""
    return batch * itemsize * (sum(widths[:-1]) + sum(widths[1:]))


also_wrong = (
    lambda w, n, item: item * sum(w[:-1]),
    lambda w, n, item: item * sum((d + 1) * u for d, u in pairwise(w)),
    lambda w, n, item: n * sum(w[:-1]),
    lambda widths, batch, itemsize: itemsize * sum(a * b for a, b in pairwise(widths)),
)


def inputs(rng):
    yield "one layer from 3 to 2, one sample", ((3, 2), 1, 4)
    yield "digits: 64, 128, 10", ((64, 128, 10), 100, 4)
    yield "16 layers of 256, batch 1,024", ((256,) * 17, 1024, 4)
    yield "five widths, float64", ((7, 5, 3, 5, 2), 6, 8)
