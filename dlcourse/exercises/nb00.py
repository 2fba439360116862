"""Exercises of notebook 00."""

import math
from collections.abc import Iterator

import numpy as np

from dlcourse.exercises.exercise import Exercise, Wrong


def array_bytes(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize


def _sum_of_shape(shape: tuple[int, ...], dtype: str) -> int:
    return sum(shape) * np.dtype(dtype).itemsize


def _numbers(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape)


def _always_four(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape) * 4


def _always_eight(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape) * 8


def _bits(shape: tuple[int, ...], dtype: str) -> int:
    return math.prod(shape) * np.dtype(dtype).itemsize * 8


def _shapes(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "one grey picture in float32", ((8, 8), "float32")
    yield "the 1,437 digits to learn from, in uint8", ((1437, 8, 8, 1), "uint8")
    yield "ten labels in int64", ((10,), "int64")
    yield "a single number in float64: its shape is ()", ((), "float64")
    yield "a batch of no pictures", ((0, 8, 8, 1), "float32")
    yield "100 colour pictures in float16", ((100, 32, 32, 3), "float16")


def affine_bytes(inputs: int, outputs: int) -> tuple[int, int, int]:
    params = 4 * (inputs * outputs + outputs)
    return params, params, 2 * params


def _no_bias(inputs: int, outputs: int) -> tuple[int, int, int]:
    params = 4 * inputs * outputs
    return params, params, 2 * params


def _bias_for_each_input(inputs: int, outputs: int) -> tuple[int, int, int]:
    params = 4 * (inputs * outputs + inputs)
    return params, params, 2 * params


def _numbers_not_bytes(inputs: int, outputs: int) -> tuple[int, int, int]:
    params = inputs * outputs + outputs
    return params, params, 2 * params


def _one_slot(inputs: int, outputs: int) -> tuple[int, int, int]:
    params = 4 * (inputs * outputs + outputs)
    return params, params, params


def _in_float64(inputs: int, outputs: int) -> tuple[int, int, int]:
    params = 8 * (inputs * outputs + outputs)
    return params, params, 2 * params


def _layers(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "3 inputs, 2 outputs", (3, 2)
    yield "affine_1 of this notebook", (128, 128)
    yield "affine_2 of this notebook", (128, 10)
    yield "1 input, 1 output", (1, 1)
    yield "the large layer of the story's network", (4096, 512)


EXERCISES = [
    Exercise(
        id="00.1",
        title="The bytes of an array",
        reference=array_bytes,
        inputs=_shapes,
        hints=(
            "The rule of section 1 has two factors. One comes from the shape alone, the other from the dtype alone.",
            (
                "`math.prod(shape)` multiplies all numbers of a tuple, and `np.dtype(name)` makes a dtype from its name. A "
                "dtype knows its bytes per number."
            ),
            "Return `math.prod(shape) * np.dtype(dtype).itemsize`.",
        ),
        wrong=(
            Wrong(
                _sum_of_shape,
                "You add up the numbers of the shape. 8 rows of 8 pixels are 64 numbers and not 16: multiply them.",
            ),
            Wrong(
                _numbers,
                "This is how many numbers the array has. Each takes several bytes: multiply by `itemsize` of the dtype.",
            ),
            Wrong(
                _always_four,
                "You take 4 bytes for every number. That is right for float32 only. Ask the dtype for its `itemsize`.",
            ),
            Wrong(
                _always_eight,
                "You take 8 bytes for every number, as for NumPy's usual float64. The dtype is an argument: ask it for "
                "its `itemsize`.",
            ),
            Wrong(
                _bits,
                "This is 8 times too much. The 32 in `float32` counts bits, and 8 bits are one byte. `itemsize` is in "
                "bytes already.",
            ),
        ),
    ),
    Exercise(
        id="00.2",
        title="What an affine layer costs as long as it is trained",
        reference=affine_bytes,
        inputs=_layers,
        hints=(
            (
                "Count numbers before bytes. How many weights are there, if there is one from each input to each output? "
                "And how many biases?"
            ),
            "Each parameter has one gradient, of the same size. Adam remembers two numbers for each parameter.",
            "`params = 4 * (inputs * outputs + outputs)`. The gradients take as much, the slots twice as much.",
        ),
        wrong=(
            Wrong(
                _no_bias,
                "The weights are counted, the biases are not. Each output has one number more, which is added to it.",
            ),
            Wrong(
                _bias_for_each_input,
                "You count one bias for each input. A bias is added to an output, so there is one for each output. A "
                "published table of the story's network has the same slip.",
            ),
            Wrong(
                _numbers_not_bytes,
                "These are numbers and not bytes. The layer is in float32: 4 bytes for each number.",
            ),
            Wrong(
                _one_slot,
                "Parameters and gradients are right. Adam remembers two numbers for each parameter, so its slots are "
                "twice the parameters.",
            ),
            Wrong(
                _in_float64,
                "Everything is twice too large: you count 8 bytes for each number. The networks of this course "
                "compute in float32, which takes 4.",
            ),
        ),
        parts=("params", "grads", "slots"),
    ),
]
