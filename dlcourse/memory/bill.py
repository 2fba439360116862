"""The bill: every byte of a training step, predicted from configuration and shapes. Nothing is run."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from dlcourse import losses, tree
from dlcourse.calls import Call, lifetimes, owners, sizes, totals
from dlcourse.checks import check_optimizer
from dlcourse.factors import block_bytes
from dlcourse.gradients import at_least, check_network, to_defer
from dlcourse.layers.base import Layer, Shape
from dlcourse.memory.tables import Shown, Table
from dlcourse.optim import BLOCK_NUMBERS
from dlcourse.units import binary

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
class Rows(Shown):
    """What the bill and the ledger share: a row a layer, a column a kind."""

    rows: tuple[Row, ...]

    def total(self, kind: str) -> int:
        """One column's sum over the layers."""
        return sum(getattr(row, kind) for row in self.rows)

    def _rows_table(self, notes: list[str], least_workspace: int = 0) -> Table:
        """With a row of totals, without rows of zeros; a workspace of less than `least_workspace` bytes is shown as none."""
        columns = [*KINDS, *(["buffers"] if self.total("buffers") else [])]
        least = dict.fromkeys(columns, 0) | {"workspace": least_workspace}
        rows = [(row.name, [n if (n := getattr(row, k)) >= least[k] else 0 for k in columns]) for row in self.rows]
        sums = [sum(column) for column in zip(*(sizes for _, sizes in rows), strict=True)]
        shown = [*(row for row in rows if any(row[1])), ("total", sums)]
        lines = [[name, *(binary(size) if size else "" for size in sizes)] for name, sizes in shown]
        return Table([["layer", *columns], *lines], notes, total=True)


@dataclass(frozen=True, repr=False)
class Bill(Rows):
    """The moments of the step in order; the peak and where it is reached; and a row a layer, a column a kind."""

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
    def persistent(self) -> int:
        """The bytes that stand through the whole step: parameters, buffers and slots."""
        return sum(map(self.total, ("params", "buffers", "slots")))

    @property
    def _highest(self) -> Moment:
        return max(self.moments, key=lambda moment: moment.total)

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        plain = ("batch_size", "micro_batch", "workers", "dtype", "peak", "peak_at")
        return {name: getattr(self, name) for name in plain} | {
            "totals": {kind: self.total(kind) for kind in KINDS},
            "layers": [asdict(row) for row in self.rows],
            "moments": [asdict(moment) | {"total": moment.total} for moment in self.moments],
        }

    def _table(self) -> Table:
        workers = f"{self.workers} worker{'s' if self.workers > 1 else ''}"
        setting = f"batch {self.batch_size}, micro-batches of {self.micro_batch}, {workers}, {self.dtype}"
        return self._rows_table([setting, f"predicted peak {binary(self.peak)}, in {self.peak_at}"])


def check_arguments(model: Any, optimizer: Any = None) -> None:
    """Raise TypeError for what is no network or no optimizer, such as a list of layers, or an optimizer's class."""
    check_network(model)
    if optimizer is not None:
        check_optimizer(optimizer)


