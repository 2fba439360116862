"""The bill: every byte of a training step, predicted from configuration and shapes. Nothing is run, and nothing of the
size of a parameter is allocated."""

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import Any

import numpy as np

from dlcourse import losses, tree
from dlcourse.gradients import at_least, deferred
from dlcourse.layers.base import Shape, array_bytes
from dlcourse.memory.shapes import params_of
from dlcourse.memory.tables import Shown, Table, bytes_table
from dlcourse.model import Sequential
from dlcourse.plan import Plan

KINDS = ("params", "grads", "saved", "workspace", "slots", "data")


@dataclass(frozen=True)
class Row:
    """The bytes of one layer, by kind. `workspace` is the larger of what its forward and its backward hold besides; the
    first layer's backward makes no dx."""

    name: str
    params: int = 0
    grads: int = 0
    saved: int = 0
    workspace: int = 0
    slots: int = 0
    data: int = 0
    buffers: int = 0


@dataclass(frozen=True)
class Moment:
    """What is alive during one call of the step, such as "conv2d_2, backward"."""

    name: str
    params: int
    grads: int
    saved: int
    workspace: int
    slots: int
    data: int

    @property
    def total(self) -> int:
        return sum(getattr(self, kind) for kind in KINDS)


@dataclass(frozen=True, repr=False)
class Bill(Shown):
    """A row a layer, a column a kind; the moments of the step in order; the peak and where it is reached."""

    rows: tuple[Row, ...]
    moments: tuple[Moment, ...]
    batch_size: int
    micro_batch: int
    workers: int
    dtype: str

    @property
    def peak(self) -> int:
        """The most bytes alive at one moment, parameters and slots included, the data set not."""
        return self._highest.total

    @property
    def peak_at(self) -> str:
        return self._highest.name

    @property
    def _highest(self) -> Moment:
        return max(self.moments, key=lambda moment: moment.total)

    def total(self, kind: str) -> int:
        """One column's sum over the layers."""
        return sum(getattr(row, kind) for row in self.rows)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        columns = [column.name for column in fields(Row)]
        return {
            "batch_size": self.batch_size,
            "micro_batch": self.micro_batch,
            "workers": self.workers,
            "dtype": self.dtype,
            "peak": self.peak,
            "peak_at": self.peak_at,
            "totals": {kind: self.total(kind) for kind in KINDS},
            "layers": [{column: getattr(row, column) for column in columns} for row in self.rows],
            "moments": [
                {"name": moment.name, "total": moment.total} | {kind: getattr(moment, kind) for kind in KINDS}
                for moment in self.moments
            ],
        }

    def _table(self) -> Table:
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''}"
        notes = [
            f"batch {self.batch_size}, micro-batches of {self.micro_batch}, {workers}, {self.dtype}",
            f"predicted peak {{{self.peak}}}, in {self.peak_at}",
        ]
        columns = [*KINDS, *(["buffers"] if self.total("buffers") else [])]
        return bytes_table(
            "layer", columns, [(row.name, [getattr(row, k) for k in columns]) for row in self.rows], notes
        )


