"""04.5  GELU backward in two arrays."""

import math

import numpy as np

from dlcourse.exercises.unit import solution, wrong

SCALE, CUBIC = math.sqrt(2 / math.pi), 0.044715
hints = """
- y = ½ x (1 + t) is a product, so its slope has two terms. In the second, t depends on x.
- The slope is ½ (1 + t) + ½ x (1 − t²) u′. First get this right, times dy; then count the arrays.
- (1 − t²) = (1 + t)(1 − t), so the slope is ½ (1 + t) (1 + x u′ (1 − t)). One array for t, one for dx.
- In place: dx becomes x u′. t −= 1 gives −(1 − t): multiply dx by it, subtract dx from 1. t += 2 gives 1 + t.
"""
costs = (
    (1.75, "four arrays of this size or more at once; each name and each intermediate result is one"),
    (1.25, "three arrays of this size at once; two are enough, one for t, one for dx, in place"),
)


@solution
def gelu_backward(dy, x):
    """dy, x any one shape -> dx, the same shape. dx = dy/2 (1 + t) (1 + x u' (1 - t)), since 1 - t² = (1 + t) (1 - t)."""
    s, c = math.sqrt(2 / math.pi), 0.044715
    dx = x * x
    t = c * dx
    t += 1
    t *= x
    t *= s
    np.tanh(t, out=t)
    dx *= 3 * c * s
    dx += s
    dx *= x  # x u'
    t -= 1
    dx *= t  # -x u' (1 - t)
    np.subtract(1, dx, out=dx)
    t += 2
    dx *= t
    dx *= 0.5
    dx *= dy
    return dx


def product_rule(dy, x, *, square=2, inner=True, scale=SCALE):
    """The same from the formula, with a part of it left out."""
    t = np.tanh(SCALE * (x + CUBIC * x**3))
    du = scale * (1 + 3 * CUBIC * x * x) if inner else scale
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**square) * du)


@wrong
def without_product_rule(dy, x):
    """You have the first term, ½ (1 + t). But t depends on x too: the second term is ½ x (1 − t²) u′."""
    return product_rule(dy, x, scale=0.0)


@wrong
def without_inner_slope(dy, x):
    """You left out the last factor of the chain rule: the slope of tanh(u) is (1 − t²) times u′."""
    return product_rule(dy, x, inner=False, scale=1.0)


@wrong
def inner_slope_forgotten(dy, x):
    """Your u′ is s alone. But u = s (x + c x³), and its slope is s (1 + 3 c x²)."""
    return product_rule(dy, x, inner=False)


@wrong
def cube_s_slope(dy, x):
    """You have 1 − t where the slope of tanh is 1 − t². At x = −1000 your slope is far from 0."""
    return product_rule(dy, x, square=1)


@wrong
def slope_alone(dy, x):
    """You return the slope alone. Multiply it with dy."""
    return product_rule(np.ones_like(x), x)


also_wrong = (lambda dy, x: gelu_backward(dy.astype(np.float64), x.astype(np.float64)),)


def inputs(rng):
    yield "x at -1, 0 and 1", (np.ones(3), np.array([-1.0, 0.0, 1.0]))
    yield "(3, 4), float64", (rng.standard_normal((3, 4)), 2 * rng.standard_normal((3, 4)))
    yield "x at -1000 and 1000", (np.array([2.0, 2.0]), np.array([-1000.0, 1000.0]))
    yield "(2, 3, 5), float32", tuple(rng.standard_normal((2, 2, 3, 5), dtype=np.float32))


def large(rng):
    return tuple(np.tanh(rng.standard_normal((2, 1024, 512), dtype=np.float32)))
