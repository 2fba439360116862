"""16.4  Read arrays out of a block."""

import math

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "arrays", "all views"
hints = """
- Cut out the bytes of one array, then look at them as its dtype, then give them its shape.
- block[offset : offset + bytes].view(dtype).reshape(shape). The bytes are math.prod(shape) times np.dtype(dtype).itemsize.
- np.ndarray(shape, dtype, block, offset) does all of it; then all(np.shares_memory(array, block) for …).
"""


@solution
def read_arrays(block, table):
    """block (B,) uint8; table: [(name, offset, shape, dtype), …] -> {name: array}, whether all are views of block."""
    # an array over memory that is there already: nothing is copied
    arrays = {name: np.ndarray(shape, dtype, block, offset) for name, offset, shape, dtype in table}
    return arrays, all(np.shares_memory(array, block) for array in arrays.values())


def cut(block, offset, shape, dtype):
    return block[offset : offset + math.prod(shape) * np.dtype(dtype).itemsize].view(dtype).reshape(shape)


@wrong
def copied(block, table):
    """Your arrays have the right numbers and are copies. Who writes into them does not write into the block. Slices, view
    and reshape copy nothing; np.array, copy and astype do."""
    return {name: cut(block, at, shape, dtype).copy() for name, at, shape, dtype in table}, False


@wrong
def converted(block, table):
    """You convert each byte into a number. The bytes *are* the numbers: look at them as the dtype, with view and not with
    astype."""
    found = {name: block[at : at + math.prod(shape)].astype(dtype).reshape(shape) for name, at, shape, dtype in table}
    return found, False


@wrong
def no_shape(block, table):
    """Your numbers are right and lie in one row. Give each array its shape."""
    return {name: cut(block, at, (math.prod(shape),), dtype) for name, at, shape, dtype in table}, True


@wrong
def one_after_the_other(block, table):
    """You lay the arrays end to end and do not look at the offsets. There are gaps between them, and the table need not be
    in order."""
    found, end = {}, 0
    for name, _, shape, dtype in table:
        found[name] = cut(block, end, shape, dtype)
        end += found[name].nbytes
    return found, True


@wrong
def columns_first(block, table):
    """You fill the shape column by column (order="F"). NumPy's arrays lie row by row unless somebody says otherwise."""
    found = {name: cut(block, at, (math.prod(shape),), dtype) for name, at, shape, dtype in table}
    return {name: found[name].reshape(shape, order="F") for name, _, shape, _ in table}, True


def arrays_alone(block, table):
    return read_arrays(block, table)[0]


def raw_bytes(block, table):
    sizes = {name: math.prod(shape) * np.dtype(dtype).itemsize for name, _, shape, dtype in table}
    return {name: cut(block, at, (sizes[name],), "u1") for name, at, _, _ in table}, True


def first_alone(block, table):
    return read_arrays(block, table[:1])


also_wrong = arrays_alone, raw_bytes, first_alone


def packed(arrays, order=None):
    """A block and its table, each array at a multiple of 64, in the order of `order`."""
    table, end = {}, 0
    for name in order or arrays:
        table[name] = name, end, arrays[name].shape, arrays[name].dtype.str
        end += -(-arrays[name].nbytes // 64) * 64
    block = np.zeros(end, np.uint8)
    for name, at, shape, dtype in table.values():
        cut(block, at, shape, dtype)[...] = arrays[name]
    return block, [table[name] for name in arrays]


def inputs(rng):
    W, b = rng.standard_normal((3, 5), dtype=np.float32), rng.standard_normal(5)
    yield "a matrix in float32, a row in float64", packed({"W": W, "b": b})
    yield "the table in another order than the block", packed({"W": W, "b": b}, order=["b", "W"])
    yield "integers of two bytes, (2, 3, 2)", packed({"n": np.arange(12, dtype=np.int16).reshape(2, 3, 2), "b": b})
