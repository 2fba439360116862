"""07.4  Fold BatchNorm into the layer before it."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "W", "b"
hints = """
- Write BatchNorm of one channel as y = s · z + t with s = gamma / √(var + eps), and put z = x W + b in.
- y = x (W s) + (b - mean) s + beta. So what is the new W, what is the new b?
- The channels of the output are the last axis of W, so W * s multiplies the right axis, for a convolution too.
"""


@solution
def fold(W, b, gamma, beta, mean, var, eps):
    """W (..., C) and the others (C,) -> W (..., C), b (C,) of one layer that does both."""
    scale = gamma / np.sqrt(var + eps)
    return W * scale, (b - mean) * scale + beta  # channels are the last axis of W


def layer(rng, shape):
    b, gamma, beta, mean = rng.standard_normal((4, shape[-1]))
    return rng.standard_normal(shape), b, 1 + gamma, beta, mean, rng.uniform(0.1, 4, shape[-1]), 1e-2


@wrong
def fold_by_variance(W, b, gamma, beta, mean, var, eps):
    """You divide by the variance. BatchNorm divides by its root, √(var + eps)."""
    return fold(W, b, gamma, beta, mean, (var + eps) ** 2, 0)


@wrong
def eps_outside(W, b, gamma, beta, mean, var, eps):
    """eps stands outside of the root. It belongs inside, √(var + eps), as in the forward pass; where the variance is
    small the two differ by much."""
    return fold(W, b, gamma, beta, mean, (np.sqrt(var) + eps) ** 2, 0)


@wrong
def bias_unscaled(W, b, gamma, beta, mean, var, eps):
    """The bias b comes before the normalization, so it is multiplied by the scale too: (b - mean) · s + beta."""
    return fold(W, 0, gamma, beta + b, mean, var, eps)


@wrong
def bias_forgotten(W, b, gamma, beta, mean, var, eps):
    """The bias b of the layer is lost. The normalized number is x W + b - mean."""
    return fold(W, 0, gamma, beta, mean, var, eps)


@wrong
def rows_scaled(W, b, gamma, beta, mean, var, eps):
    """You scale the rows of W, its inputs. gamma belongs to the outputs, the last axis of W. With as many inputs as
    outputs the shapes fit all the same."""
    scale = gamma / np.sqrt(var + eps)
    return W * scale[:, None], (b - mean) * scale + beta


@wrong
def mean_added(W, b, gamma, beta, mean, var, eps):
    """You add the mean. BatchNorm subtracts it: (b - mean) · s + beta."""
    return fold(W, b, gamma, beta, -mean, var, eps)


also_wrong = (
    lambda W, b, g, t, m, v, e: (fold(W, b, g, t, m, v, e)[0], fold(W, b, g, t - m, 0, v, e)[1]),
    lambda W, b, g, t, m, v, e: fold(W, b, g, t, 0, v, e),
    lambda W, b, g, t, m, v, e: fold(W, b, g, t, m, v, 0),
    lambda W, b, g, t, m, v, e: fold(W, b, g, 0, m, v, e),
    lambda W, b, g, t, m, v, e: (fold(W, b, g, t, m, v, e)[0], fold(W, b, 1, t, m, v, e)[1]),
)


def inputs(rng):
    yield "an affine layer, 3 → 3", layer(rng, (3, 3))
    yield "an affine layer, 2 → 4", layer(rng, (2, 4))
    yield "a convolution, 3 × 3, 4 → 4 channels", layer(rng, (3, 3, 4, 4))
    yield "a small variance", (*layer(rng, (2, 2))[:5], np.array([0.0, 4e-4]), 1e-3)
    yield "float32", (*(part.astype(np.float32) for part in layer(rng, (5, 3))[:6]), 1e-2)
