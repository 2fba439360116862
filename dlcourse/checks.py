"""What `fit` and `evaluate` look at before the first step, so that nothing wrong is found after hours."""

import math
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from dlcourse import losses
from dlcourse.gradients import Loss, check_network, param_dtype
from dlcourse.inputs import as_input
from dlcourse.layers.base import Params
from dlcourse.model import Sequential


def check_split(model: Sequential, params: Params, split: Any, loss: Loss, what: str = "data") -> int:
    """Check that `split` fits the network and the loss, every label included; returns its number of samples. Runs one
    sample forward. Raises TypeError or ValueError, which names the row."""
    check_network(model)
    if not callable(loss):
        raise TypeError(f"loss must be a function, such as losses.softmax_cross_entropy, got {loss!r}")
    if not (hasattr(split, "x") and hasattr(split, "y")):
        raise TypeError(f"the {what} must have .x and .y, as datasets.Split(x, y) has; got {type(split).__name__}")
    x, y = split.x, split.y
    for name, array in (("x", x), ("y", y)):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"the {what}'s .{name} must be a NumPy array, got {type(array).__name__}")
    if x.ndim == 0 or y.ndim == 0 or len(x) != len(y):
        raise ValueError(
            f"the {what}'s .x has {len(np.atleast_1d(x))} samples and its .y has {len(np.atleast_1d(y))}; "
            "they must be as many"
        )
    if len(x) == 0:
        raise ValueError(f"the {what} set is empty: expected at least one sample")
    if y.dtype.kind not in "biuf":
        raise TypeError(f"the {what}'s .y: labels are {y.dtype}; they must be numbers")
    model.out_shape(x.shape[1:])
    outputs, _ = model.forward(params, as_input(x[:1], param_dtype(params)))
    try:
        losses.check(loss, y, (len(x), *outputs.shape[1:]))
    except (TypeError, ValueError) as error:
        raise type(error)(f"the {what}'s .y: {error}") from None
    return len(x)


def check_optimizer(optimizer: Any) -> None:
    if isinstance(optimizer, type) or not hasattr(optimizer, "update"):
        raise TypeError(f"optimizer must be one of dlcourse.optim, such as optim.Adam(lr=1e-3), got {optimizer!r}")


def check_options(steps: int, schedule: Any, augment: Any, clip_norm: Any, checkpoint: Any, callbacks: Any) -> None:
    """Check the options of `fit` that are no counts. The schedule is asked for its first and its last step."""
    functions = [("schedule", schedule), ("augment", augment), *(("a callback", callback) for callback in callbacks)]
    for name, function in functions:
        if (function is not None or name == "a callback") and not callable(function):
            raise TypeError(f"{name} must be a function, got {function!r}")
    for step in (0, steps - 1) if schedule is not None else ():
        try:
            factor = float(schedule(step))
        except (TypeError, ValueError) as error:
            raise type(error)(f"schedule({step}) must give a number: {error}") from error
        if not 0 <= factor < math.inf:
            raise ValueError(f"schedule({step}) is {factor}; the factor of the learning rate must be at least 0")
    if clip_norm is not None and not (isinstance(clip_norm, int | float | np.number) and clip_norm > 0):
        raise ValueError(f"clip_norm must be above 0, got {clip_norm!r}")
    if checkpoint is not None and (checkpoint == "" or not isinstance(checkpoint, str | os.PathLike)):
        raise ValueError(f"checkpoint must name a folder, got {checkpoint!r}")


def as_callbacks(callbacks: Any) -> tuple[Callable[..., Any], ...]:
    if callable(callbacks) or not hasattr(callbacks, "__iter__"):
        raise TypeError(f"callbacks must be a list of functions, got {callbacks!r}; for one function give [function]")
    return tuple(callbacks)


def check_smallest(model: Sequential, params: Params, x: np.ndarray, batch_size: int, micro_batch: int | None) -> None:
    """Run the smallest micro-batch of an epoch forward as in training, if it is not the first one: a layer may need
    more than one sample, as BatchNorm does. Allocates what that forward pass saves."""
    batches = {min(batch_size, len(x)), len(x) % batch_size or batch_size}
    first = min(batch_size, len(x), micro_batch or batch_size)
    smallest = min(size % (micro_batch or size) or min(size, micro_batch or size) for size in batches)
    if smallest < first:
        inputs = as_input(x[:smallest], param_dtype(params))
        try:
            with np.errstate(all="ignore"):
                model.forward(params, inputs, train=True, rng=np.random.default_rng(0))
        except (TypeError, ValueError) as error:
            part = "batch" if micro_batch is None else "micro-batch"
            raise ValueError(
                f"the last {part} of an epoch has {smallest} of {len(x)} samples. {error}. "
                f"Choose another batch_size{'' if micro_batch is None else ' or micro_batch'}"
            ) from error
