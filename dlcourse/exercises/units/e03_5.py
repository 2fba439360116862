"""03.5  Any number of axes."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "dx", "dW", "db"
hints = """
- All axes but the last are samples in the end. Lay them in one: x.reshape(-1, x.shape[-1]).
- dx needs no reshape: dy @ W.T works on the last axis, whatever stands before it.
- rows = x.reshape(-1, D_in), drows = dy.reshape(-1, D_out); then dW and db as in 03.2, from rows and drows.
"""
costs = ((3.0, "a dW for each sample before they are added; one product over all rows adds on the way"),)


@solution
def affine_backward_any(dy, x, W):
    """dy (…, D_out), x (…, D_in), W (D_in, D_out) -> dx (…, D_in), dW (D_in, D_out), db (D_out,)."""
    rows = x.reshape(-1, x.shape[-1])  # all axes but the last in one: a view
    drows = dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, rows.T @ drows, drows.sum(axis=0)


def affine_backward(dy, x, W):
    """dy (N, D_out), x (N, D_in), W (D_in, D_out) -> dx (N, D_in), dW (D_in, D_out), db (D_out,)."""
    return dy @ W.T, x.T @ dy, dy.sum(axis=0)


@wrong
def for_two_axes(dy, x, W):
    """This is the answer for two axes. With three, x.T turns all axes round, db keeps one axis too many, and shapes do
    not fit. Lay all axes but the last in one first."""
    return dy @ W.T, x.T @ dy, dy.sum(axis=0)


@wrong
def dW_of_each_sample(dy, x, W):
    """Your dW has a matrix for each sample: the product sums over the steps only. The same W served all samples, so
    their matrices must be added."""
    axes = tuple(range(dy.ndim - 1))
    return dy @ W.T, np.swapaxes(x, -1, -2) @ dy, dy.sum(axis=axes)


@wrong
def db_of_each_place(dy, x, W):
    """Your db is summed over the first axis only. b was spread over every axis but the last; sum over all of them
    (notebook 01, section 8)."""
    dx, dW, _ = affine_backward_any(dy, x, W)
    return dx, dW, dy.sum(axis=0)


@wrong
def rows_reshaped(dy, x, W):
    """You wrote x.reshape(D_in, -1), which keeps the numbers in the order of the strip and mixes samples and inputs.
    First reshape to (-1, D_in), then transpose."""
    dx, _, db = affine_backward_any(dy, x, W)
    return dx, x.reshape(x.shape[-1], -1) @ dy.reshape(-1, dy.shape[-1]), db


also_wrong = (lambda dy, x, W: affine_backward(dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1]), W),)


def inputs(rng):
    def draw(before, d_in, d_out, dtype=np.float64):
        shapes = (*before, d_out), (*before, d_in), (d_in, d_out)
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    yield "2 sequences of 3 steps, 4 → 2", draw((2, 3), 4, 2)
    yield "one sequence of one step", draw((1, 1), 3, 2)
    yield "no axis but the batch", draw((5,), 3, 2)
    yield "three axes, float32", draw((2, 3, 2), 2, 3, np.float32)
    yield "all sizes 3", draw((3, 3), 3, 3)


def large(rng):
    shapes = (64, 16, 256), (64, 16, 256), (256, 256)
    return tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
