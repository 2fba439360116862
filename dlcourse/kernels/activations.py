"""Activations, element by element. Each docstring says what backward needs: the output if it can, since the next
layer keeps that array anyway."""

import math

import numpy as np

from dlcourse.kernels.checks import Array, floats

GELU_SCALE = math.sqrt(2 / math.pi)
GELU_CUBIC = 0.044715


def relu(x: Array, *, out: Array | None = None) -> Array:
    """y = max(x, 0).  Allocates y."""
    floats(x)
    return np.maximum(x, 0, out=out)


def relu_backward(dy: Array, y: Array, *, need_dx: bool = True, out: Array | None = None) -> Array | None:
    """dx = dy if y > 0, else 0.  Needs y.  Allocates dx (not with `out`, which may be dy) and a byte mask."""
    floats(dy)
    return np.multiply(dy, y > 0, out=out) if need_dx else None


def leaky_relu(x: Array, *, slope: float, out: Array | None = None) -> Array:
    """y = x if x > 0, else slope · x, for 0 <= slope <= 1 (Maas et al. 2013).  Allocates y."""
    floats(x)
    y = np.multiply(x, slope, out=out, dtype=x.dtype)  # a slope that is np.float64 would make y float64
    return np.maximum(x, y, out=y)


def leaky_relu_backward(
    dy: Array, y: Array, *, slope: float, need_dx: bool = True, out: Array | None = None
) -> Array | None:
    """dx = dy if y > 0, else slope · dy.  Needs y, whose sign is that of x.  Allocates dx (not with `out`, which may be
    dy) and a byte mask."""
    floats(dy)
    if not need_dx:
        return None
    dx = np.empty_like(dy) if out is None else out
    if dx is not dy:
        np.copyto(dx, dy)
    return np.multiply(dy, slope, out=dx, where=y <= 0)


def sigmoid(x: Array, *, out: Array | None = None) -> Array:
    """y = 1 / (1 + exp(-x)), written (1 + tanh(x/2)) / 2, which cannot overflow.  Allocates y."""
    floats(x)
    y = np.multiply(x, 0.5, out=out)
    np.tanh(y, out=y)
    y *= 0.5
    y += 0.5
    return y


def sigmoid_backward(dy: Array, y: Array, *, need_dx: bool = True, out: Array | None = None) -> Array | None:
    """dx = dy · y (1 - y).  Needs y.  Allocates dx."""
    floats(dy)
    if not need_dx:
        return None
    dx = np.subtract(1, y, out=out)
    dx *= y
    dx *= dy
    return dx


def tanh(x: Array, *, out: Array | None = None) -> Array:
    """y = tanh(x).  Allocates y."""
    floats(x)
    return np.tanh(x, out=out)


def tanh_backward(dy: Array, y: Array, *, need_dx: bool = True, out: Array | None = None) -> Array | None:
    """dx = dy (1 - y²).  Needs y.  Allocates dx."""
    floats(dy)
    if not need_dx:
        return None
    dx = np.multiply(y, y, out=out)
    np.subtract(1, dx, out=dx)
    dx *= dy
    return dx


def gelu(x: Array, *, out: Array | None = None) -> Array:
    """y = x/2 (1 + tanh(√(2/π) (x + 0.044715 x³))), the form of Hendrycks and Gimpel (2016).  Allocates y."""
    floats(x)
    y = _gelu_tanh(x, np.multiply(x, x, out=out))
    y += 1
    y *= x
    y *= 0.5
    return y


def gelu_backward(dy: Array, x: Array, *, need_dx: bool = True, out: Array | None = None) -> Array | None:
    """dx = dy/2 (1 + t) (1 + u (1 - t)) with t the tanh above and u = x times the derivative of its argument.
    Needs x, since y has no inverse.  Allocates dx and one array of its size."""
    floats(dy)
    if not need_dx:
        return None
    dx = np.multiply(x, x, out=out)
    t = _gelu_tanh(x, dx.copy())
    dx *= 3 * GELU_CUBIC * GELU_SCALE
    dx += GELU_SCALE
    dx *= x  # u
    t -= 1
    dx *= t  # u (t - 1)
    np.subtract(1, dx, out=dx)
    t += 2
    dx *= t
    dx *= 0.5
    dx *= dy
    return dx


def _gelu_tanh(x: Array, squares: Array) -> Array:
    """tanh(√(2/π) (x + 0.044715 x³)), written over `squares`, which comes in as x²."""
    squares *= GELU_CUBIC
    squares += 1
    squares *= x
    squares *= GELU_SCALE
    return np.tanh(squares, out=squares)
