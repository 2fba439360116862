"""Inverted dropout (Srivastava et al. 2014): what stays is scaled up, so that evaluation does nothing."""

import numpy as np

from dlcourse.kernels.checks import Array, floats


def dropout(x: Array, *, rate: float, rng: np.random.Generator, out: Array | None = None) -> tuple[Array, Array]:
    """-> y = x · keep / (1 - rate), and `keep` (both like x), a byte for each element, 0 with probability `rate`.
    Allocates y, keep, and float32 draws like x."""
    floats(x)
    keep = rng.random(x.shape, dtype=np.float32) >= rate
    y = np.multiply(x, keep, out=out)
    y *= 1 / (1 - rate)
    return y, keep


def dropout_backward(
    dy: Array, keep: Array, *, rate: float, need_dx: bool = True, out: Array | None = None
) -> Array | None:
    """dx = dy · keep / (1 - rate).  Needs keep.  Allocates dx (not with `out`, which may be dy)."""
    floats(dy)
    if not need_dx:
        return None
    dx = np.multiply(dy, keep, out=out)
    dx *= 1 / (1 - rate)
    return dx
