"""Inverted dropout (Srivastava et al. 2014): what stays is scaled up, so that evaluation does nothing."""

import numpy as np


def dropout(
    x: np.ndarray, rate: float, rng: np.random.Generator, *, out: np.ndarray | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """-> y = x · keep / (1 - rate), and `keep`, a byte for each element, 0 with probability `rate`.
    Allocates y, keep, and float32 draws like x."""
    keep = rng.random(x.shape, dtype=np.float32) >= rate
    y = np.multiply(x, keep, out=out)
    y *= 1 / (1 - rate)
    return y, keep


def dropout_backward(dy: np.ndarray, keep: np.ndarray, rate: float, *, out: np.ndarray | None = None) -> np.ndarray:
    """dx = dy · keep / (1 - rate).  Needs keep.  Allocates dx (not with `out`, which may be dy)."""
    dx = np.multiply(dy, keep, out=out)
    dx *= 1 / (1 - rate)
    return dx
