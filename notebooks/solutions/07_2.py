import numpy as np


def batch_norm_backward(dy, x_hat, gamma, r):
    """dy, x_hat (N, ..., C), gamma, r (C,) -> dx like dy, dgamma (C,), dbeta (C,)."""
    axes = tuple(range(dy.ndim - 1))
    M = dy.size // dy.shape[-1]  # values a channel
    dx = dy * x_hat
    dgamma = dx.sum(axis=axes)
    dbeta = dy.sum(axis=axes)
    np.multiply(x_hat, dgamma / M, out=dx)  # the same array is used three times
    np.subtract(dy, dx, out=dx)
    dx -= dbeta / M
    dx *= gamma * r
    return dx, dgamma, dbeta


check("07.2", batch_norm_backward)
