"""The gradients of a batch: cut into micro-batches, computed on threads, added up in order."""

import math
from collections.abc import Callable
from concurrent.futures import Executor
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse import losses, tree
from dlcourse.factors import Factors
from dlcourse.inputs import as_input
from dlcourse.layers.base import Params
from dlcourse.model import Sequential
from dlcourse.workers import AUGMENT, STEP, in_order, one_blas_thread, stream

Loss = Callable[..., tuple[float, np.ndarray]]
Augment = Callable[[np.ndarray, np.random.Generator], np.ndarray]


def gradients(
    model: Sequential,
    params: Params,
    x: np.ndarray,
    labels: np.ndarray,
    *,
    loss: Loss = losses.softmax_cross_entropy,
    micro_batch: int | None = None,
    workers: int = 1,
    seed: int = 0,
    step: int = 0,
) -> tuple[float, Params]:
    """-> (loss, grads) of one batch: the mean over its samples. Changes nothing.

    The batch is cut into micro-batches of `micro_batch` samples (None: one), computed on `workers` threads with one
    BLAS thread each, and added up in their order: the number of workers changes no bit. Random numbers of a micro-batch
    come from (seed, step, its index). Allocates for each worker the saved arrays, workspace and gradients of one
    micro-batch, and one accumulator like the trainable parameters; of the gradient of an affine layer with a large
    matrix only its factors, until all are there.
    """
    batch = Batch(x, labels, None, micro_batch, seed, step)
    value, grads, _ = batch_gradients(model, params, batch, loss, workers)
    return value, grads


