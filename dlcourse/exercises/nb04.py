"""Exercises of notebook 04: activations and losses."""

import math
from collections.abc import Iterator

import numpy as np

from dlcourse.exercises.exercise import Exercise, Wrong

Array = np.ndarray
Cases = Iterator[tuple[str, tuple]]
SCALE, CUBIC = math.sqrt(2 / math.pi), 0.044715


def tanh_backward(dy: Array, y: Array) -> Array:
    dx = y * y
    np.subtract(1, dx, out=dx)
    dx *= dy
    return dx


def _tanh_inputs(rng: np.random.Generator) -> Cases:
    yield "one number, y = 0.5", (np.array([2.0]), np.array([0.5]))
    yield "(3, 2), float64", (rng.standard_normal((3, 2)), np.tanh(rng.standard_normal((3, 2))))
    yield "y at -1, 0 and 1", (np.array([3.0, 3.0, 3.0]), np.array([-1.0, 0.0, 1.0]))
    dy, x = rng.standard_normal((2, 2, 3, 5), dtype=np.float32)
    yield "(2, 3, 5), float32", (dy, np.tanh(x))
    yield "no sample, (0, 4)", (np.zeros((0, 4)), np.zeros((0, 4)))


def _two_arrays(rng: np.random.Generator) -> tuple:
    return tuple(np.tanh(rng.standard_normal((2, 1024, 512), dtype=np.float32)))


def softmax(logits: Array) -> Array:
    y = logits - logits.max(axis=-1, keepdims=True)
    np.exp(y, out=y)
    y /= y.sum(axis=-1, keepdims=True)
    return y


def _shifted_by(logits: Array, shift: Array | float) -> Array:
    with np.errstate(all="ignore"):
        e = np.exp(logits - shift)
        return e / e.sum(axis=-1, keepdims=True)


def _along(logits: Array, axis: int) -> Array:
    e = np.exp(logits - logits.max(axis=axis, keepdims=True))
    return e / e.sum(axis=axis, keepdims=True)


def _one_sum(logits: Array) -> Array:
    e = np.exp(logits - logits.max(axis=-1, keepdims=True))
    return e / e.sum()


def _softmax_inputs(rng: np.random.Generator) -> Cases:
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


def _scaled(logits: Array, labels: Array, of_loss: float, of_gradient: float) -> tuple[float, Array]:
    loss, dlogits = cross_entropy(logits, labels)
    return loss * of_loss, dlogits * of_gradient


def _log_of_p(logits: Array, labels: Array, least: float, *, times_target: bool = False) -> tuple[float, Array]:
    t = np.eye(logits.shape[1])[labels]
    with np.errstate(all="ignore"):
        logs = np.log(np.maximum(softmax(logits), least))
        losses = -(t * logs) if times_target else -logs[t == 1]
    return float(losses.sum() / len(logits)), cross_entropy(logits, labels)[1]


def _whole_columns(logits: Array, labels: Array) -> tuple[float, Array]:
    p = softmax(logits)
    p[:, labels] -= 1
    return cross_entropy(logits, labels)[0], p / len(p)


def _not_shifted(logits: Array, labels: Array) -> tuple[float, Array]:
    rows = np.arange(len(logits))
    with np.errstate(all="ignore"):
        e = np.exp(logits)
        s = e.sum(axis=1, keepdims=True)
        p = e / s
        p[rows, labels] -= 1
        return float((np.log(s[:, 0]) - logits[rows, labels]).mean()), p / len(p)


def _entropy_inputs(rng: np.random.Generator) -> Cases:
    yield "one sample, equal scores", (np.zeros((1, 10)), np.array([3]))
    yield "[1000, 0, -1000], label 1", (np.array([[1000.0, 0, -1000]]), np.array([1]))
    yield "4 samples, 3 classes", (rng.standard_normal((4, 3)), np.array([0, 2, 2, 1]))
    yield "3 samples, 3 classes", (3 * rng.standard_normal((3, 3)), np.array([2, 0, 1]))
    yield "the same label five times", (rng.standard_normal((5, 4)), np.array([1, 1, 1, 1, 1]))
    far = np.array([[1000.0, 0, 0], [-1000, -1001, -1002], [0, 0, 0]], np.float32)
    yield "rows far apart, float32", (far, np.array([0, 2, 1]))
    yield "labels in uint8", (rng.standard_normal((6, 10), dtype=np.float32), rng.integers(0, 10, 6).astype(np.uint8))


