"""Training: a step, the loop around it, and evaluation."""

import math
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Executor
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from dlcourse import checkpoint as checkpoints
from dlcourse import losses, optim
from dlcourse.checks import as_callbacks, check_optimizer, check_options, check_smallest, check_split
from dlcourse.diagnose import first_non_finite, first_non_finite_gradient
from dlcourse.gradients import Augment, Batch, Loss, at_least, batch_gradients, gradients, param_dtype
from dlcourse.layers.base import Params
from dlcourse.model import Sequential
from dlcourse.progress import progress_bar
from dlcourse.settings import describe, describe_data
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


Callback = Callable[[Step], Any]


@dataclass(frozen=True)
class Evaluation:
    loss: float
    accuracy: float | None  # None if the loss or the labels have no right answers


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
    callbacks: Iterable[Callback] = (),
    defer: Iterable[str] | None = None,
    factored: bool = False,
) -> History:
    """Train `params` in place on `data`; returns the history.

    Each epoch sees every sample once, in an order drawn from (seed, epoch); a last partial batch counts by its size.
    A repeated run is the same to the bit, with any number of workers, and so is one that was stopped and resumed.

    model, params: a Sequential, and what its `init` made (or a training left); float32 or float64.
    data: anything with arrays .x (N, …) and .y, such as datasets.Split; .x may be a memory map. uint8 is scaled.
    optimizer: one of dlcourse.optim, such as optim.Adam(lr=1e-3).
    loss: (outputs, labels, total=) -> (mean loss, gradient); one of dlcourse.losses, a partial of one, or your own.
    epochs, batch_size: how often every sample is seen, and how many samples one update is computed from.
    micro_batch: a batch is computed so many samples at a time, and their gradients are added up: fewer bytes.
    workers: so many micro-batches are computed at once, each on a thread of its own.
    seed: decides the order of the samples and what dropout and `augment` draw.
    validation: like `data`; evaluated after each epoch.
    schedule: step, counted from 0 -> factor of the optimizer's lr.
    clip_norm: the largest norm of all gradients together; larger ones are scaled down.
    augment: (x, rng) -> x, on a micro-batch as it is stored, before it becomes floats.
    early_stop: end after that many epochs without a lower validation loss.
    checkpoint: a folder; the state is written there each `checkpoint_every` steps and at the end.
    resume: go on from the checkpoint that is there; a finished training gives its stored history. One of other settings
        is refused, and with False any. So that settings can be compared, schedule, augment, loss, optimizer and layers
        of your own must be named functions or frozen dataclasses of plain values.
    defer: the layers whose dW is multiplied once a step, when all micro-batches are there; None: those that
        `gradients.deferred` names, (): none.
    factored: their dW is never made whole: the update multiplies and uses one block after the other. Fewer bytes, and
        the same numbers within rounding.
    progress: show a bar. callbacks: each is called with a `Step` after each step; one that returns True ends training.

    Allocates slots, once; in each step what `gradients` does, and the optimizer's workspace: `memory.bill` predicts it.
    Raises NonFiniteLoss before the update of a step whose loss or gradients are NaN or infinite: `params` are those
    before it, and so is the checkpoint. Everything else that can be wrong is looked at before the first step and is a
    TypeError, a ValueError or, about checkpoints, a CheckpointError.
    """
    epochs, batch_size = at_least(1, "epochs", epochs), at_least(1, "batch_size", batch_size)
    workers, seed = at_least(1, "workers", workers), at_least(0, "seed", seed)
    micro_batch = None if micro_batch is None else at_least(1, "micro_batch", micro_batch)
    early_stop = None if early_stop is None else at_least(1, "early_stop", early_stop)
    every = None if checkpoint_every is None else at_least(1, "checkpoint_every", checkpoint_every)
    if early_stop is not None and validation is None:
        raise ValueError("early_stop watches the validation loss: give validation=… too")
    if every is not None and checkpoint is None:
        raise ValueError("checkpoint_every needs a folder to write to: give checkpoint=… too")
    callbacks, defer = as_callbacks(callbacks), None if defer is None else tuple(defer)
    samples = check_split(model, params, data, loss)
    if validation is not None:
        check_split(model, params, validation, loss, "validation")
    per_epoch = math.ceil(samples / batch_size)
    steps = epochs * per_epoch
    check_optimizer(optimizer)
    check_options(steps, schedule, augment, clip_norm, checkpoint, callbacks)
    check_smallest(model, params, data.x, batch_size, micro_batch)
    slots, history, settings = optimizer.init(params), History(), {}
    if checkpoint is not None:
        settings = describe(
            model=model, optimizer=optimizer, loss=loss, batch_size=batch_size, micro_batch=micro_batch, seed=seed,
            schedule=schedule, clip_norm=clip_norm, augment=augment, early_stop=early_stop, defer=defer,
            factored=factored,
        ) | describe_data(data, validation if early_stop else None)  # fmt: skip
        history = History(**checkpoints.load(checkpoint, params, slots, settings, resume=resume))
        if len(history.step_loss) < steps and not history.stopped:
            checkpoints.prepare(checkpoint)

    def save(now: Step) -> None:
        assert checkpoint is not None
        if now.step == steps or history.stopped or (every is not None and now.step % every == 0):
            checkpoints.save(checkpoint, params, slots, vars(history), settings)

    def validate() -> dict[str, Any]:
        result = evaluate(model, params, validation, loss=loss, batch_size=micro_batch or 100, workers=workers)
        return {"val_loss": result.loss, "val_accuracy": result.accuracy}

    done = len(history.step_loss)
    with progress_bar(steps, done, shown=progress) as show, threads(workers) as pool:
        end_epoch = _epoch_end(samples, batch_size, validate if validation is not None else dict, early_stop)
        watchers = [end_epoch, *callbacks, show, *([save] if checkpoint is not None else [])]
        for step, rows in batch_rows(samples, batch_size, epochs, seed=seed, first=done):
            if history.stopped:
                break
            lr = optimizer.lr * (1.0 if schedule is None else float(schedule(step)))
            batch = Batch(data.x, data.y, rows, micro_batch, seed, step, augment)
            epoch = step // per_epoch + 1
            try:
                value = train_step(
                    model, params, slots, batch, optimizer=optimizer, loss=loss, workers=workers, lr=lr,
                    clip_norm=clip_norm, pool=pool, defer=defer, factored=factored,
                )  # fmt: skip
            except NonFiniteLoss as error:
                raise NonFiniteLoss(f"epoch {epoch}, step {step + 1}: {error}") from None
            history.step_loss.append(value)
            now = Step(epoch, step + 1, steps, value, lr, params, slots, history)
            for watcher in watchers:
                answer = watcher(now)
                if answer is True or (getattr(answer, "dtype", None) == bool and answer.ndim == 0 and answer.item()):
                    history.stopped = f"a callback ended it after step {step + 1}"
    return history


