"""03.3  A check that can fail."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

TOLERANCE = 1e-6
hints = """
- Three parts: the gradient that backward claims; the gradient by steps, with the loss (dy * f(x)).sum(); the largest
  relative error of the two. Convert x and dy to float64 before anything else.
- For the steps: one entry at a time, in a fresh copy of x, up by 1e-5 and down by 1e-5, difference over 2e-5.
- NaN < 1e-6 is False, and NaN > 1e-6 is False too. So ask `error < 1e-6`, never `not error > 1e-6`.
- size = np.maximum(abs(a), abs(n)); error = abs(a - n) / np.maximum(size, 0.001 * max(1, size.max())); then return
  bool(error.max() < 1e-6).
"""


@solution
def passes(f, backward, x, dy):
    """Is backward(dy, x) the gradient of (dy * f(x)).sum()? In float64, to 1e-6. -> True or False"""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    by_steps = np.empty_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += 1e-5
        down[place] -= 1e-5
        by_steps[place] = (dy * (f(up) - f(down))).sum() / 2e-5
    claimed = backward(dy, x)
    size = np.maximum(abs(claimed), abs(by_steps))
    error = abs(claimed - by_steps) / np.maximum(size, 0.001 * max(1, size.max()))
    return bool(error.max() < 1e-6)  # False for NaN


def both_sides(f, x, dy, h=1e-5):
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += h
        high = (dy * f(moved)).sum()
        moved[place] -= 2 * h
        found[place] = (high - (dy * f(moved)).sum()) / (2 * h)
    return found


def errors(a, n):
    size = np.maximum(abs(a), abs(n))
    return abs(a - n) / np.maximum(size, 0.001 * max(1, size.max()))


def softmax(x):
    """Of the last axis."""
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def softmax_backward(dy, x):
    y = softmax(x)
    return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


def cube(x):
    return x**3


def cube_backward(dy, x):
    return dy * 3 * x**2


def waves(x):
    return np.sin(20 * x)


def waves_backward(dy, x):
    return dy * 20 * np.cos(20 * x)


def positive_part(x):
    return np.maximum(x, 0)


def positive_part_backward(dy, x):
    return dy * (x > 0)


def all_zero(dy, x):
    return np.zeros_like(x)


def one_per_cent_more(dy, x):
    return 1.01 * cube_backward(dy, x)


def too_small_somewhere(dy, x):
    return cube_backward(dy, x) - 0.01 * abs(cube_backward(dy, x))


def one_entry_off(dy, x):
    dx = cube_backward(dy, x)
    dx.flat[7] *= 1.0001
    return dx


def not_a_number(dy, x):
    return np.where(np.arange(x.size).reshape(x.shape) == 1, np.nan, cube_backward(dy, x))


@wrong
def through_the_sum(f, backward, x, dy):
    """Your check does not use dy: it looks at f(x).sum(). A softmax sums to 1 whatever x is, so a backward that is 0
    everywhere passes. Weight the outputs with dy, and hand the same dy to backward."""
    return passes(f, backward, x, np.ones_like(dy))


@wrong
def mean_error(f, backward, x, dy):
    """You take the mean of the errors. One wrong entry among 400 disappears in it. Take the largest: a check has to
    fail if any entry is wrong."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return bool(errors(backward(dy, x), both_sides(f, x, dy)).mean() < TOLERANCE)


@wrong
def signed_error(f, backward, x, dy):
    """You take a - n without abs: an entry that is too small gives a negative error, and that is below every tolerance.
    Take the absolute value before the largest."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    a, n = backward(dy, x), both_sides(f, x, dy)
    size = np.maximum(abs(a), abs(n))
    return bool(((a - n) / np.maximum(size, 0.001 * max(1, size.max()))).max() < TOLERANCE)


@wrong
def not_a_number_passes(f, backward, x, dy):
    """NaN passes your check. Every comparison with NaN is False, so `not error > 1e-6` is True, and np.nanmax leaves NaN
    out. Take the plain maximum of the errors, and ask whether that is < 1e-6."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return not (errors(backward(dy, x), both_sides(f, x, dy)) > TOLERANCE).any()


@wrong
def one_side(f, backward, x, dy):
    """You step to one side only. The error is then about h times half the curvature: sin(20 x) looks wrong although its
    backward is right. Step up and down, and divide by 2 h."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += 1e-5
        found[place] = (dy * (f(moved) - f(x))).sum() / 1e-5
    return bool(errors(backward(dy, x), found).max() < TOLERANCE)


def not_put_back(f, backward, x, dy):
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    moved, found = x.copy(), np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved[place] += 1e-5
        high = (dy * f(moved)).sum()
        moved[place] -= 2e-5
        found[place] = (high - (dy * f(moved)).sum()) / 2e-5
    return bool(errors(backward(dy, x), found).max() < TOLERANCE)


@wrong
def absolute(f, backward, x, dy):
    """You compare the absolute error. A gradient of a million cannot agree to 1e-6: float64 has 16 digits, and the
    difference of two large numbers loses many of them. Divide by the size of the entry."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return bool(abs(backward(dy, x) - both_sides(f, x, dy)).max() < TOLERANCE)


def zero_by_zero(f, backward, x, dy):
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    a, n = backward(dy, x), both_sides(f, x, dy)
    return bool((abs(a - n) / np.maximum(abs(a), abs(n))).max() < TOLERANCE)


def three_in_a_million_more(dy, x):
    return (1 + 3e-6) * cube_backward(dy, x)


def wide_limit(f, backward, x, dy):
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return bool(errors(backward(dy, x), both_sides(f, x, dy)).max() < 1e-5)


def very_wide_limit(f, backward, x, dy):
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return bool(errors(backward(dy, x), both_sides(f, x, dy)).max() < 1e-3)


also_wrong = (
    lambda f, backward, x, dy: bool(errors(backward(dy, x), both_sides(f, x, dy)).max() < TOLERANCE),
    not_put_back,
    lambda f, backward, x, dy: passes(f, lambda dy, x: backward(x, dy), x, dy),
    zero_by_zero,
    wide_limit,
    very_wide_limit,
)


def inputs(rng):
    def draw(*shape, scale=1):
        x = scale * rng.uniform(0.5, 2, shape) * np.where(rng.random(shape) < 0.5, -1, 1)  # none near 0
        return x, rng.standard_normal(shape)

    single = tuple(array.astype(np.float32) for array in draw(2, 3))
    yield "x³, right", (cube, cube_backward, *draw(2, 3))
    yield "x³, one per cent too large", (cube, one_per_cent_more, *draw(2, 3))
    yield "x³, too small everywhere, positive or negative", (cube, too_small_somewhere, *draw(2, 3))
    yield "softmax, right", (softmax, softmax_backward, *draw(2, 4))
    yield "softmax, a backward that is 0 everywhere", (softmax, all_zero, *draw(2, 4))
    yield "x³, given in float32, right", (cube, cube_backward, *single)
    yield "x³, one of 400 entries off by 0.01 per cent", (cube, one_entry_off, *draw(20, 20))
    yield "x³, NaN in one entry", (cube, not_a_number, *draw(2, 3))
    yield "sin(20 x), right: a strong curve", (waves, waves_backward, np.linspace(0.1, 0.9, 5), np.arange(1.0, 6.0))
    yield "x³ at 1000, right: large gradients", (cube, cube_backward, *draw(3, 2, scale=1000))
    yield "the positive part, right: some entries are 0", (positive_part, positive_part_backward, *draw(3, 3))
    yield "x³, 3 in a million too large", (cube, three_in_a_million_more, *draw(2, 3))
