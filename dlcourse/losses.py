"""Losses: each returns the loss as a Python float and its gradient with respect to the network's output.

    loss, dlogits = softmax_cross_entropy(logits, labels)

Every loss is the sum over the samples of the sample's mean over its positions or outputs, divided by `total`. `total` is
the number of samples when it is left out; a micro-batch passes the size of its whole batch, and the parts then add up.

The output is worked through in blocks of about `BLOCK` numbers, in float64 whatever its dtype: the sum stays exact for
large batches, and beside the gradient no array grows with the batch. `plan` says how many bytes a loss uses.

NaN or infinite logits give a NaN or infinite loss and no warning: the training loop looks for it and names the step.
Targets are checked, since a wrong target is a mistake in the data and not in the arithmetic.
"""

import functools
import math
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from dlcourse.plan import Plan

BLOCK = 4096  # numbers in a block: 32 KiB in float64, so that a block and its temporaries stay in the cache

Rule = Callable[[np.ndarray, np.ndarray], tuple[float, np.ndarray]]


def softmax(logits: np.ndarray) -> np.ndarray:
    """exp(logits) / sum of exp(logits) over the last axis.  (..., K) -> (..., K), same dtype.

    Each row's own maximum is subtracted first, so no logit is too large. Allocates the result and two numbers a row.
    """
    logits = _floating("logits", logits)
    with np.errstate(all="ignore"):
        y = np.subtract(logits, logits.max(axis=-1, keepdims=True))
        np.exp(y, out=y)
        y /= y.sum(axis=-1, keepdims=True)
    return y


def softmax_cross_entropy(
    logits: np.ndarray, labels: np.ndarray, *, total: float | None = None, label_smoothing: float = 0.0
) -> tuple[float, np.ndarray]:
    """The mean of -log(softmax(logits)[label]).  -> loss, dlogits (logits' shape and dtype).

    logits: (N, K), or (N, T, K) with T positions in each sample (or (K,), one sample); float32 or float64.
    labels: class numbers 0..K-1 of the shape of logits without its last axis; or soft targets of the shape of logits:
        probabilities, whose rows sum to 1 (within 0.001; they are divided by their sum).
    label_smoothing: a share in [0, 1) of each target that is spread evenly over the K classes (Szegedy et al. 2016).

    With t the target and p = softmax(logits), the gradient is (p - t) / (total T). The loss is log(sum of exp) minus the
    logit, never the log of p: a probability too small for a float still has its loss.

    Allocates dlogits and the workspace that `plan` names; logits that are not contiguous are copied besides.
    Raises TypeError for another dtype, ValueError for other shapes, an empty batch, a label outside 0..K-1, targets that
    are not probabilities, total <= 0.
    """
    logits = _floating("logits", logits)
    if logits.ndim == 0 or logits.size == 0:
        raise ValueError(f"logits have shape {logits.shape}; there must be at least one sample and one class")
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing is {label_smoothing}; it must be in [0, 1)")
    classes = logits.shape[-1]
    labels = _checked_labels(labels, logits.shape)
    samples = logits.shape[0] if logits.ndim > 1 else 1
    positions = logits.size // (samples * classes)
    rule = functools.partial(_cross_entropy, smoothing=float(label_smoothing))
    targets = labels.reshape(-1, classes) if labels.shape == logits.shape else labels.reshape(-1)
    loss, dlogits = _by_blocks(rule, logits.reshape(-1, classes), targets, 1.0 / (_total(total, samples) * positions))
    return loss, dlogits.reshape(logits.shape)


def binary_cross_entropy(
    logits: np.ndarray, targets: np.ndarray, *, total: float | None = None
) -> tuple[float, np.ndarray]:
    """The mean of -t log(p) - (1 - t) log(1 - p) with p = sigmoid(logits).  -> loss, dlogits (logits' shape and dtype).

    logits: (N, ...), float32 or float64; one yes-or-no question an entry.
    targets: the same shape, of any real dtype, in [0, 1].

    The gradient is (p - t) / (total D), D the number of entries of a sample. Computed as max(x, 0) - x t + log(1 +
    exp(-|x|)), in which nothing overflows.

    Allocates dlogits and the workspace that `plan` names; an input that is not contiguous is copied besides.
    Raises TypeError for another dtype, ValueError for other shapes, an empty batch, a target outside [0, 1], total <= 0.
    """
    logits, targets = _pair("logits", logits, targets)
    _check_range(targets, 0.0, 1.0)
    return _elementwise(_binary_cross_entropy, logits, targets, total)


