"""Normalization: BatchNorm over every axis but the last (Ioffe and Szegedy 2015), LayerNorm over the last (Ba et al. 2016).

Both keep x and small statistics for backward, and make the normalized x again: x may be an array that a neighbour
keeps anyway.
"""

import numpy as np

from dlcourse.kernels.checks import Array, floats
from dlcourse.kernels.sums import sum_rows


def batch_norm(
    x: Array, gamma: Array, beta: Array, *, eps: float, out: Array | None = None
) -> tuple[Array, Array, Array]:
    """y = γ (x - mean) / √(var + eps) + β with the batch's statistics, one a channel.

    x (N, …, C), gamma, beta (C,) -> y like x, mean (C,), var (C,), the mean square deviation.  Allocates y, the two,
    and one array like x.
    """
    floats(x)
    mean = _channel_means(x)
    y = np.subtract(x, mean, out=out)
    rest = _channel_means(y)  # what rounding left in the mean: of equal numbers, all that y is
    y -= rest
    mean += rest
    del rest
    var = _channel_means(y * y)  # in two passes, since E[x²] - E[x]² loses digits
    y *= gamma / np.sqrt(var + eps)
    y += beta
    return y, mean, var


def batch_norm_inference(
    x: Array, gamma: Array, beta: Array, mean: Array, var: Array, *, eps: float, out: Array | None = None
) -> Array:
    """y = γ (x - mean) / √(var + eps) + β with given statistics.  x (N, …, C), the others (C,) -> y like x.  Allocates y."""
    floats(x)
    y = np.subtract(x, mean, out=out)
    y *= gamma / np.sqrt(var + eps)
    y += beta
    return y


def batch_norm_backward(
    dy: Array,
    x: Array,
    gamma: Array,
    mean: Array,
    var: Array,
    *,
    eps: float,
    need_dx: bool = True,
    out: Array | None = None,
) -> tuple[Array | None, Array, Array]:
    """-> dx like x, dgamma (C,), dbeta (C,).  Needs x and the statistics.  Allocates dx and one array like x.

    With x̂ the normalized x and M its count a channel: dx = γ/√(var + eps) (dy - Σdy/M - x̂ Σ(dy x̂)/M).
    """
    floats(dy)
    x_hat, scale, dx, dgamma, dbeta = backward_sums(dy, x, mean, var, eps, need_dx, out)
    if not need_dx:
        return None, dgamma, dbeta
    per_channel = x.size // x.shape[-1]
    x_hat *= dgamma / per_channel
    np.subtract(dy, x_hat, out=dx)
    dx -= dbeta / per_channel
    dx *= gamma * scale
    return dx, dgamma, dbeta


def layer_norm(
    x: Array, gamma: Array, beta: Array, *, eps: float, out: Array | None = None
) -> tuple[Array, Array, Array]:
    """y = γ (x - mean) / √(var + eps) + β with statistics of each position's last axis.

    x (…, D), gamma, beta (D,) -> y like x, mean (…, 1), var (…, 1).  Allocates y, the two, and one array like x.
    """
    floats(x)
    mean = _position_means(x)
    y = np.subtract(x, mean, out=out)
    var = _position_means(y * y)
    y /= np.sqrt(var + eps)
    y *= gamma
    y += beta
    return y, mean, var


def layer_norm_backward(
    dy: Array,
    x: Array,
    gamma: Array,
    mean: Array,
    var: Array,
    *,
    eps: float,
    need_dx: bool = True,
    out: Array | None = None,
) -> tuple[Array | None, Array, Array]:
    """-> dx like x, dgamma (D,), dbeta (D,).  Needs x and the statistics.  Allocates dx, one array like x, and
    two numbers a position.

    With g = γ dy: dx = (g - mean(g) - x̂ mean(g x̂)) / √(var + eps), means over the last axis.
    """
    floats(dy)
    x_hat, scale, dx, dgamma, dbeta = backward_sums(dy, x, mean, var, eps, need_dx, out)
    if not need_dx:
        return None, dgamma, dbeta
    dx *= gamma
    x_hat *= _position_means(dx)
    np.multiply(dy, gamma, out=dx)
    x_hat += _position_means(dx)
    dx -= x_hat
    dx *= scale
    return dx, dgamma, dbeta


def backward_sums(
    dy: Array, x: Array, mean: Array, var: Array, eps: float, need_dx: bool, out: Array | None
) -> tuple[Array, Array, Array, Array, Array]:
    """-> x̂, 1/√(var + eps), dy x̂ (in the place of dx, or of x̂ if no dx is needed), dgamma = Σ dy x̂, dbeta = Σ dy."""
    scale = 1 / np.sqrt(var + eps)
    x_hat = x - mean
    x_hat *= scale
    dx = np.multiply(dy, x_hat, out=out if need_dx else x_hat)
    return x_hat, scale, dx, sum_rows(dx), sum_rows(dy)


def _channel_means(x: Array) -> Array:
    total = sum_rows(x)
    total /= x.size // x.shape[-1]
    return total


def _position_means(x: Array) -> Array:
    return x.mean(axis=-1, keepdims=True)
