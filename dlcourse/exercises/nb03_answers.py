"""Answers to the exercises of notebook 03, right and wrong, and the inputs to try them on. 03.3 is in nb03_checks."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import numpy as np

Gradients = tuple[Any, ...]

# 03.1


def two_neurons_backward(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    """z = w1 x + b1, y = w2 z + b2, L = (y - t)² -> dw1, db1, dw2, db2: numbers."""
    z = w1 * x + b1
    dy = 2 * (w2 * z + b2 - t)
    dz = dy * w2
    return dz * x, dz, dy * z, dy


def no_two(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    z = w1 * x + b1
    dy = w2 * z + b2 - t
    return dy * w2 * x, dy * w2, dy * z, dy


def wrong_sign(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    return tuple(-gradient for gradient in two_neurons_backward(x, t, w1, b1, w2, b2))


def link_missing(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    z = w1 * x + b1
    dy = 2 * (w2 * z + b2 - t)
    return dy * x, dy, dy * z, dy


def x_for_z(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    dy = 2 * (w2 * (w1 * x + b1) + b2 - t)
    return dy * w2 * x, dy * w2, dy * x, dy


def w1_for_w2(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    z = w1 * x + b1
    dy = 2 * (w2 * z + b2 - t)
    return dy * w1 * x, dy * w1, dy * z, dy


def z_for_w2(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    z = w1 * x + b1
    dy = 2 * (w2 * z + b2 - t)
    return dy * z * x, dy * z, dy * z, dy


def neurons_exchanged(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    dw1, db1, dw2, db2 = two_neurons_backward(x, t, w1, b1, w2, b2)
    return dw2, db2, dw1, db1


def bias_without_dy(x: float, t: float, w1: float, b1: float, w2: float, b2: float) -> Gradients:
    dw1, db1, dw2, _ = two_neurons_backward(x, t, w1, b1, w2, b2)
    return dw1, db1, dw2, 1


def numbers(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "small whole numbers", (2, 4, 3, 1, -1, 5)
    yield "x is 0", (0.0, 1.0, 2.0, 0.5, -3.0, 0.25)
    yield "w2 is 0", (1.5, -2.0, 0.7, 0.1, 0.0, 1.0)
    yield "numbers of 1000", (1000.0, -1000.0, 0.5, 1000.0, -2.0, 3.0)
    for which in ("", ", others", ", more"):
        yield f"random numbers{which}", tuple(float(number) for number in rng.standard_normal(6))


# 03.2


def affine_backward(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    """dy (N, D_out), x (N, D_in), W (D_in, D_out) -> dx (N, D_in), dW (D_in, D_out), db (D_out,)."""
    return dy @ W.T, x.T @ dy, dy.sum(axis=0)


def mean(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, x.T @ dy / len(dy), dy.mean(axis=0)


def mean_bias(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, x.T @ dy, dy.mean(axis=0)


def dx_not_transposed(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W, x.T @ dy, dy.sum(axis=0)


def dx_reshaped(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.reshape(W.shape[::-1]), x.T @ dy, dy.sum(axis=0)


def dW_transposed(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, dy.T @ x, dy.sum(axis=0)


def dW_reshaped(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, x.reshape(x.shape[::-1]) @ dy, dy.sum(axis=0)


def bias_keeps_axis(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, x.T @ dy, dy.sum(axis=0, keepdims=True)


def bias_not_summed(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, x.T @ dy, dy


def bias_over_outputs(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, x.T @ dy, dy.sum(axis=1)


def bias_one_number(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, x.T @ dy, dy.sum()


def float64(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return tuple(gradient.astype(np.float64) for gradient in affine_backward(dy, x, W))


def batches(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def draw(n: int, d_in: int, d_out: int, dtype: type = np.float64, scale: float = 1) -> tuple:
        shapes = (n, d_out), (n, d_in), (d_in, d_out)
        return tuple((scale * rng.standard_normal(shape)).astype(dtype) for shape in shapes)

    whole = np.array([[1, 2], [3, 4]]), np.array([[1, 0, 2], [0, 1, 1]]), np.array([[1, 2], [0, 1], [3, 0]])
    yield "2 samples, 3 → 2, small numbers", tuple(array.astype(np.float64) for array in whole)
    yield "one sample, 3 → 2", draw(1, 3, 2)
    yield "one input, one output", draw(5, 1, 1)
    yield "N = D_in = D_out = 3: each transposed array fits", draw(3, 3, 3)
    yield "7 samples, 5 → 3, float32", draw(7, 5, 3, np.float32)
    yield "4 samples, 2 → 6, numbers of 1000", draw(4, 2, 6, scale=1000)


def large_batch(rng: np.random.Generator) -> tuple:
    shapes = (128, 512), (128, 512), (512, 512)
    return tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)


# 03.4


def affine_bytes(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    """-> bytes of all W and b, bytes of the inputs x that the layers keep for backward."""
    pairs = list(pairwise(widths))
    params = sum((d_in + 1) * d_out for d_in, d_out in pairs)
    saved = sum(batch * d_in for d_in, _ in pairs)
    return params * itemsize, saved * itemsize


def no_bias(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    params = sum(d_in * d_out for d_in, d_out in pairwise(widths))
    return params * itemsize, affine_bytes(widths, batch, itemsize)[1]


def bias_of_inputs(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    params = sum(d_in * (d_out + 1) for d_in, d_out in pairwise(widths))
    return params * itemsize, affine_bytes(widths, batch, itemsize)[1]


def outputs(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    return affine_bytes(widths, batch, itemsize)[0], batch * sum(widths[1:]) * itemsize


def inputs_and_outputs(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    return affine_bytes(widths, batch, itemsize)[0], batch * sum(widths[:-1] + widths[1:]) * itemsize


def every_array_once(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    return affine_bytes(widths, batch, itemsize)[0], batch * sum(widths) * itemsize


def without_the_batch(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    return affine_bytes(widths, batch, itemsize)[0], batch * sum(widths[1:-1]) * itemsize


def one_sample(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    return affine_bytes(widths, 1, itemsize)


def a_copy_for_each_sample(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    params, saved = affine_bytes(widths, batch, itemsize)
    return params * batch, saved


def numbers_not_bytes(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    return affine_bytes(widths, batch, 1)


def four_always(widths: list[int], batch: int, itemsize: int) -> tuple[int, int]:
    return affine_bytes(widths, batch, 4)


def stacks(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "one layer, 3 → 2, float32", ([3, 2], 5, 4)
    yield "two layers, 3 → 4 → 2, float64", ([3, 4, 2], 5, 8)
    yield "one sample", ([784, 512, 512, 10], 1, 4)
    yield "three layers, 784 → 512 → 512 → 10, batch 64", ([784, 512, 512, 10], 64, 4)
    yield "two equal widths, half precision", ([256, 256], 100, 2)


# 03.5


def affine_backward_any(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    """dy (…, D_out), x (…, D_in), W (D_in, D_out) -> dx (…, D_in), dW (D_in, D_out), db (D_out,)."""
    rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, dy.shape[-1])
    return dy @ W.T, rows.T @ drows, drows.sum(axis=0)


def for_two_axes(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return dy @ W.T, x.T @ dy, dy.sum(axis=0)


def dW_of_each_sample(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    axes = tuple(range(dy.ndim - 1))
    return dy @ W.T, np.swapaxes(x, -1, -2) @ dy, dy.sum(axis=axes)


def db_of_each_place(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    dx, dW, _ = affine_backward_any(dy, x, W)
    return dx, dW, dy.sum(axis=0)


def dx_flat(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    return affine_backward(dy.reshape(-1, dy.shape[-1]), x.reshape(-1, x.shape[-1]), W)


def rows_reshaped(dy: np.ndarray, x: np.ndarray, W: np.ndarray) -> Gradients:
    dx, _, db = affine_backward_any(dy, x, W)
    return dx, x.reshape(x.shape[-1], -1) @ dy.reshape(-1, dy.shape[-1]), db


def shapes_of_any_length(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def draw(before: tuple[int, ...], d_in: int, d_out: int, dtype: type = np.float64) -> tuple:
        shapes = (*before, d_out), (*before, d_in), (d_in, d_out)
        return tuple(rng.standard_normal(shape).astype(dtype) for shape in shapes)

    yield "2 sequences of 3 steps, 4 → 2", draw((2, 3), 4, 2)
    yield "one sequence of one step", draw((1, 1), 3, 2)
    yield "no axis but the batch", draw((5,), 3, 2)
    yield "three axes, float32", draw((2, 3, 2), 2, 3, np.float32)
    yield "all sizes 3", draw((3, 3), 3, 3)


def long_sequences(rng: np.random.Generator) -> tuple:
    shapes = (64, 16, 256), (64, 16, 256), (256, 256)
    return tuple(rng.standard_normal(shape, dtype=np.float32) for shape in shapes)
