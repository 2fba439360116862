"""Answers to the exercises of notebook 04, right and wrong, and the inputs to try them on."""

import math
from collections.abc import Iterator

import numpy as np

Array = np.ndarray
Cases = Iterator[tuple[str, tuple]]
SCALE, CUBIC = math.sqrt(2 / math.pi), 0.044715


def tanh_backward(dy: Array, y: Array) -> Array:
    dx = y * y
    np.subtract(1, dx, out=dx)
    dx *= dy
    return dx


def tanh_inputs(rng: np.random.Generator) -> Cases:
    yield "one number, y = 0.5", (np.array([2.0]), np.array([0.5]))
    yield "(3, 2), float64", (rng.standard_normal((3, 2)), np.tanh(rng.standard_normal((3, 2))))
    yield "y at -1, 0 and 1", (np.array([3.0, 3.0, 3.0]), np.array([-1.0, 0.0, 1.0]))
    dy, x = rng.standard_normal((2, 2, 3, 5), dtype=np.float32)
    yield "(2, 3, 5), float32", (dy, np.tanh(x))
    yield "no sample, (0, 4)", (np.zeros((0, 4)), np.zeros((0, 4)))


def two_arrays(rng: np.random.Generator) -> tuple:
    return tuple(np.tanh(rng.standard_normal((2, 1024, 512), dtype=np.float32)))


def softmax(logits: Array) -> Array:
    y = logits - logits.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def shifted_by(logits: Array, shift: Array | float) -> Array:
    with np.errstate(all="ignore"):
        e = np.exp(logits - shift)
        return e / e.sum(axis=-1, keepdims=True)


