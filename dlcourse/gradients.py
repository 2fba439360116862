"""The gradients of a batch: cut into micro-batches, computed on threads, added up in order."""

import math
from collections.abc import Callable, Iterable
from concurrent.futures import Executor
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcourse import losses, tree
from dlcourse.factors import Factors, multiply_out
from dlcourse.inputs import as_input
from dlcourse.layers import Affine
from dlcourse.layers.base import Params, Shape
from dlcourse.layers.checks import at_least
from dlcourse.model import Sequential, plainly
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
    defer: Iterable[str] | None = None,
    factored: bool = False,
) -> tuple[float, Params]:
    """-> (loss, grads) of one batch: the mean over its samples. Changes nothing.

    x (N, …) as it is stored (uint8 images become floats a micro-batch at a time, `inputs.as_input`), labels (N, …) as
    the loss takes them. grads: arrays like the trainable params, of the same names.
    The batch is cut into micro-batches of `micro_batch` samples (None: one), computed on `workers` threads with one
    BLAS thread each, and added up in their order: the number of workers changes no bit. Random numbers of a micro-batch
    come from (seed, step, its index).
    defer: the layers whose dW is multiplied once, when all micro-batches are there; None: those of `deferred`.
    factored: these are not multiplied at all, but left as `Factors`, of which `optimizer.update` makes one block after the
        other; also where the batch is one micro-batch.
    Allocates for each worker the saved arrays, workspace and gradients of one micro-batch, and one accumulator like the
    trainable parameters; of the gradient of a deferred layer only its factors, until all are there.
    Raises ValueError for a batch, a size or a seed that is none, and what the layers and the loss raise.
    """
    check_network(model)
    batch, workers = Batch(x, labels, None, micro_batch, seed, step), at_least(1, "workers", workers)
    if isinstance(model, Sequential):
        losses.check(loss, labels, (len(x), *model.out_shape(x.shape[1:])))  # names the row of the batch
    value, grads, _ = batch_gradients(model, params, batch, loss, workers, defer=defer, factored=factored)
    return value, grads


