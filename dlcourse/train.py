"""Training: a step, the loop around it, and evaluation."""

import functools
import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dlcourse import checkpoint as checkpoints
from dlcourse import losses, optim
from dlcourse.diagnose import first_non_finite, first_non_finite_gradient
from dlcourse.gradients import (
    Augment,
    Batch,
    Loss,
    at_least,
    batch_gradients,
    gradients,
    param_dtype,
)
from dlcourse.inputs import as_input
from dlcourse.layers.base import Params
from dlcourse.model import Sequential
from dlcourse.progress import progress_bar
from dlcourse.workers import ORDER, in_order, one_blas_thread, stream, threads

__all__ = ["Evaluation", "History", "NonFiniteLoss", "Step", "evaluate", "fit", "gradients", "train_step"]


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
    defer: Iterable[str] | None = None,
) -> History:
    """Train `params` in place on `data`, anything with .x and .y; returns the history.

    Each epoch sees every sample once, in an order drawn from (seed, epoch); a last partial batch counts by its size.
    A repeated run is the same to the bit, with any number of workers, and so is one that was stopped and resumed.

    validation: evaluated after each epoch. schedule: step -> factor of the optimizer's lr. clip_norm: the largest norm
        of all gradients together. augment: (x, rng) -> x, on a micro-batch as it is stored, before it becomes floats.
    early_stop: end after that many epochs without a lower validation loss.
    checkpoint: a folder; the state is written there each `checkpoint_every` steps and at the end. With `resume`,
        training goes on from what is there; a finished one gives its stored history. One of other settings is refused.
    defer: the layers whose dW is multiplied once a step, when all micro-batches are there; None: those that
        `gradients.deferred` names, (): none.
    callbacks: each is called with a `Step` after each step; one that returns True ends the training.
    Raises NonFiniteLoss before the update of a step whose loss or gradients are NaN or infinite: `params` are those
    before it, and so is the checkpoint. Everything else that can be wrong is looked at before the first step.
    """
    sizes = {"epochs": epochs, "batch_size": batch_size, "workers": workers}
    optional = {"micro_batch": micro_batch, "early_stop": early_stop, "checkpoint_every": checkpoint_every}
    for name, size in (sizes | {name: size for name, size in optional.items() if size is not None}).items():
        at_least(1, name, size)
    at_least(0, "seed", seed)
    _check_options(optimizer, schedule=schedule, augment=augment, clip_norm=clip_norm)
    if early_stop is not None and validation is None:
        raise ValueError("early_stop watches the validation loss: give validation=… too")
    if checkpoint_every is not None and checkpoint is None:
        raise ValueError("checkpoint_every needs a folder to write to: give checkpoint=… too")
    callbacks = tuple(callbacks)
    samples = check_split(model, params, data, loss)
    if validation is not None:
        check_split(model, params, validation, loss, "validation")
    slots, history = optimizer.init(params), History()
    settings = checkpoints.describe(
        model=model, optimizer=optimizer, loss=loss, batch_size=batch_size, micro_batch=micro_batch, seed=seed,
        schedule=schedule, clip_norm=clip_norm, augment=augment, early_stop=early_stop, labels=data.y,
        inputs=f"{data.x.dtype} {data.x.shape}", some_inputs=np.array(data.x[:: max(1, samples // 64)]),
    )  # fmt: skip
    if checkpoint is not None:
        history = History(**checkpoints.load(checkpoint, params, slots, settings, resume=resume))
    per_epoch = math.ceil(samples / batch_size)
    steps = epochs * per_epoch
    if checkpoint is not None and len(history.step_loss) < steps and not history.stopped:
        checkpoints.prepare(checkpoint)
    started = time.perf_counter()
    with closing(progress_bar(steps, len(history.step_loss), shown=progress)) as bar, threads(workers) as pool:
        for step, rows in batch_rows(samples, batch_size, epochs, seed=seed, first=len(history.step_loss)):
            if history.stopped:
                break
            epoch = step // per_epoch + 1
            lr = optimizer.lr * (1.0 if schedule is None else float(schedule(step)))
            batch = Batch(data.x, data.y, rows, micro_batch, seed, step, augment)
            try:
                value = train_step(
                    model, params, slots, batch, optimizer=optimizer, loss=loss, workers=workers, lr=lr,
                    clip_norm=clip_norm, pool=pool, defer=defer,
                )  # fmt: skip
            except NonFiniteLoss as error:
                raise NonFiniteLoss(f"epoch {epoch}, step {step + 1}: {error}") from None
            history.step_loss.append(value)
            if (step + 1) % per_epoch == 0:
                row: dict[str, Any] = {"epoch": epoch}
                row["loss"] = epoch_mean(history.step_loss[-per_epoch:], samples, batch_size)
                if validation is not None:
                    cut = {"batch_size": micro_batch or 100, "workers": workers}
                    result = evaluate(model, params, validation, loss=loss, **cut)
                    row |= {"val_loss": result.loss, "val_accuracy": result.accuracy}
                history.epochs.append(row | {"seconds": time.perf_counter() - started})
                started = time.perf_counter()
                if early_stop is not None and _no_lower(history.column("val_loss"), early_stop):
                    history.stopped = f"no lower validation loss in {early_stop} epochs"
            now = Step(epoch, step + 1, steps, value, lr, params, slots, history)
            ended = [callback(now) is True for callback in callbacks]  # each is called
            if any(ended):
                history.stopped = f"a callback ended it after step {step + 1}"
            bar.show(value, history.epochs)
            due = checkpoint_every is not None and (step + 1) % checkpoint_every == 0
            if checkpoint is not None and (due or step + 1 == steps or history.stopped):
                checkpoints.save(checkpoint, params, slots, vars(history), settings)
    return history


def train_step(
    model: Sequential,
    params: Params,
    slots: Params,
    batch: Batch,
    *,
    optimizer: Any,
    loss: Loss,
    workers: int = 1,
    lr: float | None = None,
    clip_norm: float | None = None,
    pool: Executor | None = None,
    defer: Iterable[str] | None = None,
) -> float:
    """One step, in place: gradients, clipping, update, running statistics. Returns the loss before the update.

    Raises NonFiniteLoss, before anything is changed, where the loss or a gradient is NaN or infinite.
    """
    value, grads, statistics = batch_gradients(model, params, batch, loss, workers, pool, defer=defer)
    if not math.isfinite(value):
        raise NonFiniteLoss(f"the loss is {value}; first in {first_non_finite(model, params, batch)}")
    if (place := first_non_finite_gradient(grads)) is not None:
        raise NonFiniteLoss(f"the loss is {value:.6g}, but NaN or infinity stands first in {place}")
    if clip_norm is not None:
        optim.clip_by_norm(grads, clip_norm)
    optimizer.update(params, grads, slots, lr=lr)
    for found in statistics:
        model.update_buffers(params, found)
    return value


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
    samples = check_split(model, params, split, loss)
    batch = Batch(split.x, split.y, None, at_least(1, "batch_size", batch_size))
    dtype = param_dtype(params)

    def one(index: int) -> tuple[float, int | None]:
        x, labels = batch.micro_batch(index, dtype)
        logits, _ = model.forward(params, x)
        return loss(logits, labels, total=samples)[0], _count_right(logits, labels)

    total = 0.0
    right: int | None = 0
    with one_blas_thread():
        for value, correct in in_order(one, batch.micro_batches, at_least(1, "workers", workers)):
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


def check_split(model: Sequential, params: Params, split: Any, loss: Loss, what: str = "data") -> int:
    """Check that `split` fits the network, before any work is done; returns its number of samples. Runs one sample."""
    x, y = split.x, split.y
    for name, array in (("x", x), ("y", y)):
        if not isinstance(array, np.ndarray):
            raise TypeError(f"the {what}'s .{name} must be a NumPy array, got {type(array).__name__}")
    if len(x) != len(y):
        raise ValueError(f"the {what}'s .x has {len(x)} samples and its .y has {len(y)}; they must be as many")
    if len(x) == 0:
        raise ValueError(f"the {what} set is empty: expected at least one sample")
    model.out_shape(x.shape[1:])
    logits, _ = model.forward(params, as_input(x[:1], param_dtype(params)))
    while isinstance(loss, functools.partial):
        loss = loss.func
    if loss is losses.softmax_cross_entropy and y.dtype.kind in "iu" and y.ndim == logits.ndim - 1:
        classes = logits.shape[-1]
        wrong = np.argwhere((y < 0) | (y >= classes))
        if len(wrong):
            place = tuple(map(int, wrong[0]))
            raise ValueError(
                f"the {what}'s .y has label {y[place]} in row {place[0]}; labels must be 0 to {classes - 1}: "
                f"the network has {classes} outputs"
            )
    return len(x)


def _check_options(optimizer: Any, *, schedule: Any, augment: Any, clip_norm: Any) -> None:
    if isinstance(optimizer, type) or not hasattr(optimizer, "update"):
        raise TypeError(f"optimizer must be one of dlcourse.optim, such as optim.Adam(lr=1e-3), got {optimizer!r}")
    for name, function in (("schedule", schedule), ("augment", augment)):
        if function is not None and not callable(function):
            raise TypeError(f"{name} must be a function, got {function!r}")
    if clip_norm is not None and not clip_norm > 0:
        raise ValueError(f"clip_norm must be above 0, got {clip_norm!r}")


def _count_right(logits: np.ndarray, labels: np.ndarray) -> int | None:
    if not np.issubdtype(labels.dtype, np.integer):
        return None
    if labels.shape == logits.shape:  # yes or no, for each output
        return int(((logits > 0) == (labels > 0)).sum())
    return int((logits.argmax(axis=-1) == labels).sum())


def _no_lower(values: list[float], patience: int) -> bool:
    values = [value if math.isfinite(value) else math.inf for value in values]
    return len(values) > patience and min(values[-patience:]) >= min(values[:-patience])
