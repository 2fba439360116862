"""Where NaN or infinity came from: in the forward pass, or in a gradient."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from dlcourse import tree
from dlcourse.factors import Factors
from dlcourse.gradients import Batch, param_dtype
from dlcourse.layers.base import Params
from dlcourse.model import Sequential, plainly


def first_non_finite(model: Sequential, params: Params, batch: Batch) -> str:
    """Where NaN or infinity stands first on the way from the parameters and the input to the logits, as text. Runs the
    batch again, forward; allocates the activations of one micro-batch, of which it keeps none."""
    names = [name for name, leaf in tree.items(params) if not np.isfinite(leaf).all()]
    if names:
        return f"the parameter {names[0]}, before this step"
    for index in range(batch.micro_batches):
        x, _ = batch.micro_batch(index, param_dtype(params))
        if not np.isfinite(x).all():
            return f"the input, micro-batch {index + 1}"
        try:
            model.forward(params, x, train=True, rng=batch.rng(index), call=_look)
        except _Found as found:
            return f"{found}, micro-batch {index + 1}"
    return "the loss itself: every activation is finite"


class _Found(Exception):
    """An output that is not finite; says of which layer."""


def _look(moment: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> tuple[np.ndarray, None]:
    """A `call` that looks at each layer's output, and lets go of what the layer would keep."""
    y, _ = plainly(moment, function, *arguments, **options)
    if not np.isfinite(y).all():
        layer = getattr(function, "__self__", None)
        raise _Found(f"the output of {type(layer).__name__} '{moment.rpartition(', ')[0]}'")
    return y, None


def first_non_finite_gradient(grads: Params) -> str | None:
    """The layer whose backward gave NaN or infinity first, with the parameter; None if all gradients are finite.

    A sum of squares by BLAS notices both, without an array of bytes like the gradient; a second look tells a sum that
    overflowed from a gradient that is not finite.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for name, grad in reversed(tree.flatten(grads).items()):
            if isinstance(grad, Factors):
                finite = grad.is_finite()
            else:
                flat = grad.reshape(-1)
                finite = math.isfinite(float(np.dot(flat, flat))) or np.isfinite(grad).all()
            if not finite:
                return f"the gradient of {name}, in its backward"
    return None
