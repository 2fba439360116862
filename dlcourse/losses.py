"""Losses: each returns the loss as a Python float and its gradient with respect to the network's output.

    loss, dlogits = softmax_cross_entropy(logits, labels)

Every loss is the sum over the samples of the sample's mean over its positions or outputs, divided by `total`. `total` is
the number of samples when it is left out; a micro-batch passes the size of its whole batch, and the parts then add up.

The output is worked through in blocks of about `BLOCK_NUMBERS`, in float64 whatever its dtype: the sum stays exact for
large batches, and beside the gradient no array grows with the batch.

NaN or infinite logits give a NaN or infinite loss and no warning: the training loop looks for it and names the step.
Targets are checked, since a wrong target is a mistake in the data and not in the arithmetic.

What else is asked of a loss stands in three attributes of the function; a loss of your own may have them too:

    plan(out_shape, batch, dtype) -> Plan     the bytes that it takes
    check(targets, shape)                     raises if the targets do not fit outputs of that shape, and names the row
    right(outputs, targets) -> bool array     which answers are right; None if the targets are no classes
"""

import math
import operator
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from dlcourse.plan import Plan

BLOCK_NUMBERS = 4096  # 32 KiB in float64, so that a block and its temporaries stay in the cache

Loss = Callable[..., tuple[float, np.ndarray]]
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
    logits, labels = _floating("logits", logits), np.asarray(labels)
    if not 0 <= label_smoothing < 1:
        raise ValueError(f"label_smoothing is {label_smoothing}; it must be in [0, 1)")
    _check_classes(labels, logits.shape)
    rule, rows = partial(_cross_entropy, smoothing=float(label_smoothing)), (-1, logits.shape[-1])
    return _by_blocks(rule, logits, rows, labels.reshape(rows if labels.shape == logits.shape else -1), total)


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
    logits, targets = _floating("logits", logits), np.asarray(targets)
    _check_entries(_SHARES, targets, logits.shape)
    return _by_blocks(_binary_cross_entropy, logits, (-1,), targets.reshape(-1), total)


def mean_squared_error(y: np.ndarray, targets: np.ndarray, *, total: float | None = None) -> tuple[float, np.ndarray]:
    """The mean of (y - targets)².  -> loss, dy (y's shape and dtype).

    y: (N, ...), float32 or float64.  targets: the same shape, of any real dtype, finite.
    The gradient is 2 (y - targets) / (total D), D the number of entries of a sample.

    Allocates dy and the workspace that `plan` names; an input that is not contiguous is copied besides.
    Raises TypeError for another dtype, ValueError for other shapes, an empty batch, a target that is not finite,
    total <= 0.
    """
    y, targets = _floating("y", y), np.asarray(targets)
    _check_entries(_FINITE, targets, y.shape)
    return _by_blocks(_squared_error, y, (-1,), targets.reshape(-1), total)


# What is asked of a loss beside its value. A partial is asked for the loss within it.


def plan(loss: Loss, out_shape: tuple[int, ...], batch: int, dtype: Any = np.float32) -> Plan:
    """The bytes of `loss` for a batch of outputs of shape (batch, *out_shape).

    `forward_workspace` is the most bytes alive at one moment beyond the output, the targets and the gradient. The
    gradient is one array of the output's bytes. The workspace is the same for float32 and float64 outputs.
    A loss of your own says it in an attribute: `my_loss.plan = lambda out_shape, batch, dtype: Plan(…)`.
    """
    found = _attribute(loss, "plan")
    if found is None:
        raise ValueError(f"the loss {loss!r} has no plan: give it an attribute `plan`, as dlcourse.losses.plan says")
    return found(tuple(map(operator.index, out_shape)), operator.index(batch), dtype)


def check(loss: Loss, targets: np.ndarray, shape: tuple[int, ...]) -> None:
    """Raise ValueError or TypeError if `targets`, those of a batch or of a whole data set, do not fit outputs of `shape`;
    the message names the row. Allocates one block. A loss of your own without an attribute `check` takes anything."""
    if found := _attribute(loss, "check"):
        found(np.asarray(targets), shape)


def right(loss: Loss, outputs: np.ndarray, targets: np.ndarray) -> np.ndarray | None:
    """Which answers are right, a bool each; NaN never is. None if the targets are no classes, and for a loss of your own
    without an attribute `right`."""
    found = _attribute(loss, "right")
    return None if found is None else found(outputs, targets)


