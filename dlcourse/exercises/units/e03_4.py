"""03.4  The bytes of a stack."""

from itertools import pairwise

from dlcourse.exercises.unit import solution, wrong

parts = "params", "saved"
hints = """
- Go through the layers: widths [784, 512, 10] are two layers, 784 → 512 and 512 → 10.
- A layer has D_in · D_out weights and D_out biases. It keeps its input: batch · D_in numbers.
- The last output is the input of no layer of the stack: nobody keeps it. Multiply by itemsize at the end.
"""


@solution
def affine_bytes(widths, batch, itemsize):
    """-> bytes of all W and b, bytes of the inputs that the layers keep for backward."""
    params = saved = 0
    for d_in, d_out in pairwise(widths):  # 784 and 512, 512 and 10
        params += d_in * d_out + d_out
        saved += batch * d_in
    return params * itemsize, saved * itemsize


@wrong
def no_bias(widths, batch, itemsize):
    """Your params have no biases: each layer has D_out of them, beside D_in · D_out weights."""
    params = sum(d_in * d_out for d_in, d_out in pairwise(widths))
    return params * itemsize, affine_bytes(widths, batch, itemsize)[1]


@wrong
def bias_of_inputs(widths, batch, itemsize):
    """You gave each input a bias. A layer has one for each output: (D_in + 1) · D_out numbers. The published table of
    the story has the same fault (notebook 12): (10 + 1) · 512 where (512 + 1) · 10 is right."""
    params = sum(d_in * (d_out + 1) for d_in, d_out in pairwise(widths))
    return params * itemsize, affine_bytes(widths, batch, itemsize)[1]


@wrong
def outputs(widths, batch, itemsize):
    """Your saved bytes are those of the outputs. Backward needs x and not y (section 10): a layer keeps its input."""
    return affine_bytes(widths, batch, itemsize)[0], batch * sum(widths[1:]) * itemsize


@wrong
def without_the_batch(widths, batch, itemsize):
    """You left out the batch itself. It is the input of the first layer, which keeps it for its dW."""
    return affine_bytes(widths, batch, itemsize)[0], batch * sum(widths[1:-1]) * itemsize


@wrong
def inputs_and_outputs(widths, batch, itemsize):
    """Each layer keeps its input and its output in your count. Backward does not need the output; and one layer's
    output is the next one's input, so most arrays are counted twice."""
    return affine_bytes(widths, batch, itemsize)[0], batch * sum(widths[:-1] + widths[1:]) * itemsize


@wrong
def every_array_once(widths, batch, itemsize):
    """You count each array once, which is right, but also the last output. It is the input of no layer of the stack, so
    nobody keeps it."""
    return affine_bytes(widths, batch, itemsize)[0], batch * sum(widths) * itemsize


also_wrong = (
    lambda widths, batch, itemsize: affine_bytes(widths, 1, itemsize),
    lambda widths, batch, size: (batch * (both := affine_bytes(widths, batch, size))[0], both[1]),
    lambda widths, batch, itemsize: affine_bytes(widths, batch, 1),
    lambda widths, batch, itemsize: affine_bytes(widths, batch, 4),
)


def inputs(rng):
    yield "one layer, 3 → 2, float32", ([3, 2], 5, 4)
    yield "two layers, 3 → 4 → 2, float64", ([3, 4, 2], 5, 8)
    yield "one sample", ([784, 512, 512, 10], 1, 4)
    yield "three layers, 784 → 512 → 512 → 10, batch 64", ([784, 512, 512, 10], 64, 4)
    yield "two equal widths, half precision", ([256, 256], 100, 2)