def _entropy_big(rng: np.random.Generator) -> tuple:
    return rng.standard_normal((512, 1024), dtype=np.float32), rng.integers(0, 1024, 512)


def relu_backward_from_bits(dy: Array, bits: Array) -> Array:
    return dy * _unpacked(dy, bits)


def _unpacked(dy: Array, bits: Array, **order: str) -> Array:
    return np.unpackbits(bits, count=dy.size, **order).reshape(dy.shape)  # type: ignore[call-overload]


def _bits_inputs(rng: np.random.Generator) -> Cases:
    def case(shape: tuple[int, ...], dtype: type) -> tuple:
        return rng.standard_normal(shape).astype(dtype), np.packbits(rng.standard_normal(shape) > 0)

    yield "8 numbers, 1 byte", case((8,), np.float32)
    yield "10 numbers, 2 bytes", case((10,), np.float32)
    yield "(3, 5), 2 bytes", case((3, 5), np.float32)
    yield "(2, 3, 3, 2), 5 bytes", case((2, 3, 3, 2), np.float32)
    yield "one number", (np.array([[4.0]], np.float32), np.packbits([True]))
    yield "none above 0", (np.ones((4, 4), np.float32), np.packbits(np.zeros(16, bool)))
    yield "(5, 7), float64", case((5, 7), np.float64)


def _bits_big(rng: np.random.Generator) -> tuple:
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


def _product_rule(dy: Array, x: Array, *, square: int = 2, inner: bool = True, scale: float = SCALE) -> Array:
    """The same from the formula, with a part of it left out."""
    t = np.tanh(SCALE * (x + CUBIC * x**3))
    du = scale * (1 + 3 * CUBIC * x * x) if inner else scale
    return dy * (0.5 * (1 + t) + 0.5 * x * (1 - t**square) * du)


def _gelu_inputs(rng: np.random.Generator) -> Cases:
    yield "x at -1, 0 and 1", (np.ones(3), np.array([-1.0, 0.0, 1.0]))
    yield "(3, 4), float64", (rng.standard_normal((3, 4)), 2 * rng.standard_normal((3, 4)))
    yield "x at -1000 and 1000", (np.array([2.0, 2.0]), np.array([-1000.0, 1000.0]))
    yield "(2, 3, 5), float32", tuple(rng.standard_normal((2, 2, 3, 5), dtype=np.float32))


