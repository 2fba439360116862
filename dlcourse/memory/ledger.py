"""The ledger: one real training step, measured by the exact ruler and accounted for to the last byte."""

import gc
import tracemalloc
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from dlcourse import losses, tree
from dlcourse.gradients import Batch, batch_gradients, param_dtype
from dlcourse.layers.base import Params
from dlcourse.memory.bill import KINDS, Bill, Row
from dlcourse.memory.comparison import PEAK, Comparison
from dlcourse.memory.grid import Table
from dlcourse.memory.rulers import traced_array_bytes, traced_peak
from dlcourse.memory.table import table
from dlcourse.memory.watch import Watch, Watched, small_buffers
from dlcourse.model import Sequential
from dlcourse.units import binary
from dlcourse.workers import one_blas_thread

SMALL = 8 * 1024  # bytes: a workspace below it is Python's own objects, and left out of the table


@dataclass(frozen=True)
class Kept:
    """An array that is kept from forward to backward. `layer`: who kept it first ("input": it is the data). `needed_by`:
    the layers whose backward gets it, in the order of backward; it is freed when the last of them is done. A view is
    shown as the array that owns the memory."""

    layer: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    needed_by: tuple[str, ...]


@dataclass(frozen=True)
class Ledger:
    """Measured bytes of one step.

    rows: those of one micro-batch. `workspace` is what a call held and let go again, the larger of forward and backward,
        with Python's small objects, some KiB.
    moments: the peak in each call, {"conv2d_1, forward": bytes}, parameters and slots included, the data set not; the
        largest of all micro-batches. Empty with several workers, whose calls overlap.
    peak: the same of the whole step. NumPy's own buffers (see `small_buffers`) count in it, and hardly in the others.
    unattributed: array bytes that no walk of the saved tensors, gradients, slots and outputs found, the largest of three
        quiet points (after forward, after backward, after the update).
    kept: each array that waits for backward.
    """

    rows: tuple[Row, ...]
    peak: int
    unattributed: int
    moments: dict[str, int]
    kept: tuple[Kept, ...]

    def total(self, kind: str) -> int:
        """One column's sum over the layers."""
        return sum(getattr(row, kind) for row in self.rows)

    @property
    def peak_at(self) -> str:
        """The moment of the peak; "" where there are no moments."""
        return max(self.moments, key=self.moments.__getitem__, default="")

    def compare(self, bill: Bill) -> Comparison:
        """Predicted beside measured: each kind that outlives a call, and the peak; then each layer's, and each moment.
        Raises ValueError where the bill is that of other layers."""
        predicted, measured = ({row.name: row for row in rows} for rows in (bill.rows, self.rows))
        if predicted.keys() != measured.keys():
            others = sorted(predicted.keys() ^ measured.keys())
            raise ValueError(f"the bill is not one of this network: only one of the two has {', '.join(others)}")
        kinds = (*KINDS, "buffers")
        return Comparison(
            {kind: (bill.total(kind), self.total(kind)) for kind in KINDS if kind != "workspace"}
            | {PEAK: (bill.peak, self.peak)},
            self.unattributed,
            {
                (name, kind): (getattr(row, kind), getattr(measured[name], kind))
                for name, row in predicted.items()
                for kind in kinds
            },
            {moment.name: (moment.total, self.moments[moment.name]) for moment in bill.moments if self.moments},
            upper_bound=bill.workers > 1 or bill.batch_size % bill.micro_batch > 0,
        )

    def needs(self) -> Table:
        """A line for each kept array: its bytes, who kept it, and which backward needs it."""
        lines = [["kept by", "array", "bytes", "needed by backward of"]]
        lines += [[k.layer, f"{k.dtype} {k.shape}", binary(k.nbytes), ", ".join(k.needed_by)] for k in self.kept]
        return Table(lines)

    def _table(self) -> Any:
        where = f", in {self.peak_at}" if self.peak_at else ""
        notes = [f"measured peak {{{self.peak}}}{where}; unattributed: {self.unattributed} bytes"]
        columns = [*KINDS, *(["buffers"] if self.total("buffers") else [])]
        rows = [replace(row, workspace=0) if row.workspace < SMALL else row for row in self.rows]
        return table("layer", columns, [(row.name, [getattr(row, k) for k in columns]) for row in rows], notes)

    def __str__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    __repr__ = __str__


