"""04.4  Backward from one bit a number."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- np.unpackbits gives eight bytes, 0 or 1, for each byte of bits. They stand in one row.
- 10 numbers take 2 bytes, and these give 16. The argument `count` says how many are wanted.
- np.unpackbits(bits, count=dy.size).reshape(dy.shape) is a mask in bytes. Multiply dy by it.
"""
costs = ((1.5, "a second array as large as dx, such as the mask in float32; a product of dy and the bytes needs none"),)


@solution
def relu_backward_from_bits(dy, bits):
    """dy any shape, bits = np.packbits(y > 0) -> dx, dy's shape and dtype."""
    mask = np.unpackbits(bits, count=dy.size).reshape(dy.shape)  # bytes, 0 or 1; count cuts the last byte's rest off
    return dy * mask


def unpacked(dy, bits, **order):
    return np.unpackbits(bits, count=dy.size, **order).reshape(dy.shape)  # type: ignore[call-overload]


@wrong
def rest_of_the_last_byte(dy, bits):
    """The last byte was filled up with zeros that belong to no number. Give np.unpackbits a count."""
    return dy * np.unpackbits(bits).reshape(dy.shape)


@wrong
def little_end_first(dy, bits):
    """You read each byte from the other end. np.packbits begins with the highest bit, bitorder='big'."""
    return dy * unpacked(dy, bits, bitorder="little")


@wrong
def a_byte_a_number(dy, bits):
    """You take each byte for one number. A byte stands for eight: np.unpackbits takes them apart."""
    return dy * (bits.reshape(dy.shape) > 0)


@wrong
def mask_alone(dy, bits):
    """You return the mask. Multiply it with dy."""
    return unpacked(dy, bits).astype(dy.dtype)


@wrong
def mask_turned(dy, bits):
    """You keep dy where the bit is 0. A bit of 1 says that the number was above 0 and went through."""
    return dy * (1 - unpacked(dy, bits))


also_wrong = (
    lambda dy, bits: dy * unpacked(dy, bits).astype(np.float64),
    lambda dy, bits: np.where(dy > 0, dy, 0).astype(dy.dtype),
)


def inputs(rng):
    def case(shape, dtype):
        return rng.standard_normal(shape).astype(dtype), np.packbits(rng.standard_normal(shape) > 0)

    yield "8 numbers, 1 byte", case((8,), np.float32)
    yield "10 numbers, 2 bytes", case((10,), np.float32)
    yield "(3, 5), 2 bytes", case((3, 5), np.float32)
    yield "(2, 3, 3, 2), 5 bytes", case((2, 3, 3, 2), np.float32)
    yield "one number", (np.array([[4.0]], np.float32), np.packbits([True]))
    yield "none above 0", (np.ones((4, 4), np.float32), np.packbits(np.zeros(16, bool)))
    yield "(5, 7), float64", case((5, 7), np.float64)


def large(rng):
    dy = rng.standard_normal((1024, 1024), dtype=np.float32)
    return dy, np.packbits(dy > 0.5)
