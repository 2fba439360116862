"""The affine map, on the last axis."""

import numpy as np

from dlcourse.kernels.checks import Array, floats
from dlcourse.kernels.sums import sum_rows


def affine(x: Array, W: Array, b: Array, *, out: Array | None = None) -> Array:
    """y = x W + b.  x (…, D_in), W (D_in, D_out), b (D_out,) -> y (…, D_out).  Allocates y."""
    floats(x)
    y = np.matmul(x, W, out=out)
    y += b
    return y


def affine_backward(
    dy: Array, x: Array, W: Array, *, need_dx: bool = True, out: Array | None = None
) -> tuple[Array | None, Array, Array]:
    """-> dx (…, D_in), dW (D_in, D_out), db (D_out,).  Needs x and not y.  Allocates the three."""
    floats(dy)
    rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    dx = np.matmul(dy, W.T, out=out) if need_dx else None
    return dx, rows.T @ drows, sum_rows(drows)
