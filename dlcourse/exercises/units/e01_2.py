"""01.2  Normalize with one new array."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- Write it first in the way that is easy to read. Then count: which arrays of the size of `x` are alive at the highest
  moment? `x.std()` makes one too, inside.
- The result has to be made, so one array is the least. Make it by the subtraction, and do the division in place.
- The mean of `y` is 0 now, so its standard deviation is the root of the mean of its squares. `np.dot(v, v)` of `v =
  y.reshape(-1)` gives the sum of squares, without an array of squares.
- `y = x - x.mean()`, then `v = y.reshape(-1)`, then `y /= np.sqrt(np.dot(v, v) / y.size).astype(y.dtype)`.
"""
costs = (
    (2.7, "three arrays of the size of x at one moment; give a result the name of the array before it"),
    (1.7, "two arrays of the size of x: `x.std()` makes one, `y * y` too, and a division that is not in place"),
)


@solution
def normalized(x):
    """(x − mean of x) / standard deviation of x.  x of any shape, float32 or float64 -> the same shape and dtype."""
    y = x - x.mean()  # the only array of the size of x
    flat = y.reshape(-1)  # y was just made and is in one piece, so this is a view
    y /= np.sqrt(np.dot(flat, flat) / y.size).astype(y.dtype)
    return y


@wrong
def by_variance(x):
    """You divide by the variance. It is the mean of the squared distances; the standard deviation is its square root."""
    return (x - x.mean()) / x.var()


@wrong
def one_less(x):
    """You divide the sum of squares by n − 1 (`ddof=1`), as in statistics for a sample. Here it is the mean of the
    squares, divided by n: NumPy's own `std`."""
    return (x - x.mean()) / x.std(ddof=1)


@wrong
def each_column(x):
    """You normalize each column by itself. Asked is one mean and one standard deviation for the whole array: leave out
    `axis`."""
    return (x - x.mean(axis=0)) / x.std(axis=0)


@wrong
def not_divided(x):
    """You subtract the mean and do not divide by the standard deviation."""
    return x - x.mean()


@wrong
def not_centred(x):
    """You divide by the standard deviation and do not subtract the mean first."""
    return x / x.std()


@wrong
def without_brackets(x):
    """Brackets are missing: `x - x.mean() / x.std()` divides the mean alone."""
    return x - x.mean() / x.std()


also_wrong = (
    lambda x: (x - x.mean(dtype=float)) / x.std(dtype=float),
    lambda x: (x - x.mean(axis=-1, keepdims=True)) / x.std(axis=-1, keepdims=True),
    lambda x: (x - x.min()) / (x.max() - x.min()),
    lambda x: (x - x.mean()) / np.sqrt((x * x).mean()),
)


def inputs(rng):
    yield "four numbers in float32", (np.array([1, 2, 3, 6], np.float32),)
    yield (
        "(5, 3) in float32, each column on a level of its own",
        ((rng.standard_normal((5, 3)) + np.array([0, 10, 20])).astype(np.float32),),
    )
    yield "(2, 3, 4) in float64", (rng.standard_normal((2, 3, 4)),)
    yield "a transposed array, so that its rows are not in one piece", (rng.standard_normal((4, 6)).T,)
    yield "large numbers, both signs", (1000 * rng.standard_normal((7, 2)).astype(np.float32),)


def large(rng):
    return (rng.standard_normal((1024, 2048), dtype=np.float32),)
