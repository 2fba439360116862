"""Normalization: BatchNorm over every axis but the last (Ioffe and Szegedy 2015), LayerNorm over the last (Ba et al. 2016).

Both keep x and small statistics for backward, and make the normalized x again: x may be an array that a neighbour
keeps anyway.
"""

import numpy as np


def batch_norm(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, *, eps: float, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y = γ (x - mean) / √(var + eps) + β with the batch's statistics, one a channel.

    x (N, …, C), gamma, beta (C,) -> y like x, mean (C,), var (C,), the mean square deviation.  Allocates y, the two,
    and one array like x.
    """
    mean = x.mean(axis=_all_but_last(x))
    y = np.subtract(x, mean, out=out)
    var = (y * y).mean(axis=_all_but_last(x))
    y *= gamma / np.sqrt(var + eps)
    y += beta
    return y, mean, var


def batch_norm_inference(
    x: np.ndarray,
    gamma: np.ndarray,
    beta: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    *,
    eps: float,
    out: np.ndarray | None = None,
) -> np.ndarray:
    """The same with given statistics.  Allocates y."""
    y = np.subtract(x, mean, out=out)
    y *= gamma / np.sqrt(var + eps)
    y += beta
    return y


def batch_norm_backward(
    dy: np.ndarray,
    x: np.ndarray,
    gamma: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    *,
    eps: float,
    need_dx: bool = True,
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """-> dx like x, dgamma (C,), dbeta (C,).  Needs x and the statistics.  Allocates dx and one array like x.

    With x̂ the normalized x and M its count a channel: dx = γ/√(var + eps) (dy - Σdy/M - x̂ Σ(dy x̂)/M).
    """
    scale = 1 / np.sqrt(var + eps)
    x_hat = x - mean
    x_hat *= scale
    dx = np.multiply(dy, x_hat, out=None if need_dx else x_hat)
    dgamma = dx.sum(axis=_all_but_last(x))
    dbeta = dy.sum(axis=_all_but_last(x))
    if not need_dx:
        return None, dgamma, dbeta
    per_channel = x.size // x.shape[-1]
    x_hat *= dgamma / per_channel
    np.subtract(dy, x_hat, out=dx)
    dx -= dbeta / per_channel
    dx *= gamma * scale
    return dx, dgamma, dbeta


def layer_norm(
    x: np.ndarray, gamma: np.ndarray, beta: np.ndarray, *, eps: float, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """y = γ (x - mean) / √(var + eps) + β with statistics of each position's last axis.

    x (…, D), gamma, beta (D,) -> y like x, mean (…, 1), var (…, 1).  Allocates y, the two, and one array like x.
    """
    mean = x.mean(axis=-1, keepdims=True)
    y = np.subtract(x, mean, out=out)
    var = (y * y).mean(axis=-1, keepdims=True)
    y /= np.sqrt(var + eps)
    y *= gamma
    y += beta
    return y, mean, var


def layer_norm_backward(
    dy: np.ndarray,
    x: np.ndarray,
    gamma: np.ndarray,
    mean: np.ndarray,
    var: np.ndarray,
    *,
    eps: float,
    need_dx: bool = True,
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """-> dx like x, dgamma (D,), dbeta (D,).  Needs x and the statistics.  Allocates dx, one array like x, and
    two numbers a position.

    With g = γ dy: dx = (g - mean(g) - x̂ mean(g x̂)) / √(var + eps), means over the last axis.
    """
    scale = 1 / np.sqrt(var + eps)
    x_hat = x - mean
    x_hat *= scale
    dx = np.multiply(dy, x_hat, out=None if need_dx else x_hat)
    dgamma = dx.sum(axis=_all_but_last(x))
    dbeta = dy.sum(axis=_all_but_last(x))
    if not need_dx:
        return None, dgamma, dbeta
    dx *= gamma
    x_hat *= dx.mean(axis=-1, keepdims=True)
    np.multiply(dy, gamma, out=dx)
    x_hat += dx.mean(axis=-1, keepdims=True)
    dx -= x_hat
    dx *= scale
    return dx, dgamma, dbeta


def _all_but_last(x: np.ndarray) -> tuple[int, ...]:
    return tuple(range(x.ndim - 1))
