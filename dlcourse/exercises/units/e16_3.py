"""16.3  Places in a block."""

import math

from dlcourse.exercises.unit import solution, wrong

parts = "offsets", "bytes"
hints = """
- Keep the end of what is laid so far. The next array begins at that end, rounded up to a multiple of align.
- The bytes of an array are math.prod(shape) * itemsize. math.prod(()) is 1: a single number.
- Rounded up: -(-end // align) * align. Round the end after each array, then it is the next offset and, last, the size.
"""


@solution
def places(shapes, itemsize, align):
    """shapes: a list of tuples -> a list of offsets, the bytes of the block."""
    offsets, end = [], 0
    for shape in shapes:
        offsets.append(end)
        end += math.prod(shape) * itemsize
        end = -(-end // align) * align  # up to the next multiple, which is where the next array begins
    return offsets, end


def laid(sizes, align):
    offsets, end = [], 0
    for size in sizes:
        offsets.append(end)
        end = -(-(end + size) // align) * align
    return offsets, end


@wrong
def not_aligned(shapes, itemsize, align):
    """Your arrays lie close together. Each has to begin at a multiple of align."""
    return laid([math.prod(shape) * itemsize for shape in shapes], 1)


@wrong
def in_numbers(shapes, itemsize, align):
    """You count numbers. Offsets are bytes: each number takes itemsize of them."""
    return laid([math.prod(shape) for shape in shapes], align)


@wrong
def always_one_more(shapes, itemsize, align):
    """An array that ends at a multiple of align needs no gap after it. You leave one of align bytes."""
    return laid([math.prod(shape) * itemsize // align * align + 1 for shape in shapes], align)


@wrong
def size_not_rounded(shapes, itemsize, align):
    """Your offsets are right. The block's bytes are rounded up to align, too: then blocks can lie side by side."""
    offsets, _ = places(shapes, itemsize, align)
    return offsets, offsets[-1] + math.prod(shapes[-1]) * itemsize if shapes else 0


@wrong
def ends(shapes, itemsize, align):
    """You hand back where each array ends. An offset is where it begins; the first one is 0."""
    offsets, size = places(shapes, itemsize, align)
    return [*offsets[1:], size][: len(offsets)], size


def down(shapes, itemsize, align):
    offsets, end = [], 0
    for shape in shapes:
        offsets.append(end // align * align)
        end += math.prod(shape) * itemsize
    return offsets, end // align * align


def first_axis(shapes, itemsize, align):
    return laid([shape[0] * itemsize if shape else itemsize for shape in shapes], align)


def offsets_alone(shapes, itemsize, align):
    return places(shapes, itemsize, align)[0]


also_wrong = down, first_axis, offsets_alone


def inputs(rng):
    yield "three arrays of float32, at multiples of 64", ([(3, 9), (5,), (2, 2)], 4, 64)
    yield "an array that fills its place", ([(16,), (4, 4), (1,)], 4, 64)
    yield "single numbers in float64", ([(), (), (7,)], 8, 16)
    yield "an empty array between two", ([(2,), (0, 3), (2,)], 8, 8)
    yield "nothing", ([], 4, 64)