@dataclass(frozen=True)
class Batch:
    """The samples of one step, x[rows] and labels[rows] (all if rows is None), gathered a micro-batch of `size` samples
    at a time (None: the whole batch is one)."""

    x: np.ndarray
    labels: np.ndarray
    rows: np.ndarray | None = None
    size: Any = None  # an integer of at least 1, or None
    seed: int = 0
    step: int = 0
    augment: Augment | None = None
    samples: int = field(init=False)
    micro_batches: int = field(init=False)  # how many there are

    def __post_init__(self) -> None:
        if len(self.x) != len(self.labels):
            raise ValueError(f"x has {len(self.x)} samples and labels has {len(self.labels)}; they must be as many")
        samples = len(self.x) if self.rows is None else len(self.rows)
        if samples == 0:
            raise ValueError("the batch is empty: expected at least one sample")
        size = samples if self.size is None else min(samples, at_least(1, "micro_batch", self.size))
        for name, value in (("samples", samples), ("size", size), ("micro_batches", -(-samples // size))):
            object.__setattr__(self, name, value)
        at_least(0, "seed", self.seed)
        at_least(0, "step", self.step)

    def micro_batch(self, index: int, dtype: np.dtype) -> tuple[np.ndarray, np.ndarray]:
        """-> (inputs, labels) of one micro-batch, the inputs as floats of `dtype`. Allocates the two."""
        which: Any = slice(index * self.size, (index + 1) * self.size)
        if self.rows is not None:
            which = self.rows[which]
        x = self.x[which]
        if self.augment is not None:
            x = self.augment(x, stream(self.seed, AUGMENT, self.step, index))
        return as_input(x, dtype), self.labels[which]

    def rng(self, index: int) -> np.random.Generator:
        """The generator that the layers draw from for one micro-batch."""
        return stream(self.seed, STEP, self.step, index)


def batch_gradients(
    model: Sequential,
    params: Params,
    batch: Batch,
    loss: Loss,
    workers: int,
    pool: Executor | None = None,
    *,
    defer: Iterable[str] | None = None,
    factored: bool = False,
    call: Callable[..., Any] = plainly,
) -> tuple[float, Params, list[Params]]:
    """-> (loss, grads, what `model.update_buffers` needs of each micro-batch, in order). See `gradients`.

    pool: the threads to run on. call: how the layers, "loss" and "products" are called, see `model.plainly`.
    """
    dtype = param_dtype(params)
    defer = to_defer(model, batch.x.shape[1:], batch.samples, batch.micro_batches, defer, factored=factored)

    def micro_step(index: int) -> tuple[float, Params, Params]:
        x, labels = batch.micro_batch(index, dtype)
        logits, saved = model.forward(params, x, train=True, rng=batch.rng(index), call=call)
        del x  # what backward needs of it is in `saved`
        value, dlogits = call("loss", loss, logits, labels, total=batch.samples)
        del logits
        statistics = model.statistics(saved)
        grads = model.backward(params, saved, dlogits, overwrite_dy=True, release=True, defer=defer, call=call)[1]
        return value, grads, statistics

    total = 0.0
    accumulated: Params = {}
    statistics: list[Params] = []
    with one_blas_thread():
        for value, grads, found in in_order(micro_step, batch.micro_batches, workers, pool):
            total += value
            statistics.append(found)
            accumulated = tree.map_leaves(_add, accumulated, grads) if len(statistics) > 1 else grads
            del grads  # not held while the next micro-batch is awaited
        if batch.micro_batches > 1 and not factored:
            call("products", multiply_out, accumulated)
    return total, accumulated, statistics


def _add(a: Any, b: Any) -> Any:
    """a + b; written over a if that is an array."""
    return a + b if isinstance(a, Factors) else np.add(a, b, out=a)


def deferred(model: Sequential, in_shape: Shape, batch: int) -> frozenset[str]:
    """The names of the layers whose dW is kept as `Factors` while the micro-batches of a batch of `batch` samples are
    added up: affine ones, if all rows of x and dy are fewer numbers than dW. `memory.bill` asks this function too.
    in_shape: of the model's input, without the batch axis. A subclass of Affine may have a backward of its own, which
    knows nothing of factors: it is never among them. None for a model that is no Sequential."""
    found = set()
    for name, layer, shape in model.flat(in_shape) if isinstance(model, Sequential) else ():
        if type(layer) is Affine:
            rows, d_in = batch * math.prod(shape[:-1]), shape[-1]
            if rows * (d_in + layer.units) < d_in * layer.units:
                found.add(name)
    return frozenset(found)


def to_defer(
    model: Any, in_shape: Shape, batch: int, parts: int, defer: Iterable[str] | None, *, factored: bool
) -> frozenset[str]:
    """The names of the layers whose dW a step leaves as `Factors`: those that `defer=` stands for; none if the batch is one
    part and they were multiplied at its end. Raises ValueError for a name that is no affine layer's."""
    if parts == 1 and not factored:
        return frozenset()
    if defer is None:
        return deferred(model, in_shape, batch)
    names = frozenset([defer] if isinstance(defer, str) else defer)
    layers = model.named() if isinstance(model, Sequential) else ()
    if wrong := names - {name for name, layer in layers if isinstance(layer, Affine)}:
        raise ValueError(f"defer names {min(wrong)!r}, which is no affine layer of this network")
    return names


def check_network(model: Any) -> None:
    """Raise TypeError for what is no network, such as a layer, a list of layers, or a class."""
    if isinstance(model, type) or not hasattr(model, "calls"):
        found = f"the class {model.__name__}" if isinstance(model, type) else type(model).__name__
        raise TypeError(f"model must be a Sequential, such as Sequential([Affine(10)]); got {found}")


def param_dtype(params: Params) -> np.dtype:
    """The dtype that every activation takes: that of the parameters, float32 for a network without any. Raises TypeError
    for parameters that are no float arrays, or of two dtypes."""
    dtype, named = None, tree.flatten(params)
    for name, leaf in named.items():
        if not isinstance(leaf, np.ndarray) or leaf.dtype.kind != "f":
            found_kind = getattr(leaf, "dtype", type(leaf).__name__)
            raise TypeError(f"the parameter {name} must be a float array, got {found_kind}")
        dtype = dtype or leaf.dtype
        if leaf.dtype != dtype:
            kinds = ", ".join(f"{name} {leaf.dtype}" for name, leaf in named.items())
            both = ", ".join(sorted(map(str, (dtype, leaf.dtype))))
            raise TypeError(f"parameters must have one dtype, got {both}: {kinds}")
    return dtype or np.dtype(np.float32)
