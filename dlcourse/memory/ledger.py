"""The ledger: one real training step, measured by the exact ruler and accounted for to the last byte; and the bill beside
it."""

import gc
import tracemalloc
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from dlcourse import losses, tree
from dlcourse.gradients import Batch, at_least, batch_gradients, param_dtype
from dlcourse.layers.base import Params
from dlcourse.memory.bill import KINDS, Bill, Row, Rows, check_arguments
from dlcourse.memory.tables import Shown, Table
from dlcourse.memory.traced import reset_traced_peak, traced_array_bytes, traced_peak
from dlcourse.model import Sequential, plainly
from dlcourse.units import binary
from dlcourse.workers import one_blas_thread

PEAK = "peak of the step"
TOLERANCE_BYTES = 64 * 1024  # NumPy's buffers of 8,192 numbers, and Python's small objects, which the bill leaves out
TOLERANCE_SHARE = 0.02  # of the peak
SMALL_BYTES = 8 * 1024  # a workspace below it is Python's own objects, and left out of the table
BUFFER_NUMBERS = 256

Pair = tuple[int, int]  # predicted bytes, measured bytes


@dataclass(frozen=True, repr=False)
class Comparison(Shown):
    """Predicted beside measured: the bill and the ledger of the same step.

    pairs: {what: (predicted bytes, measured bytes)} of each kind that outlives a call, and of the peak of the step.
    layers: the same for {(layer, kind): …}, workspace too. moments: for {"conv2d_1, forward": …}, empty if several workers
        were at work. unattributed: array bytes that the measurement found no owner for.
    upper_bound: the predicted peak is one, since several workers need not stand at their highest moment at once, and a
        last micro-batch may be smaller.
    """

    pairs: dict[str, Pair]
    unattributed: int
    layers: dict[tuple[str, str], Pair] = field(default_factory=dict)
    moments: dict[str, Pair] = field(default_factory=dict)
    upper_bound: bool = False

    def ratio(self, what: str) -> float:
        """Measured over predicted."""
        predicted, measured = self.pairs[what]
        return measured / predicted if predicted else float(measured == 0)

    @property
    def off(self) -> dict[str, Pair]:
        """What does not agree, by name: "relu_1: saved". Kinds that outlive a call must agree to the byte, workspace within
        64 KiB, the peak and each moment within 2 % of the predicted peak or 64 KiB, whichever is more."""
        found = {
            f"{layer}: {kind}": (p, m)
            for (layer, kind), (p, m) in self.layers.items()
            if abs(p - m) > (TOLERANCE_BYTES if kind == "workspace" else 0)
        }
        tolerance = max(TOLERANCE_SHARE * self.pairs[PEAK][0], TOLERANCE_BYTES)
        for what, (p, m) in (self.moments | {PEAK: self.pairs[PEAK]}).items():
            if m > p + tolerance or (m < p - tolerance and not self.upper_bound):
                found[what] = (p, m)
        return found

    @property
    def agree(self) -> bool:
        """Whether everything agrees, and no byte is unattributed."""
        return not self.off and not self.unattributed

    def _table(self) -> Table:
        lines = [["", "predicted", "measured", "measured / predicted"]]
        for what, pair in self.pairs.items():
            lines.append([what, *map(binary, pair), f"{self.ratio(what):.4f}"])
        notes = [f"unattributed: {self.unattributed} bytes"]
        notes += [f"{name}: predicted {p:,} bytes, measured {m:,}: {m - p:+,}" for name, (p, m) in self.off.items()]
        if not self.off:
            places = "each layer and each moment" if self.moments else "each layer"
            notes.append(f"predicted and measured agree in {places}")
        return Table(lines, notes)


class SavedArray(NamedTuple):
    """An array that waits for backward. `layer`: which saved it first ("input": it is the data). `needed_by`: the layers
    whose backward gets it, in the order of backward; it is freed when the last of them is done. A view is shown as the
    array that owns the memory."""

    layer: str
    shape: tuple[int, ...]
    dtype: str
    nbytes: int
    needed_by: tuple[str, ...]


