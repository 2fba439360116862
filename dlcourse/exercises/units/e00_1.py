"""00.1  The bytes of an array."""

import math

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- The rule of section 1 has two factors. One comes from the shape alone, the other from the dtype alone.
- `math.prod(shape)` multiplies all numbers of a tuple, and `np.dtype(name)` makes a dtype from its name. A dtype knows
  its bytes per number.
- Return `math.prod(shape) * np.dtype(dtype).itemsize`.
"""


@solution
def array_bytes(shape, dtype):
    """How many bytes does an array take?  shape: a tuple, dtype: a name such as "float32" -> int."""
    return math.prod(shape) * np.dtype(dtype).itemsize  # the product of () is 1: a single number


@wrong
def sum_of_shape(shape, dtype):
    """You add up the numbers of the shape. 8 rows of 8 pixels are 64 numbers and not 16: multiply them."""
    return sum(shape) * np.dtype(dtype).itemsize


@wrong
def numbers(shape, dtype):
    """This is how many numbers the array has. Each takes several bytes: multiply by `itemsize` of the dtype."""
    return math.prod(shape)


@wrong
def always_four(shape, dtype):
    """You take 4 bytes for every number. That is right for float32 only. Ask the dtype for its `itemsize`."""
    return math.prod(shape) * 4


@wrong
def always_eight(shape, dtype):
    """You take 8 bytes for every number, as for NumPy's usual float64. The dtype is an argument: ask it for its
    `itemsize`."""
    return math.prod(shape) * 8


@wrong
def bits(shape, dtype):
    """This is 8 times too much. The 32 in `float32` counts bits, and 8 bits are one byte. `itemsize` is in bytes
    already."""
    return math.prod(shape) * np.dtype(dtype).itemsize * 8


@wrong
def made(shape, dtype):
    """You make the array and ask it. That takes the memory that you want to know about, and fails for an array that does
    not fit. The rule needs only shape and dtype."""
    return np.zeros(shape, dtype).nbytes


def inputs(rng):
    yield "one grey picture in float32", ((8, 8), "float32")
    yield "the 1,437 digits to learn from, in uint8", ((1437, 8, 8, 1), "uint8")
    yield "ten labels in int64", ((10,), "int64")
    yield "a single number in float64: its shape is ()", ((), "float64")
    yield "a batch of no pictures", ((0, 8, 8, 1), "float32")
    yield "100 colour pictures in float16", ((100, 32, 32, 3), "float16")
    yield "an array that no machine can hold: make none", ((10**9, 10**9), "float32")
