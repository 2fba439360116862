"""08.3  The start of He."""

import math

from dlcourse.exercises.unit import solution, wrong

hints = """
- fan_in is how many products are added up to make one output. How many is that for W of the shape (256, 10)?
- One output pixel of a convolution adds up kh · kw · C_in products: all axes of W but the last.
- The standard deviation is the square root of 2 / fan_in; math.prod(shape[:-1]) is fan_in.
"""


@solution
def he_std(shape):
    """shape of W: (D_in, D_out) or (kh, kw, C_in, C_out) -> standard deviation of its numbers at the start."""
    fan_in = math.prod(shape[:-1])  # how many products are added up for one output
    return math.sqrt(2 / fan_in)


@wrong
def one_not_two(shape):
    """You have 1 / fan_in. That keeps the size where all numbers pass. ReLU sets half of them to 0, and the 2 makes
    that good."""
    return math.sqrt(1 / math.prod(shape[:-1]))


@wrong
def one_axis_of_inputs(shape):
    """For a convolution you count the channels only. One output adds up kh · kw · C_in products: the window belongs to
    fan_in. With 3 × 3 your numbers would grow by a factor of 3 in each layer."""
    return math.sqrt(2 / shape[-2])


@wrong
def fan_out(shape):
    """You take fan_out, to how many outputs one input goes. That keeps the size of the gradients on the way back. The
    exercise asks for the way forward: how many products make one output."""
    return math.sqrt(2 / (math.prod(shape[:-2]) * shape[-1]))


@wrong
def last_axis(shape):
    """You divide by the last axis, the number of outputs. What matters is how many products are added up for one of
    them: all axes but the last."""
    return math.sqrt(2 / shape[-1])


@wrong
def first_axis(shape):
    """You divide by the first axis. For (D_in, D_out) that is right, but for (kh, kw, C_in, C_out) it is the height of
    the window. Take the product of all axes but the last."""
    return math.sqrt(2 / shape[0])


@wrong
def both_fans(shape):
    """This is the start of Glorot and Bengio, 2 / (fan_in + fan_out). It is made for tanh. He's counts fan_in only."""
    return math.sqrt(2 / (math.prod(shape[:-2]) * sum(shape[-2:])))


also_wrong = (
    lambda shape: 2 / math.prod(shape[:-1]),
    lambda shape: math.sqrt(2 / math.prod(shape)),
)


def inputs(rng):
    yield "affine, 2 inputs, 3 outputs", ((2, 3),)
    yield "affine, square", ((256, 256),)
    yield "one input", ((1, 5),)
    yield "convolution 3 × 3, 3 channels, 32 filters", ((3, 3, 3, 32),)
    yield "convolution 5 × 1, 2 channels, 7 filters", ((5, 1, 2, 7),)
    yield "the large affine layer of the story", ((4096, 512),)
