"""The affine map, on the last axis."""

import numpy as np


def affine(x: np.ndarray, W: np.ndarray, b: np.ndarray, *, out: np.ndarray | None = None) -> np.ndarray:
    """y = x W + b.  x (…, D_in), W (D_in, D_out), b (D_out,) -> y (…, D_out).  Allocates y."""
    y = np.matmul(x, W, out=out)
    y += b
    return y


def affine_backward(
    dy: np.ndarray, x: np.ndarray, W: np.ndarray, *, need_dx: bool = True
) -> tuple[np.ndarray | None, np.ndarray, np.ndarray]:
    """-> dx (…, D_in), dW (D_in, D_out), db (D_out,).  Needs x and not y.  Allocates the three."""
    rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    dx = dy @ W.T if need_dx else None
    return dx, rows.T @ drows, drows.sum(axis=0)