@dataclass(frozen=True, repr=False)
class Ledger(Rows):
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

    peak: int
    unattributed: int
    moments: dict[str, int]
    kept: tuple[SavedArray, ...]

    @property
    def peak_at(self) -> str:
        """The moment of the peak; "" if there are no moments."""
        return max(self.moments, key=self.moments.__getitem__, default="")

    def compare(self, bill: Bill) -> Comparison:
        """Predicted beside measured: each kind that outlives a call, and the peak; then each layer's, and each moment.
        Raises ValueError if the bill is that of other layers."""
        predicted, measured = ({row.name: row for row in rows} for rows in (bill.rows, self.rows))
        if predicted.keys() != measured.keys():
            others = sorted(predicted.keys() ^ measured.keys())
            raise ValueError(f"the bill is not one of this network: only one of the two has {', '.join(others)}")
        highest: dict[str, int] = {}  # a layer that is used twice has two moments of one name
        for moment in bill.moments:
            highest[moment.name] = max(highest.get(moment.name, 0), moment.total)
        return Comparison(
            {kind: (bill.total(kind), self.total(kind)) for kind in KINDS if kind != "workspace"}
            | {PEAK: (bill.peak, self.peak)},
            self.unattributed,
            {
                (name, kind): (getattr(row, kind), getattr(measured[name], kind))
                for name, row in predicted.items()
                for kind in (*KINDS, "buffers")
            },
            {name: (total, self.moments[name]) for name, total in highest.items() if name in self.moments},
            upper_bound=bill.workers > 1 or bill.batch_size % bill.micro_batch > 0,
        )

    def needs(self) -> Table:
        """A line for each array that waits for backward: its bytes, who saved it, and which backward needs it."""
        lines = [["kept by", "array", "bytes", "needed by backward of"]]
        lines += [[k.layer, f"{k.dtype} {k.shape}", binary(k.nbytes), ", ".join(k.needed_by)] for k in self.kept]
        return Table(lines)

    def _table(self) -> Table:
        place = f", in {self.peak_at}" if self.peak_at else ""
        note = f"measured peak {binary(self.peak)}{place}; unattributed: {self.unattributed} bytes"
        return self._rows_table([note], SMALL_BYTES)


@contextmanager
def small_buffers() -> Iterator[None]:
    """NumPy works through a cast or a broadcast in a buffer of 8,192 numbers, 32 KiB in float32, which belongs to no
    array. In the block it has 256, on this thread."""
    before = np.setbufsize(BUFFER_NUMBERS)
    try:
        yield
    finally:
        np.setbufsize(before)


