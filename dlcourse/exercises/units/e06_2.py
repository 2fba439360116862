"""06.2  Four indices in one byte."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- index[0::4] is the first index of each group of four, index[1::4] the second, and so on.
- a << 2 moves the bits of a by two places to the left; a | b puts together bits that do not meet.
- Where 4 does not divide the length, first copy the indices into zeros: -(-index.size // 4) * 4 of them.
- If room is that array: room[0::4] | room[1::4] << 2 | room[2::4] << 4 | room[3::4] << 6, all in np.uint8.
"""
costs = (
    (3.0, "an array on the way is wider than a byte"),
    (1.3, "one more temporary"),
)


@solution
def packed(index):
    """index (n,), uint8, 0 to 3 -> (n/4 rounded up,), uint8: four indices a byte, the first in the lowest bits."""
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)  # the next multiple of 4: the rest stays 0
    room[: index.size] = index
    return room[0::4] | room[1::4] << 2 | room[2::4] << 4 | room[3::4] << 6


@wrong
def first_one_on_top(index):
    """Your first index stands in the highest two bits. It is asked for in the lowest two, so that byte & 3 reads it."""
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)
    room[: index.size] = index
    return room[0::4] << 6 | room[1::4] << 4 | room[2::4] << 2 | room[3::4]


@wrong
def rest_left_out(index):
    """The last one, two or three indices are lost where the length is no multiple of 4. Their byte is missing: round
    the number of bytes up."""
    return packed(index[: index.size // 4 * 4])


@wrong
def shifted_by_one(index):
    """You move each index by one bit more than the one before. An index of 0 to 3 has two bits, so neighbours write
    over each other. Move by 0, 2, 4 and 6."""
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)
    room[: index.size] = index
    return room[0::4] | room[1::4] << 1 | room[2::4] << 2 | room[3::4] << 3


@wrong
def one_byte_too_many(index):
    """Where the length is a multiple of 4 you have one byte too many. Rounding up is -(-n // 4), and not n // 4 + 1."""
    return np.append(packed(index), np.uint8(0)) if index.size % 4 == 0 else packed(index)


also_wrong = (lambda index: packed(index).astype(np.int64),)


def inputs(rng):
    yield "four indices", (np.array([1, 2, 3, 0], np.uint8),)
    yield "four times 3", (np.full(4, 3, np.uint8),)
    yield "one index", (np.array([2], np.uint8),)
    yield "seven indices", (np.array([3, 1, 0, 2, 1, 3, 2], np.uint8),)
    yield "no index", (np.zeros(0, np.uint8),)
    yield "1,001 indices", (rng.integers(0, 4, 1001, dtype=np.uint8),)


def large(rng):
    return (rng.integers(0, 4, 8 * 2**20, dtype=np.uint8),)
