"""Training: the gradients of a batch, and the loop around them."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dlcourse import checkpoint as checkpoints
from dlcourse import losses, optim, tree
from dlcourse.inputs import as_input
from dlcourse.layers.base import Params
from dlcourse.model import Sequential
from dlcourse.progress import progress_bar
from dlcourse.workers import AUGMENT, ORDER, STEP, in_order, one_blas_thread, stream

Loss = Callable[..., tuple[float, np.ndarray]]
Augment = Callable[[np.ndarray, np.random.Generator], np.ndarray]


class NonFiniteLoss(ArithmeticError):
    """The loss became NaN or infinite. Says in which epoch and step, and the first place where it appeared."""


@dataclass
class History:
    """What `fit` has seen: the loss of each step, and a row for each epoch. Plain numbers, kept in the checkpoint."""

    step_loss: list[float] = field(default_factory=list)
    epochs: list[dict[str, Any]] = field(default_factory=list)
    stopped: str | None = None  # why training ended before the last epoch

    def column(self, name: str) -> list[Any]:
        """One column of the epochs: "loss", "seconds" and, with validation, "val_loss" and "val_accuracy"."""
        return [row[name] for row in self.epochs if name in row]


@dataclass(frozen=True)
class Step:
    """What a callback of `fit` gets after each step. The arrays are the live ones: read them, do not keep them."""

    epoch: int
    step: int  # steps done since training began
    steps: int  # steps of the whole training
    loss: float
    lr: float
    params: Params
    slots: Params
    history: History


@dataclass(frozen=True)
class Evaluation:
    loss: float
    accuracy: float | None  # None where the labels are not classes


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
    micro-batch, and one accumulator like the trainable parameters.
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
            _at_least_one("micro_batch", self.micro_batch)

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
    model: Sequential, params: Params, batch: Batch, loss: Loss, workers: int
) -> tuple[float, Params, list[Any]]:
    """-> (loss, grads, what `model.update_buffers` needs of each micro-batch, in order). See `gradients`."""
    _at_least_one("workers", workers)
    dtype = param_dtype(params)

    def one(index: int) -> tuple[float, Params, Any]:
        x, labels = batch.part(index, dtype)
        logits, saved = model.forward(params, x, train=True, rng=batch.rng(index))
        del x  # what backward needs of it is in `saved`
        value, dlogits = loss(logits, labels, total=len(batch))
        del logits
        statistics = model.statistics(saved)
        grads = model.backward(params, saved, dlogits, dy_is_mine=True, release=True)[1]
        return value, grads, statistics

    total = 0.0
    accumulated: Params = {}
    found: list[Any] = []
    with one_blas_thread():
        for value, grads, statistics in in_order(one, batch.parts, workers):
            total += value
            found.append(statistics)
            if len(found) > 1:
                tree.map(lambda a, b: np.add(a, b, out=a), accumulated, grads)
            else:
                accumulated = grads
            del grads  # not held while the next micro-batch is awaited
    return total, accumulated, found


def fit(
    model: Sequential,
    params: Params,
    data: Any,
    *,
    optimizer: Any,
    loss: Loss = losses.softmax_cross_entropy,
    epochs: int = 1,
    batch_size: int = 100,
    micro_batch: int | None = None,
    workers: int = 1,
    seed: int = 0,
    validation: Any = None,
    schedule: Callable[[int], float] | None = None,
    clip_norm: float | None = None,
    augment: Augment | None = None,
    early_stop: int | None = None,
    checkpoint: str | Path | None = None,
    checkpoint_every: int | None = None,
    resume: bool = True,
    progress: bool = True,
    callbacks: Iterable[Callable[[Step], Any]] = (),
) -> History:
    """Train `params` in place on `data`, anything with .x and .y; returns the history.

    Each epoch sees every sample once, in an order drawn from (seed, epoch); a last partial batch counts by its size.
    A repeated run is the same to the bit, with any number of workers, and so is one that was stopped and resumed.

    validation: evaluated after each epoch. schedule: step -> factor of the optimizer's lr. clip_norm: the largest norm
        of all gradients together. augment: (x, rng) -> x, on a micro-batch as it is stored, before it becomes floats.
    early_stop: end after that many epochs without a lower validation loss.
    checkpoint: a folder; the state is written there each `checkpoint_every` steps and at the end. With `resume`,
        training goes on from what is there; a finished one gives its stored history. One of other settings is refused.
    callbacks: each is called with a `Step` after each step; one that returns True ends the training.
    Raises NonFiniteLoss before the update of a step whose loss is NaN or infinite: `params` are those before it.
    """
    sizes = {"epochs": epochs, "batch_size": batch_size, "micro_batch": micro_batch, "workers": workers}
    for name, size in (sizes | {"early_stop": early_stop, "checkpoint_every": checkpoint_every}).items():
        if size is not None:
            _at_least_one(name, size)
    if early_stop is not None and validation is None:
        raise ValueError("early_stop watches the validation loss: give validation=… too")
    callbacks = tuple(callbacks)
    samples = check_split(model, params, data)
    if validation is not None:
        check_split(model, params, validation, "validation")
    slots, history = optimizer.init(params), History()
    settings = checkpoints.describe(
        model=model, optimizer=optimizer, loss=loss, batch_size=batch_size, micro_batch=micro_batch, seed=seed,
        schedule=schedule, clip_norm=clip_norm, augment=augment, early_stop=early_stop, labels=data.y,
        inputs=f"{data.x.dtype} {data.x.shape}",
    )  # fmt: skip
    if checkpoint is not None:
        history = History(**checkpoints.load(checkpoint, params, slots, settings, resume=resume))
    per_epoch = math.ceil(samples / batch_size)
    steps = epochs * per_epoch
    started = time.perf_counter()
    with closing(progress_bar(steps, len(history.step_loss), shown=progress)) as bar:
        for step, rows in batch_rows(samples, batch_size, epochs, seed=seed, first=len(history.step_loss)):
            if history.stopped:
                break
            epoch, position = divmod(step, per_epoch)
            batch = Batch(data.x, data.y, rows, micro_batch, seed, step, augment)
            value, grads, statistics = batch_gradients(model, params, batch, loss, workers)
            if not math.isfinite(value):
                place = first_non_finite(model, params, batch)
                raise NonFiniteLoss(f"the loss is {value} in epoch {epoch + 1}, step {step + 1}; first in {place}")
            if clip_norm is not None:
                optim.clip_by_norm(grads, clip_norm)
            lr = optimizer.lr * (1.0 if schedule is None else float(schedule(step)))
            optimizer.update(params, grads, slots, lr=lr)
            for found in statistics:
                model.update_buffers(params, found)
            del grads  # not held through the next forward pass
            history.step_loss.append(value)
            if position == per_epoch - 1:
                row: dict[str, Any] = {
                    "epoch": epoch + 1,
                    "loss": epoch_mean(history.step_loss[-per_epoch:], samples, batch_size),
                }
                if validation is not None:
                    result = evaluate(
                        model, params, validation, loss=loss, batch_size=micro_batch or 100, workers=workers
                    )
                    row |= {"val_loss": result.loss, "val_accuracy": result.accuracy}
                history.epochs.append(row | {"seconds": time.perf_counter() - started})
                started = time.perf_counter()
                if early_stop is not None and _no_lower(history.column("val_loss"), early_stop):
                    history.stopped = f"no lower validation loss in {early_stop} epochs"
            now = Step(epoch + 1, step + 1, steps, value, lr, params, slots, history)
            ended = [callback(now) is True for callback in callbacks]  # each is called
            if any(ended):
                history.stopped = f"a callback ended it after step {step + 1}"
            bar.show(value, history.epochs)
            due = checkpoint_every is not None and (step + 1) % checkpoint_every == 0
            if checkpoint is not None and (due or step + 1 == steps or history.stopped):
                checkpoints.save(checkpoint, params, slots, vars(history), settings)
    return history


def evaluate(
    model: Sequential,
    params: Params,
    split: Any,
    *,
    loss: Loss = losses.softmax_cross_entropy,
    batch_size: int = 100,
    workers: int = 1,
) -> Evaluation:
    """The mean loss over `split`, and the share of its samples that are classified right. Changes nothing, keeps
    nothing: allocates the activations of `batch_size` samples for each worker."""
    samples = check_split(model, params, split)
    batch = Batch(split.x, split.y, None, _at_least_one("batch_size", batch_size))
    dtype = param_dtype(params)

    def one(index: int) -> tuple[float, int | None]:
        x, labels = batch.part(index, dtype)
        logits, _ = model.forward(params, x)
        return loss(logits, labels, total=samples)[0], _count_right(logits, labels)

    total = 0.0
    right: int | None = 0
    with one_blas_thread():
        for value, correct in in_order(one, batch.parts, _at_least_one("workers", workers)):
            total += value
            right = None if correct is None or right is None else right + correct
    return Evaluation(total, None if right is None else right / split.y.size)


def batch_rows(
    samples: int, batch_size: int, epochs: int, *, seed: int, first: int = 0
) -> Iterator[tuple[int, np.ndarray]]:
    """Yield (step, the rows of its batch) from step `first` on: each epoch a new order of all samples."""
    per_epoch = math.ceil(samples / batch_size)
    for epoch in range(first // per_epoch, epochs):
        order = stream(seed, ORDER, epoch).permutation(samples)
        for position in range(per_epoch):
            step = epoch * per_epoch + position
            if step >= first:
                yield step, order[position * batch_size : (position + 1) * batch_size]


def epoch_mean(batch_losses: list[float], samples: int, batch_size: int) -> float:
    """The mean loss over the samples of an epoch: a short last batch counts by its size."""
    sizes = [min(batch_size, samples - start) for start in range(0, samples, batch_size)]
    return sum(value * size for value, size in zip(batch_losses, sizes, strict=True)) / samples


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


def param_dtype(params: Params) -> np.dtype:
    """The dtype that every activation takes: that of the parameters, float32 for a network without any."""
    found = {leaf.dtype for leaf in tree.leaves(params)}
    if len(found) > 1:
        raise TypeError(f"parameters must have one dtype, got {', '.join(sorted(map(str, found)))}")
    return found.pop() if found else np.dtype(np.float32)


def check_split(model: Sequential, params: Params, split: Any, what: str = "data") -> int:
    """Check that `split` fits the network, before any work is done; returns its number of samples."""
    x, y = split.x, split.y
    for name, array in (("x", x), ("y", y)):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"the {what}'s .{name} must be a NumPy array, got {type(array).__name__}")
    if len(x) != len(y):
        raise ValueError(f"the {what}'s .x has {len(x)} samples and its .y has {len(y)}; they must be as many")
    if len(x) == 0:
        raise ValueError(f"the {what} set is empty: expected at least one sample")
    as_input(x[:1], param_dtype(params))
    model.out_shape(x.shape[1:])
    return len(x)


def _count_right(logits: np.ndarray, labels: np.ndarray) -> int | None:
    if not np.issubdtype(labels.dtype, np.integer):
        return None
    if labels.shape == logits.shape:  # yes or no, for each output
        return int(((logits > 0) == (labels > 0)).sum())
    return int((logits.argmax(axis=-1) == labels).sum())


def _no_lower(values: list[float], patience: int) -> bool:
    return len(values) > patience and min(values[-patience:]) >= min(values[:-patience])


def _at_least_one(name: str, value: Any) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < 1:
        raise ValueError(f"{name} must be an integer of at least 1, got {value!r}")
    return int(value)
