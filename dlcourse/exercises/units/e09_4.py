"""09.4  Clip by the norm of all gradients."""

import math

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- One number for all arrays: the root of the sum of the squares of every number in every array.
- If that norm is larger than max_norm, multiply each array by max_norm / norm; else leave them.
- norm = math.sqrt(sum(float(np.vdot(g, g)) for g in grads)); where it is 0, nothing is divided.
"""


@solution
def clipped(grads, max_norm):
    """grads: a list of arrays -> a list of arrays, whose norm, taken over all together, is at most max_norm."""
    # one norm for all arrays together; vdot multiplies and adds in one go, so no array of squares is made
    norm = math.sqrt(sum(float(np.vdot(g, g)) for g in grads))
    return [g * (max_norm / norm) if norm > max_norm else g for g in grads]


def by_norm(grads, max_norm, norm):
    return [g * (max_norm / norm) if norm > max_norm else g for g in grads]


@wrong
def each_by_its_own(grads, max_norm):
    """You clip each array by its own norm. Then large ones shrink and small ones do not, and the step points elsewhere.
    One norm over all arrays, one factor for all."""
    return [clipped([g], max_norm)[0] for g in grads]


@wrong
def each_number(grads, max_norm):
    """You clip each number. That is another method, and it turns the direction of the step. Here all numbers are
    multiplied by one factor."""
    return [np.clip(g, -max_norm, max_norm) for g in grads]


@wrong
def always(grads, max_norm):
    """You scale small gradients up to max_norm, too. Clipping only shortens: near the minimum short steps are right."""
    norm = math.sqrt(sum(float((g * g).sum()) for g in grads))
    return [g * (max_norm / norm) if norm else g for g in grads]


@wrong
def no_root(grads, max_norm):
    """You take the sum of the squares for the norm. The root is missing."""
    return by_norm(grads, max_norm, sum(float((g * g).sum()) for g in grads))


@wrong
def sum_of_norms(grads, max_norm):
    """You add the norms of the arrays. The norm of all of them together is the root of the sum of their squares: 3 and 4
    make 5, and not 7."""
    return by_norm(grads, max_norm, sum(float(np.sqrt((g * g).sum())) for g in grads))


also_wrong = (
    lambda grads, max_norm: by_norm(grads, max_norm, max(float(np.abs(g).max()) for g in grads)),
    lambda grads, max_norm: by_norm(grads, max_norm, math.sqrt(sum(float((g * g).mean()) for g in grads))),
    lambda grads, max_norm: grads if clipped(grads, max_norm)[0] is grads[0] else clipped(grads, 1.0),
)


def inputs(rng):
    yield "3 and 4, at most 1", ([np.array([3.0]), np.array([[4.0]])], 1.0)
    yield "3 and 4, at most 2", ([np.array([3.0]), np.array([[4.0]])], 2.0)
    yield "short already", ([np.array([0.3, 0.1]), np.array([0.2])], 1.0)
    yield "all zeros", ([np.zeros(3), np.zeros((2, 2))], 1.0)
    yield "a large and a small array, float32", (
        [100 * rng.standard_normal((4, 3), dtype=np.float32), rng.standard_normal(2, dtype=np.float32) / 8], 0.5
    )  # fmt: skip