def _attribute(loss: Any, name: str) -> Any:
    while isinstance(loss, partial):
        loss = loss.func
    return getattr(loss, name, None)


# The rules: float64 rows of outputs z (the rule's own copy) and rows of targets -> (sum of the losses, gradient). Under
# each stand the three attributes of its loss.


def _cross_entropy(z: np.ndarray, targets: np.ndarray, *, smoothing: float) -> tuple[float, np.ndarray]:
    if targets.ndim == 1:
        t = np.zeros(z.shape)
        t[np.arange(len(t)), targets] = 1.0
    else:
        t = targets.astype(np.float64)
        t /= t.sum(axis=1, keepdims=True)
    if smoothing:
        t *= 1.0 - smoothing
        t += smoothing / z.shape[1]
    z -= z.max(axis=1, keepdims=True)
    products = t * z
    products[t == 0] = 0.0  # a class whose target is 0 counts nothing, even if its logit is -inf
    loss = -float(products.reshape(-1).sum())  # flat, or older NumPy copies it into a buffer first
    del products
    np.exp(z, out=z)
    s = z.sum(axis=1)
    loss += np.log(s).sum()
    z /= s[:, None]
    z -= t
    return loss, z


def _plan_classes(out_shape: tuple[int, ...], batch: int, dtype: Any) -> Plan:
    rows = min(batch * math.prod(out_shape[:-1]), _rows(out_shape[-1]))
    size = rows * out_shape[-1]
    # float64: the logits, the targets, their product; and a byte each for "is the target 0". With few classes the
    # moment before is larger: the maxima, and a buffer that NumPy makes while it subtracts them.
    return Plan(forward_workspace=24 * size + max(size, 8 * rows))


def _check_classes(labels: np.ndarray, shape: tuple[int, ...]) -> None:
    _check_outputs(shape)
    if labels.dtype.kind not in "biuf":
        raise TypeError(f"labels are {labels.dtype}; they must be integers (classes) or floats (probabilities)")
    if labels.shape == shape:
        rows = labels.reshape(-1, shape[-1])
        for start in range(0, len(rows), step := _rows(shape[-1])):
            block = rows[start : start + step]
            sums = block.sum(axis=1, dtype=np.float64)
            if not (block.min() >= 0 and 0.999 <= sums.min() and sums.max() <= 1.001):
                row = int(np.argmin((sums >= 0.999) & (sums <= 1.001) & (block >= 0).all(axis=1)))
                place = _place(np.unravel_index(start + row, shape[:-1] or (1,)))
                raise ValueError(
                    f"soft targets of {place} are {block[row]}, with sum {sums[row]:.6g}; "
                    "they must be probabilities: at least 0, with sum 1"
                )
    elif labels.shape != shape[:-1]:
        raise ValueError(
            f"labels have shape {labels.shape}; logits of shape {shape} need class numbers of shape {shape[:-1]} "
            f"or soft targets of shape {shape}"
        )
    elif labels.dtype.kind not in "iu":
        raise TypeError(f"labels of shape {labels.shape} are class numbers and must be integers, not {labels.dtype}")
    else:
        _check_range(
            "label", labels, 0, shape[-1] - 1, f"labels must be 0 to {shape[-1] - 1}: there are {shape[-1]} outputs"
        )


def _right_class(logits: np.ndarray, labels: np.ndarray) -> np.ndarray | None:
    if labels.shape == logits.shape:
        if not _is_yes_or_no(labels):
            return None  # probabilities: no class is the right one
        labels = labels.argmax(axis=-1)
    return (logits.argmax(axis=-1) == labels) & ~np.isnan(logits.max(axis=-1))