def bill(
    model: Sequential,
    in_shape: Shape,
    *,
    batch_size: int,
    optimizer: Any = None,
    loss: Any = losses.softmax_cross_entropy,
    dtype: Any = "float32",
    micro_batch: int | None = None,
    workers: int = 1,
    inference: bool = False,
    defer: Iterable[str] | None = None,
) -> Bill:
    """Predict a training step of `model` on inputs of `in_shape` (without the batch axis), or with `inference` a forward
    pass that keeps nothing: no gradients, slots, saved arrays, no loss.

    Rows and saved bytes are those of one micro-batch on one worker. The peak is that of the whole step; with several
    workers it is an upper bound, since it lets all of them stand at their highest moment at once. Raises ValueError,
    which names the layer, where the shapes do not fit.
    """
    check_arguments(model, optimizer)
    batch_size, workers = at_least(1, "batch_size", batch_size), at_least(1, "workers", workers)
    size = batch_size if micro_batch is None else min(at_least(1, "micro_batch", micro_batch), batch_size)
    parts = math.ceil(batch_size / size)
    workers = min(workers, parts)
    if parts == 1 or inference:
        defer = ()
    elif defer is None:
        defer = deferred(model, in_shape, batch_size)
    steps = list(_steps(model, in_shape, size, np.dtype(dtype), train=not inference, defer=frozenset(defer)))
    update = None if optimizer is None or inference else optimizer.plan(dtype)
    copies = update.slot_copies if update else 0
    rows = tuple(step.row(copies, train=not inference, first=i == 0) for i, step in enumerate(steps))
    data = array_bytes(in_shape, size, dtype)
    totals = {kind: sum(getattr(row, kind) for row in rows) for kind in (*KINDS, "buffers")}
    persistent = {"params": totals["params"] + totals["buffers"], "slots": totals["slots"]}
    # A finished micro-batch's gradients are the accumulator; another worker may be at its highest moment beside it. Factors
    # are not added up: there, those of each finished micro-batch wait for the end.
    finished = max(parts - workers, 1)
    dense = totals["grads"] - sum(step.factored for step in steps)
    accumulator = dense + finished * sum(step.factors for step in steps) if parts > 1 else 0
    moments = []
    last = None if inference else (loss, model.out_shape(in_shape))
    for moment in _moments(steps, data, last, size, np.dtype(dtype)):
        together = {kind: getattr(moment, kind) * workers for kind in KINDS}
        if parts > workers or workers == 1:
            together["grads"] += accumulator
        else:  # as many workers as micro-batches: the first to finish stands still as the accumulator
            together["grads"] = max(together["grads"], moment.grads * (workers - 1) + accumulator)
        moments.append(Moment(moment.name, **(together | persistent)))
    if any(step.factored for step in steps):
        moments.append(_products(steps, dense, batch_size / size, persistent))
    if update is not None:
        moments.append(
            Moment("update", **persistent, grads=totals["grads"], saved=0, workspace=update.workspace, data=0)
        )
    rows = (*rows, Row("input", data=data))
    return Bill(rows, tuple(moments), batch_size, size, workers, str(np.dtype(dtype)))


def check_arguments(model: Any, optimizer: Any = None) -> None:
    """Raise TypeError for what is no network or no optimizer, such as a list of layers, or an optimizer's class."""
    if isinstance(model, type) or not hasattr(model, "flat"):
        raise TypeError(f"model must be a network, Sequential([…]) of one or more layers, got {model!r}")
    if optimizer is not None and (isinstance(optimizer, type) or not hasattr(optimizer, "update")):
        raise TypeError(f"optimizer must be one of dlcourse.optim, such as optim.Adam(lr=1e-3), got {optimizer!r}")


@dataclass(frozen=True)
class _Step:
    """One layer in the step: its plan, and the arrays it takes and makes, by number (0 is the input)."""

    name: str
    plan: Plan
    x: int
    y: int
    x_bytes: int
    y_bytes: int
    params: int
    buffers: int
    kept: dict[int, int]  # arrays that this layer keeps and no earlier one does: {number: bytes}
    factored: int  # bytes of its gradient that come as factors

    @property
    def factors(self) -> int:
        """Bytes of the factors of one micro-batch: the input and dy."""
        return self.x_bytes + self.y_bytes if self.factored else 0

    def row(self, slot_copies: int, *, train: bool, first: bool) -> Row:
        backward = 0 if not train else _without_dx(self) if first else self.plan.backward_workspace
        return Row(
            self.name,
            params=self.params,
            grads=self.params if train else 0,
            saved=sum(self.kept.values()) + self.plan.own,
            workspace=max(self.plan.forward_workspace, backward),
            slots=slot_copies * self.params,
            buffers=self.buffers,
        )


def _steps(
    model: Sequential, in_shape: Shape, batch: int, dtype: np.dtype, *, train: bool, defer: frozenset[str]
) -> Iterator[_Step]:
    """The layers in order, each array numbered when it is made: a view has the number of its base."""
    made = current = 0
    taken = {0}  # the input is data: no layer is charged for keeping it
    for name, layer, shape in model.flat(in_shape):
        plan = layer.plan(shape, batch=batch, dtype=dtype, train=train)
        x, x_bytes, y_bytes = (
            current,
            array_bytes(shape, batch, dtype),
            array_bytes(layer.out_shape(shape), batch, dtype),
        )
        if not plan.output_is_input:
            made += 1
            current = made
        kept = {}
        for saves, number, size in ((plan.saves_input, x, x_bytes), (plan.saves_output, current, y_bytes)):
            if saves and number not in taken:
                kept[number] = size
                taken.add(number)
        params, buffers = _param_bytes(layer, shape, dtype)
        factored = params - (array_bytes(layer.out_shape(shape)[-1:], 1, dtype)) if name in defer else 0
        yield _Step(name, plan, x, current, x_bytes, y_bytes, params, buffers, kept, factored)


