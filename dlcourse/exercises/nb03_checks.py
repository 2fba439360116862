"""Answers to exercise 03.3, a gradient check that can fail: the right one, wrong ones, and what they are to check."""

from collections.abc import Callable, Iterator

import numpy as np

TOLERANCE = 1e-6
Function = Callable[[np.ndarray], np.ndarray]
Backward = Callable[[np.ndarray, np.ndarray], np.ndarray]


def passes(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    """Whether backward(dy, x) is the gradient of (dy · f(x)).sum() with respect to x, in float64, to 1e-6."""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return bool(_errors(backward(dy, x), _both_sides(f, x, dy)).max() < TOLERANCE)


def _both_sides(f: Function, x: np.ndarray, dy: np.ndarray, h: float = 1e-5) -> np.ndarray:
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += h
        high = (dy * f(moved)).sum()
        moved[place] -= 2 * h
        found[place] = (high - (dy * f(moved)).sum()) / (2 * h)
    return found


def _errors(a: np.ndarray, n: np.ndarray) -> np.ndarray:
    size = np.maximum(abs(a), abs(n))
    return abs(a - n) / np.maximum(size, 0.001 * max(1, size.max()))


def through_the_sum(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    return passes(f, backward, x, np.ones_like(dy))


def mean_error(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return bool(_errors(backward(dy, x), _both_sides(f, x, dy)).mean() < TOLERANCE)


def signed_error(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    a, n = backward(dy, x), _both_sides(f, x, dy)
    size = np.maximum(abs(a), abs(n))
    return bool(((a - n) / np.maximum(size, 0.001 * max(1, size.max()))).max() < TOLERANCE)


def not_a_number_passes(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return not (_errors(backward(dy, x), _both_sides(f, x, dy)) > TOLERANCE).any()


def in_float32(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    return bool(_errors(backward(dy, x), _both_sides(f, x, dy)).max() < TOLERANCE)


def one_side(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    found = np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved = x.copy()
        moved[place] += 1e-5
        found[place] = (dy * (f(moved) - f(x))).sum() / 1e-5
    return bool(_errors(backward(dy, x), found).max() < TOLERANCE)


def not_put_back(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    moved, found = x.copy(), np.empty_like(x)
    for place in np.ndindex(x.shape):
        moved[place] += 1e-5
        high = (dy * f(moved)).sum()
        moved[place] -= 2e-5
        found[place] = (high - (dy * f(moved)).sum()) / 2e-5
    return bool(_errors(backward(dy, x), found).max() < TOLERANCE)


def absolute(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    return bool(abs(backward(dy, x) - _both_sides(f, x, dy)).max() < TOLERANCE)


def zero_by_zero(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    a, n = backward(dy, x), _both_sides(f, x, dy)
    with np.errstate(invalid="ignore"):
        return bool((abs(a - n) / np.maximum(abs(a), abs(n))).max() < TOLERANCE)


def arguments_exchanged(f: Function, backward: Backward, x: np.ndarray, dy: np.ndarray) -> bool:
    return passes(f, lambda dy, x: backward(x, dy), x, dy)


def softmax(x: np.ndarray) -> np.ndarray:
    """Of the last axis."""
    y = np.exp(x - x.max(axis=-1, keepdims=True))
    return y / y.sum(axis=-1, keepdims=True)


def softmax_backward(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    y = softmax(x)
    return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


def cube(x: np.ndarray) -> np.ndarray:
    return x**3


def cube_backward(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    return dy * 3 * x**2


def waves(x: np.ndarray) -> np.ndarray:
    return np.sin(20 * x)


def waves_backward(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    return dy * 20 * np.cos(20 * x)


def positive_part(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def positive_part_backward(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    return dy * (x > 0)


def all_zero(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.zeros_like(x)


def one_per_cent_more(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    return 1.01 * cube_backward(dy, x)


def too_small_somewhere(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    return cube_backward(dy, x) - 0.01 * abs(cube_backward(dy, x))


def one_entry_off(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    dx = cube_backward(dy, x)
    dx.flat[7] *= 1.0001
    return dx


def not_a_number(dy: np.ndarray, x: np.ndarray) -> np.ndarray:
    return np.where(np.arange(x.size).reshape(x.shape) == 1, np.nan, cube_backward(dy, x))


def checks(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def draw(*shape: int, scale: float = 1) -> tuple[np.ndarray, np.ndarray]:
        x = scale * rng.uniform(0.5, 2, shape) * np.where(rng.random(shape) < 0.5, -1, 1)  # none near 0
        return x, rng.standard_normal(shape)

    single = tuple(array.astype(np.float32) for array in draw(2, 3))
    yield "x³, right", (cube, cube_backward, *draw(2, 3))
    yield "x³, one per cent too large", (cube, one_per_cent_more, *draw(2, 3))
    yield "x³, too small everywhere, positive or negative", (cube, too_small_somewhere, *draw(2, 3))
    yield "softmax, right", (softmax, softmax_backward, *draw(2, 4))
    yield "softmax, a backward that is 0 everywhere", (softmax, all_zero, *draw(2, 4))
    yield "x³, given in float32, right", (cube, cube_backward, *single)
    yield "x³, one of 400 entries off by 0.01 per cent", (cube, one_entry_off, *draw(20, 20))
    yield "x³, NaN in one entry", (cube, not_a_number, *draw(2, 3))
    yield "sin(20 x), right: a strong curve", (waves, waves_backward, np.linspace(0.1, 0.9, 5), np.arange(1.0, 6.0))
    yield "x³ at 1000, right: large gradients", (cube, cube_backward, *draw(3, 2, scale=1000))
    yield "the positive part, right: some entries are 0", (positive_part, positive_part_backward, *draw(3, 3))