def _epoch_end(samples: int, batch_size: int, validate: Callable[[], dict[str, Any]], patience: int | None) -> Callback:
    """The callback that writes an epoch's row into the history, and ends training after `patience` epochs without a
    lower validation loss."""
    per_epoch, started = math.ceil(samples / batch_size), time.perf_counter()

    def end_epoch(now: Step) -> None:
        nonlocal started
        if now.step % per_epoch:
            return
        loss = epoch_mean(now.history.step_loss[-per_epoch:], samples, batch_size)
        row = {"epoch": now.epoch, "loss": loss} | validate()
        now.history.epochs.append(row | {"seconds": time.perf_counter() - started})
        started = time.perf_counter()
        lowest = [value if math.isfinite(value) else math.inf for value in now.history.column("val_loss")]
        if patience is not None and len(lowest) > patience and min(lowest[-patience:]) >= min(lowest[:-patience]):
            now.history.stopped = f"no lower validation loss in {patience} epochs"

    return end_epoch


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
    factored: bool = False,
) -> float:
    """One step, in place: gradients, clipping, update, running statistics. Returns the loss before the update.

    slots: of `optimizer.init`. lr: of this step, if it is not the optimizer's own. pool: the threads of `workers`.
    Raises NonFiniteLoss, before anything is changed, if the loss or a gradient is NaN or infinite.
    """
    value, grads, statistics = batch_gradients(
        model, params, batch, loss, workers, pool, defer=defer, factored=factored
    )
    if not math.isfinite(value):
        raise NonFiniteLoss(f"the loss is {value}; first in {first_non_finite(model, params, batch)}")
    with one_blas_thread() if factored else nullcontext():  # the update multiplies too
        if (place := first_non_finite_gradient(grads)) is not None:
            raise NonFiniteLoss(f"the loss is {value:.6g}, but NaN or infinity stands first in {place}")
        if clip_norm is not None:
            optim.clip_by_norm(grads, clip_norm)
        optimizer.update(params, grads, slots, lr=lr)
    for found in filter(None, statistics):
        model.update_buffers(params, found)
    return float(value)


def evaluate(
    model: Sequential,
    params: Params,
    split: Any,
    *,
    loss: Loss = losses.softmax_cross_entropy,
    batch_size: int = 100,
    workers: int = 1,
) -> Evaluation:
    """The mean loss over `split`, and the share of its answers that are right, as the loss sees it (None if it has none:
    a regression, probabilities). NaN is never right. Changes nothing, keeps nothing: allocates the activations of
    `batch_size` samples for each worker."""
    samples = check_split(model, params, split, loss)
    batch = Batch(split.x, split.y, None, at_least(1, "batch_size", batch_size))
    dtype = param_dtype(params)

    def micro_step(index: int) -> tuple[float, np.ndarray | None]:
        x, labels = batch.micro_batch(index, dtype)
        outputs, _ = model.forward(params, x)
        return loss(outputs, labels, total=samples)[0], losses.right(loss, outputs, labels)

    total, right, answers, known = 0.0, 0, 0, True
    with one_blas_thread():
        for value, found in in_order(micro_step, batch.micro_batches, at_least(1, "workers", workers)):
            total += float(value)
            known = known and found is not None
            if found is not None:
                right, answers = right + int(found.sum()), answers + found.size
    return Evaluation(total, right / answers if known else None)


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