@dataclass(eq=False)
class Watch:
    """A network's `call` (see `model.plainly`) that reads the exact ruler around each moment. By the name of the moment,
    the largest of its calls: `peaks`, the most bytes that were traced while it ran; `workspace`, what of these was gone
    when it returned. For one thread, while tracemalloc traces."""

    peaks: dict[str, int] = field(default_factory=dict)
    workspace: dict[str, int] = field(default_factory=dict)

    def call(self, moment: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """-> what `function` returns."""
        reset_traced_peak()
        result = plainly(moment, function, *arguments, **options)
        now, peak = tracemalloc.get_traced_memory()
        self.peaks[moment] = max(self.peaks.get(moment, 0), peak)
        self.workspace[moment] = max(self.workspace.get(moment, 0), peak - now)
        return result


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
    defer: Iterable[str] | None = None,
    factored: bool = False,
) -> Ledger:
    """Measure one step on the batch (x, labels), as `gradients` takes them. `params` are as they were before: the update
    is done on a copy.

    model: a Sequential, or anything with its `calls`, `forward`, `backward` and `statistics`.
    Runs the first micro-batch once, then the step twice by layer and moment and twice for the peak; the smaller counts.
    Allocates a copy of the parameters and the optimizer's slots beside the step. Raises TypeError for what is no model or
    optimizer, and what the step raises.
    """
    check_arguments(model, optimizer)
    workers = at_least(1, "workers", workers)
    params = tree.copy(params)
    slots = optimizer.init(params) if optimizer is not None else {}
    state = {name: slot for name, slot in slots.items() if not isinstance(slot, int)}
    persistent = tree.nbytes([params, state])
    batch = Batch(x, labels, np.arange(len(x)), micro_batch, seed)  # gathered by rows and so copied, as in `fit`

    def step(call: Callable[..., Any]) -> None:
        grads = batch_gradients(model, params, batch, loss, workers, defer=defer, factored=factored, call=call)[1]
        if optimizer is not None:
            call("update", optimizer.update, params, grads, slots)

    cold = Watch()
    grads, data, kept, unattributed = _one_micro_batch(model, params, batch, loss, optimizer, cold)
    # A moment's entry is there before it. Twice, as all that follows: Python's own tables grow now and then, by up to 1 MiB.
    watches = [Watch(dict.fromkeys(cold.peaks, 0), dict.fromkeys(cold.peaks, 0)) for _ in range(2)]
    runs = []
    for watch in watches:
        if workers == 1 or batch.micro_batches == 1:
            with small_buffers(), traced_peak():
                start = tracemalloc.get_traced_memory()[0]
                step(watch.call)
            runs.append({name: persistent + peak - start for name, peak in watch.peaks.items()})
        else:  # the calls of several workers overlap: no moments
            _one_micro_batch(model, params, batch, loss, optimizer, watch)
            runs.append({})
    moments = {name: min(run[name] for run in runs) for name in runs[0]}
    peaks = []
    for _ in range(3 if workers > 1 else 2):  # the first one warms the threads up
        with traced_peak() as traced:
            step(plainly)
        peaks.append(traced.peak)
    rows = [
        Row(
            name,
            params=tree.nbytes(tree.trainable(params.get(name))),
            grads=nbytes,
            saved=sum(array.nbytes for array in kept if array.layer == name),
            # The smallest of the runs: first-run imports and other threads only ever add bytes.
            workspace=max(
                min(seen.workspace.get(f"{name}, {way}", 0) for seen in (cold, *watches))
                for way in ("forward", "backward")
            ),
            slots=sum(tree.nbytes(slot.get(name)) for slot in state.values()),
            buffers=tree.nbytes(tree.buffers(params.get(name))),
        )
        for name, nbytes in grads.items()
    ]
    return Ledger((*rows, Row("input", data=data)), persistent + min(peaks), unattributed, moments, kept)


def _one_micro_batch(
    model: Sequential, params: Params, batch: Batch, loss: Any, optimizer: Any, watch: Watch
) -> tuple[dict[str, int], int, tuple[SavedArray, ...], int]:
    """Run the first micro-batch and an update, each layer through `watch`. -> the bytes of the gradients by layer and of the
    inputs; the saved arrays; and the largest difference, at three quiet points, between the growth of NumPy's traced bytes
    and the arrays found by walking."""
    off = []

    def quiet_point(found: Any) -> None:
        gc.collect()
        expected = sum(max(array.nbytes, 1) for array in tree.owners(found).values())  # an array of none has one byte
        off.append(abs(traced_array_bytes() - before - expected))

    with traced_peak():
        before = traced_array_bytes()
        x, targets = batch.micro_batch(0, param_dtype(params))
        with one_blas_thread(), small_buffers():
            logits, saved = model.forward(params, x, train=True, rng=batch.rng(0), call=watch.call)
            quiet_point([x, targets, logits, saved])
            names, kept = list(saved or {}), _saved_arrays(saved or {}, x)
            _, dlogits = watch.call("loss", loss, logits, targets, total=batch.samples)
            del logits
            grads = model.backward(params, saved, dlogits, overwrite_dy=True, release=True, call=watch.call)[1]
            del dlogits
        quiet_point([x, targets, grads])
        if optimizer is not None:
            slots = optimizer.init(params)
            watch.call("update", optimizer.update, params, grads, slots)
            made = {name: slot for name, slot in slots.items() if not isinstance(slot, int)}
            quiet_point([x, targets, grads, made])
        return {name: tree.nbytes(grads.get(name)) for name in names}, tree.nbytes(x), kept, max(off)


def _saved_arrays(saved: Params, x: np.ndarray) -> tuple[SavedArray, ...]:
    """Each array in `saved` once, however many layers keep it, in the order of forward."""
    inputs = tree.owners(x)
    found: dict[int, tuple[np.ndarray, list[str]]] = {}
    for name, own_saved in saved.items():
        for key, array in tree.owners(own_saved).items():
            found.setdefault(key, (array, []))[1].insert(0, name)
    return tuple(
        SavedArray("input" if key in inputs else users[-1], array.shape, str(array.dtype), array.nbytes, tuple(users))
        for key, (array, users) in found.items()
    )