def ledger(
    model: Sequential,
    params: Params,
    x: np.ndarray,
    labels: np.ndarray,
    *,
    optimizer: Any = None,
    loss: Any = losses.softmax_cross_entropy,
    micro_batch: int | None = None,
    workers: int = 1,
    seed: int = 0,
) -> Ledger:
    """Measure one step on the batch (x, labels). `params` are as they were before: the update is done on a copy.

    Runs the first micro-batch once, then the step twice (the first by layer and moment, the second for the peak).
    Allocates a copy of the parameters and the optimizer's slots beside the step.
    """
    params = tree.copy(params)
    slots = optimizer.init(params) if optimizer is not None else {}
    state = {name: slot for name, slot in slots.items() if not isinstance(slot, int)}
    persistent = tree.nbytes([params, state])
    batch = Batch(x, labels, np.arange(len(x)), micro_batch, seed)  # gathered by rows and so copied, as in `fit`

    def step(model: Sequential, loss: Any, update: Any) -> None:
        _, grads, _ = batch_gradients(model, params, batch, loss, workers)
        if update is not None:
            update(params, grads, slots)

    update = None if optimizer is None else optimizer.update
    watch = Watch()
    micro = _one_micro_batch(model, params, batch, loss, optimizer, watch)
    cold = watch.reset()
    moments = {}
    if workers == 1 or batch.parts == 1:
        with small_buffers(), traced_peak():
            start = tracemalloc.get_traced_memory()[0]
            step(Watched(model, watch), watch.of("loss", loss), update and watch.of("update", update))
        moments = {name: persistent + peak - start for name, peak in watch.peaks.items()}
    else:  # the calls of several workers overlap: no moments
        _one_micro_batch(model, params, batch, loss, optimizer, watch)
        step(model, loss, update)
    with traced_peak() as traced:
        step(model, loss, update)
    rows = [
        Row(
            name,
            params=tree.nbytes(tree.trainable(_at(params, name))),
            grads=micro.grads[name],
            saved=sum(array.nbytes for array in micro.kept if array.layer == name),
            # Another thread, or code that ran for the first time, can only add to it.
            workspace=max(min(cold[call], watch.workspace[call]) for call in (f"{name}, forward", f"{name}, backward")),
            slots=sum(tree.nbytes(_at(slot, name)) for slot in state.values()),
            buffers=tree.nbytes(tree.buffers(_at(params, name))),
        )
        for name, _, _ in model.flat(x.shape[1:])
    ]
    data = Row("input", data=micro.data)
    return Ledger((*rows, data), persistent + traced.peak, micro.unattributed, moments, micro.kept)


class _Micro(NamedTuple):
    """What a micro-batch showed, in bytes: its gradients by layer, its inputs, the arrays that it keeps; and the largest
    difference, at three quiet points, between the growth of NumPy's traced bytes and the arrays found by walking."""

    grads: dict[str, int]
    data: int
    kept: tuple[Kept, ...]
    unattributed: int


def _one_micro_batch(
    model: Sequential, params: Params, batch: Batch, loss: Any, optimizer: Any, watch: Watch
) -> _Micro:
    """Run the first micro-batch and an update, each layer through `watch`."""
    mine = not tracemalloc.is_tracing()
    if mine:
        tracemalloc.start()
    try:
        gc.collect()
        before = traced_array_bytes()
        watched = Watched(model, watch)
        off = []

        def quiet_point(found: Any) -> None:
            gc.collect()
            off.append(abs(traced_array_bytes() - before - tree.nbytes(found)))

        x, targets = batch.part(0, param_dtype(params))
        with one_blas_thread(), small_buffers():
            logits, saved = watched.forward(params, x, train=True, rng=batch.rng(0))
            quiet_point([x, targets, logits, saved])
            kept = _kept(model, saved, x)
            _, dlogits = watch.call("loss", loss, logits, targets, total=len(batch))
            del logits
            grads = watched.backward(params, saved, dlogits, overwrite_dy=True, release=True)[1]
            del dlogits
        quiet_point([x, targets, grads])
        if optimizer is not None:
            slots = optimizer.init(params)
            watch.call("update", optimizer.update, params, grads, slots)
            made = {name: slot for name, slot in slots.items() if not isinstance(slot, int)}
            quiet_point([x, targets, grads, made])
        by_layer = {name: tree.nbytes(_at(grads, name)) for name, _, _ in model.flat(batch.x.shape[1:])}
        return _Micro(by_layer, tree.nbytes(x), kept, max(off))
    finally:
        if mine:
            tracemalloc.stop()


def _kept(model: Sequential, saved: Any, x: np.ndarray) -> tuple[Kept, ...]:
    """Each array in `saved` once, however many layers keep it, in the order of forward."""
    first = dict.fromkeys(tree.owners(x), "input")
    arrays: dict[int, np.ndarray] = {}
    users: dict[int, list[str]] = {}
    for name, owners in _by_layer(model, saved):
        for key, array in owners.items():
            arrays[key] = array
            users.setdefault(key, []).insert(0, name)
            first.setdefault(key, name)
    return tuple(
        Kept(first[key], array.shape, str(array.dtype), array.nbytes, tuple(users[key]))
        for key, array in arrays.items()
    )


def _by_layer(model: Sequential, saved: Any, prefix: str = "") -> Iterator[tuple[str, dict[int, np.ndarray]]]:
    """(name, the arrays that it keeps, by id) of each layer. Inner names are joined by "/"."""
    for name, layer in model.named():
        if isinstance(layer, Sequential):
            yield from _by_layer(layer, saved[name], f"{prefix}{name}/")
        else:
            yield prefix + name, tree.owners(saved[name])


def _at(state: Any, name: str) -> Any:
    """The part of a tree under "a/b", None where there is none."""
    for key in name.split("/"):
        state = state.get(key) if isinstance(state, dict) else None
    return state