def _binary_cross_entropy(x: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    t = targets.astype(np.float64)
    tail = np.exp(-np.abs(x))
    loss = (np.maximum(x, 0.0) - x * t + np.log1p(tail)).sum()
    p = np.where(x > 0, 1.0, tail)
    p /= 1.0 + tail
    p -= t
    return loss, p


def _right_side(logits: np.ndarray, targets: np.ndarray) -> np.ndarray | None:
    if not _is_yes_or_no(targets):
        return None  # shares
    return np.where(targets == 1, logits > 0, logits <= 0)  # both are False for NaN


def _is_yes_or_no(targets: np.ndarray) -> bool:
    return bool(((targets == 0) | (targets == 1)).all())


def _squared_error(y: np.ndarray, targets: np.ndarray) -> tuple[float, np.ndarray]:
    y -= targets.astype(np.float64)
    loss = (y * y).sum()
    y *= 2.0
    return loss, y


def _check_entries(limits: tuple[Any, Any, str], targets: np.ndarray, shape: tuple[int, ...]) -> None:
    _check_outputs(shape)
    if targets.dtype.kind not in "biuf":
        raise TypeError(f"targets are {targets.dtype}; they must be real numbers")
    if targets.shape != shape:
        raise ValueError(f"targets have shape {targets.shape}; they must have the shape of the outputs, {shape}")
    _check_range("target", targets, *limits)


def _plan_entries(arrays: int, out_shape: tuple[int, ...], batch: int, dtype: Any) -> Plan:
    """So many float64 arrays of a block's size at once."""
    return Plan(forward_workspace=8 * arrays * min(batch * math.prod(out_shape), BLOCK_NUMBERS))


_LARGEST = np.finfo(np.float64).max
_SHARES, _FINITE = (0.0, 1.0, "targets must be in [0, 1]"), (-_LARGEST, _LARGEST, "targets must be finite")
vars(softmax_cross_entropy).update(plan=_plan_classes, check=_check_classes, right=_right_class)
# Six arrays: logits, targets, exp(-|x|), and three terms of the loss. Two: the difference, and the targets or the squares.
vars(binary_cross_entropy).update(
    plan=partial(_plan_entries, 6), check=partial(_check_entries, _SHARES), right=_right_side
)
vars(mean_squared_error).update(plan=partial(_plan_entries, 2), check=partial(_check_entries, _FINITE))


def _by_blocks(
    rule: Rule, outputs: np.ndarray, shape: tuple[int, ...], targets: np.ndarray, total: float | None
) -> tuple[float, np.ndarray]:
    """Apply `rule` to the outputs in `shape`, (-1, K) or (-1,), a block of rows at a time.  -> the sum of its losses and
    its gradients, both divided by `total`, or by the number of samples, and by the rows of a sample."""
    rows, samples = outputs.reshape(shape), len(outputs) if outputs.ndim >= len(shape) else 1
    if total is not None and not 0 < total < math.inf:
        raise ValueError(f"total is {total}; it divides the loss and must be above 0")
    scale = 1.0 / (float(samples if total is None else total) * (len(rows) // samples))
    gradient = np.empty(rows.shape, rows.dtype)
    loss = 0.0
    with np.errstate(all="ignore"):  # what is not finite shows in the loss itself
        for start in range(0, len(rows), step := _rows(math.prod(rows.shape[1:]))):
            block = slice(start, start + step)
            loss += _block(rule, rows[block], targets[block], scale, gradient[block])
    return loss * scale, gradient.reshape(outputs.shape)


def _block(rule: Rule, outputs: np.ndarray, targets: np.ndarray, scale: float, gradient: np.ndarray) -> float:
    # A function of its own, so that a block's arrays are gone before the next block makes its own.
    loss, d = rule(outputs.astype(np.float64), targets)
    d *= scale
    gradient[...] = d
    return float(loss)


def _rows(width: int) -> int:
    return max(1, BLOCK_NUMBERS // width)


# Checks of what comes in.


def _floating(name: str, array: np.ndarray) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype not in (np.float32, np.float64):
        raise TypeError(f"{name} are {array.dtype}; they must be float32 or float64")
    return array


def _check_outputs(shape: tuple[int, ...]) -> None:
    if not shape or 0 in shape:
        raise ValueError(f"the outputs have shape {shape}; there must be at least one sample and one output")


def _check_range(what: str, targets: np.ndarray, low: float, high: float, expected: str) -> None:
    # min and max pass a NaN on, and allocate nothing.
    if not (targets.min() >= low and targets.max() <= high):
        wrong = np.unravel_index(int(np.argmin((targets >= low) & (targets <= high))), targets.shape)
        raise ValueError(f"{what} {targets[wrong]} in {_place(wrong)}; {expected}")


def _place(index: Any) -> str:
    row, *rest = map(int, index)
    return f"row {row}, at {tuple(rest)}" if rest else f"row {row}"
