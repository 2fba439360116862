"""03.2  The backward pass of an affine layer."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "dx", "dW", "db"
hints = """
- Each of the three has the shape of what it is the gradient of. Write the shapes of dy, x and W on paper first.
- In dW the sum goes over n, the samples. A matrix product sums over the axis that vanishes: which of the two must be
  transposed, so that n stands in the middle?
- dx[n, d] = Σ_k dy[n, k] W[d, k]. The sum is over the last axis of both; so W must be transposed.
- dx = dy @ W.T and dW = x.T @ dy; db is the sum of dy over the samples, axis 0.
"""
costs = (
    (8.0, "all products at once, an array of three axes; a matrix product sums on the way"),
    (1.5, "a copy, or float64; x.T and W.T are views, and a product needs no copy of them"),
)


@solution
def affine_backward(dy, x, W):
    """dy (N, D_out), x (N, D_in), W (D_in, D_out) -> dx (N, D_in), dW (D_in, D_out), db (D_out,)."""
    dx = dy @ W.T  # sums over k, the outputs
    dW = x.T @ dy  # sums over n, the samples
    db = dy.sum(axis=0)
    return dx, dW, db


@wrong
def mean(dy, x, W):
    """Your dW and db are divided by N. The mean of the loss is in dy already: the loss divided by N once, and so did
    its gradient. A layer that divides again makes N times too small steps. Divide nowhere."""
    return dy @ W.T, x.T @ dy / len(dy), dy.mean(axis=0)


@wrong
def mean_bias(dy, x, W):
    """Your db is the mean over the batch. dW sums over the samples, and so must db: the same number b was added to each
    sample, and each sample's share counts. The 1/N of the loss is in dy already."""
    return dy @ W.T, x.T @ dy, dy.mean(axis=0)


@wrong
def dx_not_transposed(dy, x, W):
    """Your dx is dy @ W. This fits only where D_in = D_out, and there it is wrong without an error. dx[n, d] is the sum
    over k of dy[n, k] · W[d, k]: k is the last index of W, so W must be transposed."""
    return dy @ W, x.T @ dy, dy.sum(axis=0)


@wrong
def dx_reshaped(dy, x, W):
    """In dx you gave W another shape by reshape, where it must be transposed. reshape keeps the numbers in the order of
    the strip; .T exchanges rows and columns. The shapes fit, the numbers do not (see notebook 01)."""
    return dy @ W.reshape(W.shape[::-1]), x.T @ dy, dy.sum(axis=0)


@wrong
def bias_over_outputs(dy, x, W):
    """Your db is summed over the outputs and has a number for each sample. There is one bias for each output: sum over
    the other axis, the samples."""
    return dy @ W.T, x.T @ dy, dy.sum(axis=1)


@wrong
def bias_one_number(dy, x, W):
    """Your db is one number for the whole batch. Each output has a bias of its own; only the samples share it. Say
    along which axis the sum goes."""
    return dy @ W.T, x.T @ dy, dy.sum()


also_wrong = (
    lambda dy, x, W: (dy @ W.T, dy.T @ x, dy.sum(axis=0)),
    lambda dy, x, W: (dy @ W.T, x.reshape(x.shape[::-1]) @ dy, dy.sum(axis=0)),
    lambda dy, x, W: (dy @ W.T, x.T @ dy, dy.sum(axis=0, keepdims=True)),
    lambda dy, x, W: (dy @ W.T, x.T @ dy, dy),
    lambda dy, x, W: tuple(gradient.astype(np.float64) for gradient in affine_backward(dy, x, W)),
)


def inputs(rng):
    def draw(n, d_in, d_out, dtype=np.float64, scale=1):
        shapes = (n, d_out), (n, d_in), (d_in, d_out)
        return tuple((scale * rng.standard_normal(shape)).astype(dtype) for shape in shapes)

    whole = np.array([[1, 2], [3, 4]]), np.array([[1, 0, 2], [0, 1, 1]]), np.array([[1, 2], [0, 1], [3, 0]])
    yield "2 samples, 3 → 2, small numbers", tuple(array.astype(np.float64) for array in whole)
    yield "one sample, 3 → 2", draw(1, 3, 2)
    yield "one input, one output", draw(5, 1, 1)
    yield "N = D_in = D_out = 3: each transposed array fits", draw(3, 3, 3)
    yield "7 samples, 5 → 3, float32", draw(7, 5, 3, np.float32)
    yield "4 samples, 2 → 6, numbers of 1000", draw(4, 2, 6, scale=1000)


def large(rng):
    shapes = (128, 512), (128, 512), (512, 512)
    return tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
