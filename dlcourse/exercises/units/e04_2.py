"""04.2  A softmax that survives."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- exp(1000) is too large for any float. What may you subtract from a row without changing its softmax?
- Subtract from each row its own maximum. keepdims=True keeps the axis, so that the shapes fit.
- The classes are on the last axis: axis=-1 finds it, whatever the number of axes.
- y = logits - logits.max(axis=-1, keepdims=True); then np.exp(y, out=y); then divide y by its sum over axis -1.
"""
costs = (
    (2.5, "the shifted scores, their exp and the result at once; work on in one array"),
    (1.5, "two arrays of this size at once; work on in one: np.exp(y, out=y), then y /= …"),
)


@solution
def softmax(logits):
    """logits (..., K) -> probabilities, same shape and dtype; each row along the last axis sums to 1."""
    y = logits - logits.max(axis=-1, keepdims=True)  # each row's own maximum: no number is above 0 now
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def shifted_by(logits, shift):
    e = np.exp(logits - shift)
    return e / e.sum(axis=-1, keepdims=True)


def along(logits, axis):
    e = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def without_keepdims(logits, of_max, of_sum):
    """keepdims=True is left out in the maximum, in the sum, or in both."""
    e = np.exp(logits - logits.max(axis=-1, keepdims=not of_max))
    return e / e.sum(axis=-1, keepdims=not of_sum)


@wrong
def not_shifted(logits):
    """Your formula is right on paper. But exp(1000) is infinite in a float, and infinite / infinite is NaN. Subtract
    the maximum of each row before exp."""
    return shifted_by(logits, 0.0)


@wrong
def one_maximum(logits):
    """One maximum of the whole batch is too large for a low row: 0 / 0 is NaN. Each row needs its own."""
    return shifted_by(logits, logits.max())


@wrong
def one_sum(logits):
    """You divide by the sum over the whole batch. Each row has to sum to 1: sum along the last axis."""
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum()


@wrong
def over_the_batch(logits):
    """Your columns sum to 1, as if samples competed. The classes are on the last axis: axis=-1."""
    return along(logits, 0)


@wrong
def both_without_keepdims(logits):
    """You left out keepdims=True, in the maximum and in the sum. Both have lost their last axis, and broadcasting sets
    them beside the columns and not beside the rows."""
    return without_keepdims(logits, of_max=True, of_sum=True)


@wrong
def naive(logits):
    """Your whole array sums to 1, and each row should: axis=-1, keepdims=True. And exp(1000) is infinite: subtract
    each row's maximum before exp."""
    return np.exp(logits) / np.exp(logits).sum()


def one_sum_one_maximum(logits):
    e = np.exp(logits - logits.max())
    return e / e.sum()


also_wrong = (
    lambda logits: along(logits, 1),
    lambda logits: without_keepdims(logits, of_max=True, of_sum=False),
    lambda logits: without_keepdims(logits, of_max=False, of_sum=True),
    lambda logits: softmax(logits.astype(np.float64)),
    one_sum_one_maximum,
    lambda logits: logits / logits.sum(axis=-1, keepdims=True),
    lambda logits: np.exp(logits - logits.max(axis=-1, keepdims=True)),
)


def inputs(rng):
    yield "one row [1, 2, 3]", (np.array([[1.0, 2.0, 3.0]]),)
    yield "rows [0,0,0], [1,2,3], [1000,0,0]", (np.array([[0.0, 0, 0], [1, 2, 3], [1000, 0, 0]]),)
    yield "two rows of four", (rng.standard_normal((2, 4)),)
    yield "rows around -1000", (rng.standard_normal((3, 4)) - 1000,)
    yield "rows far apart, float32", (np.array([[1000.0, 0, -1000], [-1000, -1001, -1002]], np.float32),)
    yield "one class", (np.array([[3.0], [-3.0]]),)
    yield "a row alone, shape (5,)", (rng.standard_normal(5),)
    yield "(2, 3, 4): three positions in each sample", (rng.standard_normal((2, 3, 4)),)


def large(rng):
    return (rng.standard_normal((512, 1024), dtype=np.float32),)
