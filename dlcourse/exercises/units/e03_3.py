"""03.3  A check that can fail."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

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


def check(f, backward, x, dy, *, kind=np.float64, up=1.0, down=1.0, keep=False, error=None, judge=None):
    """As `passes`, with a part of it in another way. keep: steps stay in x."""
    x, dy, found = x.astype(kind), dy.astype(kind), np.empty(x.shape, kind)
    moved = x.copy()
    for place in np.ndindex(x.shape):
        moved = moved if keep else x.copy()
        moved[place] += up * 1e-5
        high = (dy * f(moved)).sum()
        moved[place] -= (up + down) * 1e-5
        found[place] = (high - (dy * f(moved)).sum()) / ((up + down) * 1e-5)
    return bool((judge or below())((error or relative)(backward(dy, x), found)))


def relative(a, n, size=lambda one: np.maximum(one, 0.001 * max(1, one.max())), sign=abs):
    return sign(a - n) / size(np.maximum(abs(a), abs(n)))


def below(limit=1e-6):
    return lambda errors: errors.max() < limit


def softmax(x):
    """Of the last axis."""
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def softmax_backward(dy, x):
    y = softmax(x)
    return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


def cube(x):
    return x**3


def cubed(change=lambda dx: dx):
    """The backward of x³, and what `change` makes of it."""
    return lambda dy, x: change(dy * 3 * x**2)


def at(place, other):
    """Changes one number."""
    return lambda dx: np.where(np.arange(dx.size).reshape(dx.shape) == place, other * dx, dx)


@wrong
def through_the_sum(f, backward, x, dy):
    """Your check does not use dy: it looks at f(x).sum(). A softmax sums to 1 whatever x is, so a backward that is 0
    everywhere passes. Weight the outputs with dy, and hand the same dy to backward."""
    return passes(f, backward, x, np.ones_like(dy))


@wrong
def mean_error(f, backward, x, dy):
    """You take the mean of the errors. One wrong entry among 400 disappears in it. Take the largest: a check has to
    fail if any entry is wrong."""
    return check(f, backward, x, dy, judge=lambda errors: errors.mean() < 1e-6)


@wrong
def signed_error(f, backward, x, dy):
    """You take a - n without abs: an entry that is too small gives a negative error, and that is below every tolerance.
    Take the absolute value before the largest."""
    return check(f, backward, x, dy, error=lambda a, n: relative(a, n, sign=lambda one: one))


@wrong
def not_a_number_passes(f, backward, x, dy):
    """NaN passes your check. Every comparison with NaN is False, so `not error > 1e-6` is True, and np.nanmax leaves NaN
    out. Take the plain maximum of the errors, and ask whether that is < 1e-6."""
    return check(f, backward, x, dy, judge=lambda errors: not (errors > 1e-6).any())


@wrong
def one_side(f, backward, x, dy):
    """You step to one side only. The error is then about h times half the curvature: sin(20 x) looks wrong although its
    backward is right. Step up and down, and divide by 2 h."""
    return check(f, backward, x, dy, down=0)


@wrong
def absolute(f, backward, x, dy):
    """You compare the absolute error. A gradient of a million cannot agree to 1e-6: float64 has 16 digits, and the
    difference of two large numbers loses many of them. Divide by the size of the entry."""
    return check(f, backward, x, dy, error=lambda a, n: abs(a - n))


also_wrong = (
    lambda f, backward, x, dy: check(f, backward, x, dy, kind=x.dtype),
    lambda f, backward, x, dy: check(f, backward, x, dy, keep=True),
    lambda f, backward, x, dy: passes(f, lambda dy, x: backward(x, dy), x, dy),
    lambda f, backward, x, dy: check(f, backward, x, dy, error=lambda a, n: relative(a, n, size=lambda one: one)),
    lambda f, backward, x, dy: check(f, backward, x, dy, judge=below(1e-5)),
    lambda f, backward, x, dy: check(f, backward, x, dy, judge=below(1e-3)),
)


def inputs(rng):
    def draw(*shape, scale=1):
        x = scale * rng.uniform(0.5, 2, shape) * np.where(rng.random(shape) < 0.5, -1, 1)  # none near 0
        return x, rng.standard_normal(shape)

    def wave(x):
        return np.sin(20 * x)

    def wave_backward(dy, x):
        return dy * 20 * np.cos(20 * x)

    single = tuple(array.astype(np.float32) for array in draw(2, 3))
    yield "x³, right", (cube, cubed(), *draw(2, 3))
    yield "x³, one per cent too large", (cube, cubed(lambda dx: 1.01 * dx), *draw(2, 3))
    smaller = cubed(lambda dx: dx - 0.01 * abs(dx))
    yield "x³, too small everywhere, positive or negative", (cube, smaller, *draw(2, 3))
    yield "softmax, right", (softmax, softmax_backward, *draw(2, 4))
    yield "softmax, a backward that is 0 everywhere", (softmax, lambda dy, x: np.zeros_like(x), *draw(2, 4))
    yield "x³, given in float32, right", (cube, cubed(), *single)
    yield "x³, one of 400 entries off by 0.01 per cent", (cube, cubed(at(7, 1.0001)), *draw(20, 20))
    yield "x³, NaN in one entry", (cube, cubed(at(1, np.nan)), *draw(2, 3))
    yield "sin(20 x), right: a strong curve", (wave, wave_backward, np.linspace(0.1, 0.9, 5), np.arange(1.0, 6.0))
    yield "x³ at 1000, right: large gradients", (cube, cubed(), *draw(3, 2, scale=1000))
    positive = lambda x: np.maximum(x, 0), lambda dy, x: dy * (x > 0)
    yield "the positive part, right: some entries are 0", (*positive, *draw(3, 3))
    yield "x³, 3 in a million too large", (cube, cubed(lambda dx: (1 + 3e-6) * dx), *draw(2, 3))