EXERCISES = [
    Exercise(
        id="04.1",
        title="The backward pass of tanh",
        reference=tanh_backward,
        inputs=_tanh_inputs,
        hints=(
            "The slope of tanh is 1 − tanh(x)². You do not have x. Which part of the formula do you have?",
            "The slope is 1 − y². The chain rule multiplies it with what comes in from above.",
            "dx = dy · (1 − y · y). Begin with dx = y * y and change it in place: then there is no other array.",
        ),
        wrong=(
            Wrong(
                lambda dy, y: dy * (1 - np.tanh(y) ** 2),
                "You take tanh of y. But y is tanh(x) already, so the slope is 1 − y².",
            ),
            Wrong(lambda dy, y: 1 - y * y, "You return the slope alone. Backward multiplies it with dy."),
            Wrong(
                lambda dy, y: dy * (1 - y),
                "Your slope is 1 − y; the square is missing. At y = −1 tanh is flat, so there the slope has to be 0.",
            ),
            Wrong(
                lambda dy, y: dy * y * (1 - y),
                "y (1 − y) is the slope of the sigmoid. tanh goes from −1 to 1 and has the slope 1 − y².",
            ),
        ),
        big=_two_arrays,
        costs=((1.5, "you make a second array beside dx. y * y can become dx, changed in place"),),
    ),
    Exercise(
        id="04.2",
        title="A softmax that survives",
        reference=softmax,
        inputs=_softmax_inputs,
        hints=(
            "exp(1000) is too large for any float. What may you subtract from a row without changing its softmax?",
            "Subtract from each row its own maximum. keepdims=True keeps the axis, so that the shapes fit.",
            "The classes are on the last axis: axis=-1 finds it, whatever the number of axes.",
            "y = logits - logits.max(axis=-1, keepdims=True); then np.exp(y, out=y); then divide y by its sum over axis -1.",
        ),
        wrong=(
            Wrong(
                lambda logits: _shifted_by(logits, 0.0),
                "Your formula is right on paper. But exp(1000) is infinite in a float, and infinite / infinite is NaN. "
                "Subtract the maximum of each row before exp.",
            ),
            Wrong(
                lambda logits: _shifted_by(logits, logits.max()),
                "One maximum of the whole batch is too large for a low row: 0 / 0 is NaN. Each row needs its own.",
            ),
            Wrong(
                _one_sum,
                "You divide by the sum over the whole batch. Each row has to sum to 1: sum along the last axis.",
            ),
            Wrong(
                lambda logits: _along(logits, 0),
                "Your columns sum to 1, as if samples competed. The classes are on the last axis: axis=-1.",
            ),
            Wrong(
                lambda logits: _along(logits, 1),
                "axis=1 holds the classes only where there are two axes. axis=-1 is the last, whatever their number.",
            ),
            Wrong(
                lambda logits: softmax(logits.astype(np.float64)),
                "The numbers are right, but float64 where the scores were float32: twice the bytes in all that follows.",
            ),
        ),
        big=lambda rng: (rng.standard_normal((512, 1024), dtype=np.float32),),
        costs=(
            (2.5, "you hold the shifted scores, their exp and the result at once. Work on in one array"),
            (1.5, "you hold two arrays of this size at once. Work on in one: np.exp(y, out=y), then y /= …"),
        ),
    ),
    Exercise(
        id="04.3",
        title="Cross-entropy and its gradient, in one",
        reference=cross_entropy,
        inputs=_entropy_inputs,
        hints=(
            "The loss of a sample is log(sum of exp(z)) − z[label], where z is its row less the row's maximum.",
            "z[np.arange(N), labels] takes the score of its label from each row.",
            "The gradient is softmax(z), less 1 in the place of the label, all divided by N: the loss is a mean.",
            "right = z[rows, labels]; np.exp(z, out=z); s = z.sum(axis=1, keepdims=True); loss: mean of log(s[:, 0]) − right.",
        ),
        wrong=(
            Wrong(
                lambda logits, labels: _scaled(logits, labels, len(labels), len(labels)),
                "Your loss and your gradient are sums over the batch. The loss is a mean: divide both by N.",
            ),
            Wrong(
                lambda logits, labels: _scaled(logits, labels, 1, len(labels)),
                "Your loss is right. Your gradient is N times too large, that of a sum over the batch: divide it by N.",
            ),
            Wrong(
                lambda logits, labels: _scaled(logits, labels, 1, 1 / logits.shape[1]),
                "Your gradient is divided by N · K. The loss is a mean of N losses, one a sample: divide by N.",
            ),
            Wrong(
                lambda logits, labels: _log_of_p(logits, labels, 1e-12),
                "You keep the probability away from 0 before the log. So no loss is above 27.6, and for [1000, 0, −1000] "
                "with label 1 it should be 1000. log(sum of exp) − score needs no such limit.",
            ),
            Wrong(
                lambda logits, labels: _log_of_p(logits, labels, 0.0),
                "You take the log of the probability. For [1000, 0, −1000] with label 1 it was rounded to 0, and your loss "
                "is infinite; it should be 1000. Use log(sum of exp) − score.",
            ),
            Wrong(
                lambda logits, labels: _log_of_p(logits, labels, 0.0, times_target=True),
                "You multiply log p by the target. Where p was rounded to 0 that is 0 · log 0, and this is NaN, even when "
                "the answer is right. Use log(sum of exp) − score.",
            ),
            Wrong(
                _not_shifted,
                "exp(1000) is infinite, and NaN follows. Subtract each row's maximum: in the loss it drops out again.",
            ),
            Wrong(
                lambda logits, labels: _scaled(logits, labels, 1, -1),
                "Your gradient has the wrong sign. In the place of the label it is p − 1, which is never above 0.",
            ),
            Wrong(
                _whole_columns,
                "p[:, labels] takes whole columns, in all rows. You need one place in each row: p[np.arange(N), labels].",
            ),
        ),
        big=_entropy_big,
        costs=(
            (2.5, "you hold three arrays of this size or more at once: z, exp(z), p. One is enough: work on in z"),
            (
                1.5,
                "you hold two arrays of this size at once. Take the scores of the labels out first, then work on in z",
            ),
        ),
        parts=("loss", "dlogits"),
        rtol=1e-5,  # a loss in float32 depends on the order of its sums
    ),
    Exercise(
        id="04.4",
        title="Backward from one bit a number",
        reference=relu_backward_from_bits,
        inputs=_bits_inputs,
        hints=(
            "np.unpackbits gives eight bytes, 0 or 1, for each byte of bits. They stand in one row.",
            "10 numbers take 2 bytes, and these give 16. The argument `count` says how many are wanted.",
            "np.unpackbits(bits, count=dy.size).reshape(dy.shape) is a mask in bytes. Multiply dy by it.",
        ),
        wrong=(
            Wrong(
                lambda dy, bits: dy * np.unpackbits(bits).reshape(dy.shape),
                "The last byte was filled up with zeros that belong to no number. Give np.unpackbits a count.",
            ),
            Wrong(
                lambda dy, bits: dy * _unpacked(dy, bits, bitorder="little"),
                "You read each byte from the other end. np.packbits begins with the highest bit, bitorder='big'.",
            ),
            Wrong(
                lambda dy, bits: dy * (bits.reshape(dy.shape) > 0),
                "You take each byte for one number. A byte stands for eight: np.unpackbits takes them apart.",
            ),
            Wrong(
                lambda dy, bits: dy * _unpacked(dy, bits).astype(np.float64),
                "The numbers are right, but dx is float64 where dy was float32. A mask in bytes leaves dy's dtype.",
            ),
            Wrong(lambda dy, bits: _unpacked(dy, bits).astype(dy.dtype), "You return the mask. Multiply it with dy."),
            Wrong(
                lambda dy, bits: dy * (1 - _unpacked(dy, bits)),
                "You keep dy where the bit is 0. A bit of 1 says that the number was above 0 and went through.",
            ),
        ),
        big=_bits_big,
        costs=((1.5, "you turned the mask into float32, as large as dx. Multiply dy by the bytes"),),
    ),
    Exercise(
        id="04.5",
        title="GELU backward in two arrays",
        reference=gelu_backward,
        inputs=_gelu_inputs,
        hints=(
            "y = ½ x (1 + t) is a product, so its slope has two terms. In the second, t depends on x.",
            "The slope is ½ (1 + t) + ½ x (1 − t²) u′. First get this right, times dy; then count the arrays.",
            "(1 − t²) = (1 + t)(1 − t), so the slope is ½ (1 + t) (1 + x u′ (1 − t)). One array for t, one for dx.",
            "In place: dx becomes x u′. t −= 1 gives −(1 − t): multiply dx by it, subtract dx from 1. t += 2 gives 1 + t.",
        ),
        wrong=(
            Wrong(
                lambda dy, x: _product_rule(dy, x, scale=0.0),
                "You have the first term, ½ (1 + t). But t depends on x too: the second term is ½ x (1 − t²) u′.",
            ),
            Wrong(
                lambda dy, x: _product_rule(dy, x, inner=False, scale=1.0),
                "You left out the last factor of the chain rule: the slope of tanh(u) is (1 − t²) times u′.",
            ),
            Wrong(
                lambda dy, x: _product_rule(dy, x, inner=False),
                "Your u′ is s alone. But u = s (x + c x³), and its slope is s (1 + 3 c x²).",
            ),
            Wrong(
                lambda dy, x: _product_rule(dy, x, square=1),
                "You have 1 − t where the slope of tanh is 1 − t². At x = −1000 your slope is far from 0.",
            ),
            Wrong(lambda dy, x: _product_rule(np.ones_like(x), x), "You return the slope alone. Multiply it with dy."),
            Wrong(
                lambda dy, x: gelu_backward(dy.astype(np.float64), x.astype(np.float64)),
                "The numbers are right, but dx is float64 where x was float32. np.sqrt(2 / np.pi) is a NumPy number in "
                "float64; math.sqrt gives a plain one, which takes the dtype of the array.",
            ),
        ),
        big=_two_arrays,
        costs=(
            (1.75, "you hold four arrays of this size or more at once. Each name and each intermediate result is one"),
            (1.25, "you hold three arrays of this size at once. Two are enough: one for t, one for dx, in place"),
        ),
    ),
]