def bill(
    model: Any,
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
    factored: bool = False,
) -> Bill:
    """Predict a training step of `model` on inputs of `in_shape` (without the batch axis), or with `inference` a forward
    pass that keeps nothing: no gradients, slots, saved arrays, no loss.

    model: a Sequential, or anything else with `calls(in_shape, batch, dtype, *, train)`, a list of `dlcourse.calls`.
    defer, factored: as in `gradients`; None: the layers that `gradients.deferred` names.
    Rows and saved bytes are those of one micro-batch on one worker. The peak is that of the whole step; with several
    workers it is an upper bound, since it lets all of them stand at their highest moment at once.
    Allocates nothing of the size of an array, but for a layer that does not declare its `weights`: its `init` is called
    once, and what that returns let go. Raises ValueError, which names the layer, if the shapes do not fit, and TypeError
    for what is no network, no optimizer, no shape.
    """
    check_arguments(model, optimizer)
    batch_size, workers = at_least(1, "batch_size", batch_size), at_least(1, "workers", workers)
    size = batch_size if micro_batch is None else min(at_least(1, "micro_batch", micro_batch), batch_size)
    parts, dtype = -(-batch_size // size), np.dtype(dtype)
    if dtype.kind != "f":
        raise TypeError(f"dtype is {dtype}; a network computes in floats, float32 or float64")
    workers = min(workers, parts)
    calls = model.calls(in_shape, size, dtype, train=not inference)
    if not calls:
        raise ValueError("the network has no layers: there is nothing to predict")
    defer = frozenset() if inference else to_defer(model, in_shape, batch_size, parts, defer, factored=factored)
    rows = _rows(calls, None if inference else optimizer, dtype, train=not inference)
    grads = {name: row.grads for name, row in rows.items()}
    later = {
        call.name: call.inputs[0].shape[-1] * call.output.shape[-1] * dtype.itemsize
        for call in calls
        if call.name in defer
    }
    output = calls[-1].output
    at_loss = None if inference else losses.plan(loss, output.shape[1:], size, dtype).forward_workspace
    names, alive = lifetimes(calls, grads, later, at_loss)
    sums = {kind: sum(getattr(row, kind) for row in rows.values()) for kind in (*KINDS, "buffers")}
    persistent = {"params": sums["params"] + sums["buffers"], "slots": sums["slots"]}
    # A finished micro-batch's gradients are the accumulator; another worker may be at its highest moment beside it. Factors
    # are not added up: those of each finished micro-batch wait for the end.
    factors = {call.name: call.inputs[0].nbytes + call.output.nbytes for call in calls if call.name in later}
    dense = sums["grads"] - sum(later.values())
    accumulator = dense + max(parts - workers, 1) * sum(factors.values()) if parts > 1 else 0
    moments = []
    for name, one in zip(names, totals(KINDS, len(names), alive), strict=True):
        together = {kind: nbytes * workers for kind, nbytes in one.items()}
        if parts > workers or workers == 1:
            together["grads"] += accumulator
        else:  # as many workers as micro-batches: the first to finish stands still as the accumulator
            together["grads"] = max(together["grads"], one["grads"] * (workers - 1) + accumulator)
        moments.append(Moment(name, **(together | persistent)))
    waiting = {name: int(nbytes * (batch_size / size)) for name, nbytes in factors.items()}
    at_update, in_blocks = sums["grads"], 0
    if factored:
        at_update = dense + sum(waiting.values())
        in_blocks = max((_in_blocks(call, batch_size, parts) for call in calls if call.name in later), default=0)
    elif later:
        moments.append(_products(later, waiting, dense, persistent))
    if optimizer is not None and not inference:
        workspace = optimizer.plan(dtype).workspace + in_blocks
        moments.append(Moment("update", **persistent, grads=at_update, saved=0, workspace=workspace, data=0))
    data = Row("input", data=sum(nbytes for number, nbytes in sizes(calls).items() if number < 0))
    return Bill((*rows.values(), data), tuple(moments), batch_size, size, workers, str(dtype))


def _rows(calls: Sequence[Call], optimizer: Any, dtype: np.dtype, *, train: bool) -> dict[str, Row]:
    """A row for each name: of a layer that is used twice, the saved bytes and the workspace of both uses. An array that
    several keep is in the row of the first of them."""
    owner, size = owners(calls), sizes(calls)
    charged = {number for number in size if number < 0}  # the inputs are data: no layer is charged for keeping them
    by_name: dict[str, list[Call]] = {}
    for call in calls:
        by_name.setdefault(call.name, []).append(call)
    rows = {}
    for name, uses in by_name.items():
        params, slots, buffers = _weight_bytes(uses[0], optimizer, dtype)
        kept = {owner[value.number] for call in uses for value in call.saves} - charged
        charged |= kept
        rows[name] = Row(
            name,
            params=params,
            grads=params if train else 0,
            saved=sum(size[number] for number in kept) + sum(call.plan.own for call in uses),
            workspace=max(
                max(call.plan.forward_workspace, call.backward_workspace(trains=params > 0) if train else 0)
                for call in uses
            ),
            slots=slots,
            buffers=buffers,
        )
    return rows


def _weight_bytes(call: Call, optimizer: Any, dtype: np.dtype) -> tuple[int, int, int]:
    """-> bytes of a layer's trainable parameters, of the optimizer's slots for them, and of its buffers."""
    layer, shapes = call.layer, call.in_shapes
    if type(layer).init is Layer.init:
        weights: Any = layer.weights(*shapes)
    else:  # it declares no weights: its parameters are made, and let go
        weights = layer.init(shapes if len(shapes) > 1 else shapes[0], np.random.default_rng(0), dtype)
    trained = [leaf.shape for leaf in tree.leaves(tree.trainable(weights))]
    params = sum(math.prod(shape) for shape in trained) * dtype.itemsize
    buffers = sum(math.prod(leaf.shape) for leaf in tree.buffers(weights)) * dtype.itemsize
    if optimizer is None:
        return params, 0, buffers
    if not hasattr(optimizer, "slot_shapes"):
        return params, params * optimizer.plan(dtype).slot_copies, buffers
    slots = [slot for shape in trained for slot in optimizer.slot_shapes(shape, dtype).values()]
    return params, sum(math.prod(shape) * kind.itemsize for shape, kind in slots), buffers


def _in_blocks(call: Call, batch_size: int, parts: int) -> int:
    """The bytes of a deferred dW while it is made block by block."""
    x, dtype = call.inputs[0], call.output.dtype
    shape, samples = (x.shape[-1], call.output.shape[-1]), batch_size * math.prod(x.shape[1:-1])
    return block_bytes(shape, samples, parts, BLOCK_NUMBERS, dtype.itemsize)


def _products(later: dict[str, int], waiting: dict[str, int], dense: int, persistent: dict[str, int]) -> Moment:
    """The highest moment while factors are multiplied out, one layer after the other: its rows side by side, and its
    product, beside the factors of those that follow and the products of those before.
    later: bytes of each product. waiting: bytes of its factors, of all micro-batches."""
    alive, highest, rows = sum(waiting.values()), 0, 0
    for name, product in later.items():
        if alive + product + waiting[name] > highest:
            highest, rows = alive + product + waiting[name], waiting[name]
        alive += product - waiting[name]
    return Moment("products", **persistent, grads=dense + highest - rows, saved=0, workspace=rows, data=0)
