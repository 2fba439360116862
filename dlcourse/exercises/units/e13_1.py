"""13.1  The three sums."""

import math

from dlcourse.exercises.unit import solution, wrong

parts = "the model", "handed on", "all pictures"
hints = """
- Three products. The second is twice the first; that is the story's rule, whether it holds or not.
- The numbers of one picture are the product of its shape: math.prod(shape).
- itemsize * parameters, twice that, and pictures * math.prod(shape) * itemsize.
"""


@solution
def estimate_bytes(parameters, pictures, shape, itemsize):
    """shape: of a picture, such as (28, 28, 3) -> bytes of the model, handed on, of all pictures."""
    model = itemsize * parameters
    # the story's rule for what forward hands on; its third sum counts numbers of all pictures
    return model, 2 * model, pictures * math.prod(shape) * itemsize


@wrong
def numbers_and_not_bytes(parameters, pictures, shape, itemsize):
    """You count numbers. Each of them takes itemsize bytes: 8 for float64."""
    return parameters, 2 * parameters, pictures * math.prod(shape)


@wrong
def always_eight(parameters, pictures, shape, itemsize):
    """You take 8 bytes a number, whatever itemsize is. The story's floats had 8; float32 has 4, a byte 1."""
    return estimate_bytes(parameters, pictures, shape, 8)


@wrong
def handed_on_once(parameters, pictures, shape, itemsize):
    """Your second sum is the model once. The story estimated it "generously" as twice the model."""
    model, _, data = estimate_bytes(parameters, pictures, shape, itemsize)
    return model, model, data


@wrong
def one_channel(parameters, pictures, shape, itemsize):
    """You multiply height and width and forget the channels: a colour picture has three numbers a pixel."""
    return *estimate_bytes(parameters, pictures, shape, itemsize)[:2], pictures * shape[0] * shape[1] * itemsize


@wrong
def shuffled_too(parameters, pictures, shape, itemsize):
    """Your third sum counts the pictures twice. A shuffled copy would do that, and the sum of the story leaves it out: it
    comes later, as one of the things that were forgotten."""
    model, handed, data = estimate_bytes(parameters, pictures, shape, itemsize)
    return model, handed, 2 * data


def sum_of_shape(parameters, pictures, shape, itemsize):
    return *estimate_bytes(parameters, pictures, shape, itemsize)[:2], pictures * sum(shape) * itemsize


def handed_on_of_the_pictures(parameters, pictures, shape, itemsize):
    model, _, data = estimate_bytes(parameters, pictures, shape, itemsize)
    return model, 2 * data, data


def megabytes(parameters, pictures, shape, itemsize):
    return tuple(size / 1e6 for size in estimate_bytes(parameters, pictures, shape, itemsize))


also_wrong = sum_of_shape, handed_on_of_the_pictures, megabytes


def inputs(rng):
    yield "the story's", (2_287_414, 50_000, (28, 28, 3), 8)
    yield "float32, one channel", (10, 7, (8, 8, 1), 4)
    yield "one small picture as bytes", (3, 1, (2, 5, 4), 1)
    yield "a picture as one row of numbers", (100, 20, (64, 1), 8)