def _param_bytes(layer: Any, in_shape: Shape, dtype: np.dtype) -> tuple[int, int]:
    """Bytes of a layer's trainable parameters and of its buffers, whose shapes its `init` alone knows."""
    params = params_of(layer, in_shape, dtype)
    trainable, buffers = tree.leaves(tree.trainable(params)), tree.buffers(params)
    return sum(leaf.nbytes for leaf in trainable), sum(leaf.nbytes for leaf in buffers)


def _moments(
    steps: list[_Step], data: int, last: tuple[Any, Shape] | None, batch: int, dtype: np.dtype
) -> Iterator[Moment]:
    """Follow one micro-batch, forward and back, as `batch_gradients` runs it, and say what is alive in each call.
    What stands between two layers and is kept by neither counts as workspace. `last` is the loss and the shape that it
    is given; None ends after the forward pass."""
    sizes = {0: data} | {step.y: step.y_bytes for step in reversed(steps) if step.y != 0}
    kept: dict[int, int] = {}  # arrays in `saved`
    handed_on: dict[int, int] = {}  # inputs that live on as factors of a gradient
    own = 0

    def moment(name: str, alive: set[int], workspace: int, grads: int = 0) -> Moment:
        passing = sum(sizes[number] for number in alive - kept.keys() - {0})
        return Moment(
            name,
            params=0,
            grads=grads + sum(size for number, size in handed_on.items() if number not in kept and number != 0),
            saved=own + sum(size for number, size in kept.items() if number != 0),
            workspace=workspace + passing,
            slots=0,
            data=data if 0 in alive or 0 in kept or 0 in handed_on else 0,
        )

    for step in steps:
        own += step.plan.own
        yield moment(f"{step.name}, forward", {0, step.x, step.y}, step.plan.forward_workspace)
        for saves, number in ((step.plan.saves_input, step.x), (step.plan.saves_output, step.y)):
            if saves:
                kept[number] = sizes[number]
    if last is None:
        return
    loss, out_shape = last
    logits = steps[-1].y if steps else 0
    dlogits = array_bytes(out_shape, batch, dtype)
    plan = losses.plan(loss, out_shape, batch, dtype)
    yield moment("loss", {logits}, dlogits + plan.forward_workspace)

    # dlogits is held by its caller until the end; from there on each layer's dy is the dx of the one after it.
    grads, dy, dy_is_dlogits = 0, dlogits, True
    for i, step in reversed(list(enumerate(steps))):
        grads += step.params - step.factored
        needs_dx = i > 0
        dx = 0 if not needs_dx or step.plan.dx_is_dy else step.x_bytes
        between = dlogits + (0 if dy_is_dlogits else dy) + dx
        workspace = step.plan.backward_workspace if needs_dx else _without_dx(step)
        yield moment(f"{step.name}, backward", set(), workspace + between, grads)
        own -= step.plan.own
        for number in _last_use(steps, i):
            kept.pop(number, None)
        if step.factored:
            handed_on[step.x] = step.x_bytes
            grads += 0 if dy_is_dlogits else step.y_bytes  # dy lives on, too
        if dx:
            dy, dy_is_dlogits = dx, False


def _products(steps: list[_Step], dense: int, micro_batches: float, persistent: dict[str, int]) -> Moment:
    """The highest moment while factors are multiplied out, one layer after the other: its rows side by side, and its
    product, beside the factors of those that follow and the products of those before."""
    waiting = {step.name: int(step.factors * micro_batches) for step in steps if step.factored}
    alive, highest, rows = sum(waiting.values()), 0, 0
    for step in steps:
        if step.factored:
            if alive + step.factored + waiting[step.name] > highest:
                highest, rows = alive + step.factored + waiting[step.name], waiting[step.name]
            alive += step.factored - waiting[step.name]
    return Moment("products", **persistent, grads=dense + highest - rows, saved=0, workspace=rows, data=0)


def _without_dx(step: _Step) -> int:
    """What the first layer's backward holds: no dx is asked of it, so it does nothing where it has no parameters."""
    if not step.params:
        return 0
    first = step.plan.first_backward_workspace
    return step.plan.backward_workspace if first is None else first


def _last_use(steps: list[_Step], i: int) -> set[int]:
    """The arrays that layer `i` keeps and no earlier layer does: freed when its backward is done."""

    def keeps(step: _Step) -> set[int]:
        return {
            number for saves, number in ((step.plan.saves_input, step.x), (step.plan.saves_output, step.y)) if saves
        }

    return keeps(steps[i]).difference(*(keeps(step) for step in steps[:i]))