def along(logits: Array, axis: int) -> Array:
    e = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def one_sum(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum()


def without_keepdims(logits: Array, of_max: bool, of_sum: bool) -> Array:
    """keepdims=True is left out in the maximum, in the sum, or in both."""
    with np.errstate(all="ignore"):
        e = np.exp(logits - logits.max(axis=-1, keepdims=not of_max))
        return e / e.sum(axis=-1, keepdims=not of_sum)


def softmax_inputs(rng: np.random.Generator) -> Cases:
    yield "one row [1, 2, 3]", (np.array([[1.0, 2.0, 3.0]]),)
    yield "rows [0,0,0], [1,2,3], [1000,0,0]", (np.array([[0.0, 0, 0], [1, 2, 3], [1000, 0, 0]]),)
    yield "two rows of four", (rng.standard_normal((2, 4)),)
    yield "rows around -1000", (rng.standard_normal((3, 4)) - 1000,)
    yield "rows far apart, float32", (np.array([[1000.0, 0, -1000], [-1000, -1001, -1002]], np.float32),)
    yield "one class", (np.array([[3.0], [-3.0]]),)
    yield "a row alone, shape (5,)", (rng.standard_normal(5),)
    yield "(2, 3, 4): three positions in each sample", (rng.standard_normal((2, 3, 4)),)


def cross_entropy(logits: Array, labels: Array) -> tuple[float, Array]:
    z = logits - logits.max(axis=1, keepdims=True)
    rows = np.arange(len(z))
    right = z[rows, labels]
    np.exp(z, out=z)
    s = z.sum(axis=1, keepdims=True)
    loss = float((np.log(s[:, 0]) - right).mean())
    z /= s
    z[rows, labels] -= 1
    z /= len(z)
    return loss, z


def scaled(logits: Array, labels: Array, of_loss: float, of_gradient: float) -> tuple[float, Array]:
    loss, dlogits = cross_entropy(logits, labels)
    return loss * of_loss, dlogits * of_gradient


def log_of_p(logits: Array, labels: Array, least: float, *, times_target: bool = False) -> tuple[float, Array]:
    t = np.eye(logits.shape[1])[labels]
    with np.errstate(all="ignore"):
        logs = np.log(np.maximum(softmax(logits), least))
        losses = -(t * logs) if times_target else -logs[t == 1]
    return float(losses.sum() / len(logits)), cross_entropy(logits, labels)[1]


def whole_columns(logits: Array, labels: Array) -> tuple[float, Array]:
    p = softmax(logits)
    p[:, labels] -= 1
    return cross_entropy(logits, labels)[0], p / len(p)


def not_shifted(logits: Array, labels: Array) -> tuple[float, Array]:
    rows = np.arange(len(logits))
    with np.errstate(all="ignore"):
        e = np.exp(logits)
        s = e.sum(axis=1, keepdims=True)
        p = e / s
        p[rows, labels] -= 1
        return float((np.log(s[:, 0]) - logits[rows, labels]).mean()), p / len(p)


def one_not_divided(logits: Array, labels: Array) -> tuple[float, Array]:
    dlogits = softmax(logits) / len(logits)
    dlogits[np.arange(len(logits)), labels] -= 1
    return cross_entropy(logits, labels)[0], dlogits


def score_not_shifted(logits: Array, labels: Array) -> tuple[float, Array]:
    loss, dlogits = cross_entropy(logits, labels)
    return loss - float(logits.max(axis=1).mean()), dlogits


def targets_in_float64(logits: Array, labels: Array) -> tuple[float, Array]:
    t = np.eye(logits.shape[1])[labels]
    return cross_entropy(logits, labels)[0], (softmax(logits) - t) / len(logits)


def entropy_inputs(rng: np.random.Generator) -> Cases:
    yield "one sample, equal scores", (np.zeros((1, 10)), np.array([3]))
    yield "[1000, 0, -1000], label 1", (np.array([[1000.0, 0, -1000]]), np.array([1]))
    yield "4 samples, 3 classes", (rng.standard_normal((4, 3)), np.array([0, 2, 2, 1]))
    yield "3 samples, 3 classes", (3 * rng.standard_normal((3, 3)), np.array([2, 0, 1]))
    yield "the same label five times", (rng.standard_normal((5, 4)), np.array([1, 1, 1, 1, 1]))
    far = np.array([[1000.0, 0, 0], [-1000, -1001, -1002], [0, 0, 0]], np.float32)
    yield "rows far apart, float32", (far, np.array([0, 2, 1]))
    yield "labels in uint8", (rng.standard_normal((6, 10), dtype=np.float32), rng.integers(0, 10, 6).astype(np.uint8))


def entropy_big(rng: np.random.Generator) -> tuple:
    return rng.standard_normal((512, 1024), dtype=np.float32), rng.integers(0, 1024, 512)


def relu_backward_from_bits(dy: Array, bits: Array) -> Array:
    return dy * unpacked(dy, bits)


def unpacked(dy: Array, bits: Array, **order: str) -> Array:
    return np.unpackbits(bits, count=dy.size, **order).reshape(dy.shape)  # type: ignore[call-overload]


def bits_inputs(rng: np.random.Generator) -> Cases:
    def case(shape: tuple[int, ...], dtype: type) -> tuple:
        return rng.standard_normal(shape).astype(dtype), np.packbits(rng.standard_normal(shape) > 0)

    yield "8 numbers, 1 byte", case((8,), np.float32)
    yield "10 numbers, 2 bytes", case((10,), np.float32)
    yield "(3, 5), 2 bytes", case((3, 5), np.float32)
    yield "(2, 3, 3, 2), 5 bytes", case((2, 3, 3, 2), np.float32)
    yield "one number", (np.array([[4.0]], np.float32), np.packbits([True]))
    yield "none above 0", (np.ones((4, 4), np.float32), np.packbits(np.zeros(16, bool)))
    yield "(5, 7), float64", case((5, 7), np.float64)


def bits_big(rng: np.random.Generator) -> tuple:
    dy = rng.standard_normal((1024, 1024), dtype=np.float32)
    return dy, np.packbits(dy > 0.5)


def gelu_backward(dy: Array, x: Array) -> Array:
    dx = x * x
    t = dx * CUBIC
    t += 1
    t *= x
    t *= SCALE
    np.tanh(t, out=t)
    dx *= 3 * CUBIC * SCALE
    dx += SCALE
    dx *= x  # x u'
    t -= 1
    dx *= t  # -x u' (1 - t)
    np.subtract(1, dx, out=dx)
    t += 2
    dx *= t  # (1 + t) (1 + x u' (1 - t)), since (1 + t) (1 - t) = 1 - t²
    dx *= 0.5
    dx *= dy
    return dx


def product_rule(dy: Array, x: Array, *, square: int = 2, inner: bool = True, scale: float = SCALE) -> Array:
    """The same from the formula, with a part of it left out."""
    t = np.tanh(SCALE * (x + CUBIC * x**3))
    du = scale * (1 + 3 * CUBIC * x * x) if inner else scale
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**square) * du)


def gelu_inputs(rng: np.random.Generator) -> Cases:
    yield "x at -1, 0 and 1", (np.ones(3), np.array([-1.0, 0.0, 1.0]))
    yield "(3, 4), float64", (rng.standard_normal((3, 4)), 2 * rng.standard_normal((3, 4)))
    yield "x at -1000 and 1000", (np.array([2.0, 2.0]), np.array([-1000.0, 1000.0]))
    yield "(2, 3, 5), float32", tuple(rng.standard_normal((2, 2, 3, 5), dtype=np.float32))