@dataclass(frozen=True)
class Batch:
    """The samples of one step, x[rows] and labels[rows] (all where rows is None), gathered a micro-batch at a time."""

    x: np.ndarray
    labels: np.ndarray
    rows: np.ndarray | None = None
    micro_batch: int | None = None
    seed: int = 0
    step: int = 0
    augment: Augment | None = None

    def __post_init__(self) -> None:
        if len(self.x) != len(self.labels):
            raise ValueError(f"x has {len(self.x)} samples and labels has {len(self.labels)}; they must be as many")
        if len(self) == 0:
            raise ValueError("the batch is empty: expected at least one sample")
        if self.micro_batch is not None:
            at_least(1, "micro_batch", self.micro_batch)
        at_least(0, "seed", self.seed)
        at_least(0, "step", self.step)

    def __len__(self) -> int:
        return len(self.x) if self.rows is None else len(self.rows)

    @property
    def parts(self) -> int:
        """The number of micro-batches."""
        return math.ceil(len(self) / (self.micro_batch or len(self)))

    def part(self, index: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """-> (inputs, labels) of one micro-batch, the inputs as floats of `dtype`. Allocates the two."""
        size = self.micro_batch or len(self)
        where: Any = slice(index * size, min((index + 1) * size, len(self)))
        if self.rows is not None:
            where = self.rows[where]
        x = self.x[where]
        if self.augment is not None:
            x = self.augment(x, stream(self.seed, AUGMENT, self.step, index))
        return as_input(x, dtype), self.labels[where]

    def rng(self, index: int) -> np.random.Generator:
        """The generator that the layers draw from for one micro-batch."""
        return stream(self.seed, STEP, self.step, index)


def batch_gradients(
    model: Sequential, params: Params, batch: Batch, loss: Loss, workers: int, pool: Executor | None = None
) -> tuple[float, Params, list[Any]]:
    """-> (loss, grads, what `model.update_buffers` needs of each micro-batch, in order). See `gradients`. On the threads
    of `pool` where it is given."""
    at_least(1, "workers", workers)
    dtype = param_dtype(params)

    def one(index: int) -> tuple[float, Params, Any]:
        x, labels = batch.part(index, dtype)
        logits, saved = model.forward(params, x, train=True, rng=batch.rng(index))
        del x  # what backward needs of it is in `saved`
        value, dlogits = loss(logits, labels, total=len(batch))
        del logits
        statistics = model.statistics(saved)
        whole = len(batch) if batch.parts > 1 else None
        grads = model.backward(params, saved, dlogits, overwrite_dy=True, release=True, batch=whole)[1]
        return value, grads, statistics

    total = 0.0
    accumulated: Params = {}
    found: list[Any] = []
    with one_blas_thread():
        for value, grads, statistics in in_order(one, batch.parts, workers, pool):
            total += value
            found.append(statistics)
            if len(found) > 1:
                accumulated = tree.map(_add, accumulated, grads)
            else:
                accumulated = grads
            del grads  # not held while the next micro-batch is awaited
        if len(found) > 1:
            model.finish(accumulated)
    return total, accumulated, found


def _add(a: Any, b: Any) -> Any:
    """a + b, in a's place where it is an array."""
    return a + b if isinstance(a, Factors) else np.add(a, b, out=a)


def first_non_finite(model: Sequential, params: Params, batch: Batch) -> str:
    """Where NaN or infinity stands first on the way from the input to the logits: runs the batch again, forward."""
    names = [name for name, leaf in tree.items(params) if not np.isfinite(leaf).all()]
    if names:
        return f"the parameter {names[0]}, before this step"
    for index in range(batch.parts):
        x, _ = batch.part(index, param_dtype(params))
        rng = batch.rng(index)
        if not np.isfinite(x).all():
            return f"the input, micro-batch {index + 1}"
        _, place = _first_non_finite_output(model, params, x, rng)
        if place:
            return f"{place}, micro-batch {index + 1}"
    return "the loss itself: every activation is finite"


def _first_non_finite_output(
    model: Sequential, params: Params, x: np.ndarray, rng: np.random.Generator, prefix: str = ""
) -> tuple[np.ndarray, str]:
    """-> the output, and the place, "" where all is finite."""
    place = ""
    for name, layer in model.named():
        own = params.get(name, {})
        if isinstance(layer, Sequential):
            x, place = _first_non_finite_output(layer, own, x, rng, f"{prefix}{name}/")
        else:
            x, _ = layer.forward(own, x, train=True, rng=rng)
            if not np.isfinite(x).all():
                place = f"the output of {type(layer).__name__} '{prefix}{name}'"
        if place:
            break
    return x, place


def first_non_finite_gradient(grads: Params) -> str | None:
    """The layer whose backward gave NaN or infinity first, with the parameter, None where all gradients are finite.

    A sum of squares by BLAS notices both, without an array of bytes like the gradient; a second look tells a sum that
    overflowed from a gradient that is not finite.
    """
    for name, grad in reversed(list(tree.items(grads))):
        flat = grad.reshape(-1)
        with np.errstate(over="ignore", invalid="ignore"):
            suspect = not math.isfinite(float(np.dot(flat, flat)))
        if suspect and not np.isfinite(grad).all():
            return f"the gradient of {name}, in its backward"
    return None


def param_dtype(params: Params) -> np.dtype:
    """The dtype that every activation takes: that of the parameters, float32 for a network without any."""
    for name, leaf in tree.items(params):
        if not isinstance(leaf, np.ndarray) or leaf.dtype.kind != "f":
            found_kind = getattr(leaf, "dtype", type(leaf).__name__)
            raise TypeError(f"the parameter {name} must be a float array, got {found_kind}")
    found = {leaf.dtype for leaf in tree.leaves(params)}
    if len(found) > 1:
        kinds = ", ".join(f"{name} {leaf.dtype}" for name, leaf in tree.items(params))
        raise TypeError(f"parameters must have one dtype, got {', '.join(sorted(map(str, found)))}: {kinds}")
    return found.pop() if found else np.dtype(np.float32)


def at_least(least: int, name: str, value: Any) -> int:
    """`value` as an int of at least `least`; ValueError, which names it, for anything else."""
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return int(value)