def mean_squared_error(y: np.ndarray, targets: np.ndarray, *, total: float | None = None) -> tuple[float, np.ndarray]:
    """The mean of (y - targets)².  -> loss, dy (y's shape and dtype).

    y: (N, ...), float32 or float64.  targets: the same shape, of any real dtype, finite.
    The gradient is 2 (y - targets) / (total D), D the number of entries of a sample.

    Allocates dy and the workspace that `plan` names; an input that is not contiguous is copied besides.
    Raises TypeError for another dtype, ValueError for other shapes, an empty batch, a target that is not finite,
    total <= 0.
    """
    y, targets = _pair("y", y, targets)
    _check_range(targets, -np.finfo(np.float64).max, np.finfo(np.float64).max)
    return _elementwise(_squared_error, y, targets, total)


def plan(loss: Callable[..., Any], out_shape: tuple[int, ...], batch: int, dtype: Any = np.float32) -> Plan:
    """The bytes of `loss` (or of a functools.partial of it) for a batch of outputs of shape (batch, *out_shape).

    `forward_workspace` is the most bytes alive at one moment beyond the output, the targets and the gradient. The
    gradient is one array of the output's bytes. The workspace is the same for float32 and float64 outputs.
    A loss of your own says it in an attribute: `my_loss.plan = lambda out_shape, batch, dtype: Plan(…)`.
    """
    while isinstance(loss, functools.partial):
        loss = loss.func
    if hasattr(loss, "plan"):
        return loss.plan(out_shape, batch, dtype)
    width = out_shape[-1] if loss is softmax_cross_entropy else 1
    rows = min(batch * math.prod(out_shape) // width, _rows(width))
    size = rows * width
    if loss is softmax_cross_entropy:
        # float64: the logits, the targets, their product; and a byte each for "is the target 0". With few classes the
        # moment before is larger: the maxima, and a buffer that NumPy makes while it subtracts them.
        workspace = 24 * size + max(size, 8 * rows)
    elif loss is binary_cross_entropy:
        workspace = 48 * size  # float64: logits, targets, exp(-|x|), and three terms of the loss
    elif loss is mean_squared_error:
        workspace = 16 * size  # float64: the difference, and the targets or the squares
    else:
        raise ValueError(f"the loss {loss!r} has no plan: give it an attribute `plan`, as dlcourse.losses.plan says")
    return Plan(forward_workspace=workspace)


# The rules: float64 rows of outputs z (the rule's own copy) and rows of targets -> (sum of the losses, gradient).


def _cross_entropy(z: np.ndarray, targets: np.ndarray, *, smoothing: float) -> tuple[float, np.ndarray]:
    t = _one_hot(targets, z.shape[1]) if targets.ndim == 1 else _normalized(targets)
    if smoothing:
        t *= 1.0 - smoothing
        t += smoothing / z.shape[1]
    z -= z.max(axis=1, keepdims=True)
    loss = -_dot(t, z)
    np.exp(z, out=z)
    s = z.sum(axis=1)
    loss += np.log(s).sum()
    z /= s[:, None]
    z -= t
    return loss, z


def _dot(t: np.ndarray, z: np.ndarray) -> float:
    products = t * z
    products[t == 0] = 0.0  # a class whose target is 0 counts nothing, even where its logit is -inf
    return float(products.reshape(-1).sum())  # flat, or older NumPy copies it into a buffer first


def _binary_cross_entropy(x: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    t = targets.astype(np.float64)
    tail = np.exp(-np.abs(x))
    loss = (np.maximum(x, 0.0) - x * t + np.log1p(tail)).sum()
    p = np.where(x > 0, 1.0, tail)
    p /= 1.0 + tail
    p -= t
    return loss, p


def _squared_error(y: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    y -= targets.astype(np.float64)
    loss = (y * y).sum()
    y *= 2.0
    return loss, y


def _one_hot(labels: np.ndarray, classes: int) -> np.ndarray:
    t = np.zeros((len(labels), classes))
    t[np.arange(len(labels)), labels] = 1.0
    return t


def _normalized(targets: np.ndarray) -> np.ndarray:
    t = targets.astype(np.float64)
    t /= t.sum(axis=1, keepdims=True)
    return t


def _by_blocks(rule: Rule, outputs: np.ndarray, targets: np.ndarray, scale: float) -> tuple[float, np.ndarray]:
    """Apply `rule` to (R, D) or (R,) outputs a block of rows at a time.  -> the sum of its losses and its gradients, both
    times scale."""
    gradient = np.empty(outputs.shape, outputs.dtype)
    loss = 0.0
    with np.errstate(all="ignore"):  # what is not finite shows in the loss itself
        for rows in _blocks(outputs):
            loss += _block(rule, outputs[rows], targets[rows], scale, gradient[rows])
    return loss * scale, gradient


def _block(rule: Rule, outputs: np.ndarray, targets: np.ndarray, scale: float, gradient: np.ndarray) -> float:
    # A function of its own, so that a block's arrays are gone before the next block makes its own.
    loss, d = rule(outputs.astype(np.float64), targets)
    d *= scale
    gradient[...] = d
    return float(loss)


def _rows(width: int) -> int:
    return max(1, BLOCK // width)


def _blocks(array: np.ndarray) -> Iterator[slice]:
    step = _rows(math.prod(array.shape[1:]))
    return (slice(start, start + step) for start in range(0, len(array), step))


def _elementwise(rule: Rule, y: np.ndarray, targets: np.ndarray, total: float | None) -> tuple[float, np.ndarray]:
    scale = 1.0 / (_total(total, len(y)) * (y.size // len(y)))
    loss, dy = _by_blocks(rule, y.reshape(-1), targets.reshape(-1), scale)
    return loss, dy.reshape(y.shape)


# Checks of what comes in.


def _floating(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} are {array.dtype}; they must be float32 or float64")
    return array


def _total(total: float | None, samples: int) -> float:
    if total is None:
        return float(samples)
    if not 0 < total < math.inf:
        raise ValueError(f"total is {total}; it divides the loss and must be above 0")
    return float(total)


def _pair(name: str, y: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    y, targets = _floating(name, y), np.asarray(targets)
    if y.ndim == 0 or y.size == 0:
        raise ValueError(f"{name} have shape {y.shape}; there must be at least one sample and one output")
    if targets.dtype.kind not in "biuf":
        raise TypeError(f"targets are {targets.dtype}; they must be real numbers")
    if targets.shape != y.shape:
        raise ValueError(f"targets have shape {targets.shape}; they must have the shape of {name}, {y.shape}")
    return y, targets


def _checked_labels(labels: np.ndarray, shape: tuple[int, ...]) -> np.ndarray:
    labels = np.asarray(labels)
    kind, classes = labels.dtype.kind, shape[-1]
    if kind not in "biuf":
        raise TypeError(f"labels are {labels.dtype}; they must be integers (classes) or floats (probabilities)")
    if labels.shape == shape:
        for rows in _blocks(soft := labels.reshape(-1, classes)):
            _check_probabilities(soft[rows], rows.start)
    elif labels.shape != shape[:-1]:
        raise ValueError(
            f"labels have shape {labels.shape}; logits of shape {shape} need class numbers of shape {shape[:-1]} "
            f"or soft targets of shape {shape}"
        )
    elif kind not in "iu":
        raise TypeError(f"labels of shape {labels.shape} are class numbers and must be integers, not {labels.dtype}")
    elif labels.min() < 0 or labels.max() >= classes:
        index, value = _first(labels, (labels < 0) | (labels >= classes))
        raise ValueError(f"label {value} at index {index} is outside 0..{classes - 1}: logits have {classes} classes")
    return labels


def _check_probabilities(targets: np.ndarray, start: int) -> None:
    sums = targets.sum(axis=1, dtype=np.float64)
    if targets.min() >= 0 and 0.999 <= sums.min() and sums.max() <= 1.001:
        return
    right = (sums >= 0.999) & (sums <= 1.001) & (targets >= 0).all(axis=1)
    row = int(np.argmin(right))
    raise ValueError(
        f"soft targets of row {start + row} are {targets[row]}, with sum {sums[row]:.6g}; "
        f"they must be probabilities: at least 0, with sum 1"
    )


def _check_range(targets: np.ndarray, low: float, high: float) -> None:
    # min and max pass a NaN on, and allocate nothing.
    if not (targets.min() >= low and targets.max() <= high):
        index, value = _first(targets, ~((targets >= low) & (targets <= high)))
        span = "finite" if low < 0 else f"in [{low:g}, {high:g}]"
        raise ValueError(f"target {value} at index {index}: targets must be {span}")


def _first(array: np.ndarray, wrong: np.ndarray) -> tuple[Any, Any]:
    index = tuple(int(i) for i in np.unravel_index(int(np.argmax(wrong)), array.shape))
    return (index[0] if len(index) == 1 else index), array[index]
