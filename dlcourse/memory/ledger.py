"""The ledger: one real training step, measured by the exact ruler and accounted for to the last byte."""

import gc
import tracemalloc
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse import losses, tree
from dlcourse.layers.base import Params
from dlcourse.memory.bill import KINDS, Bill, Row
from dlcourse.memory.rulers import traced_array_bytes, traced_peak
from dlcourse.memory.table import table
from dlcourse.model import Sequential
from dlcourse.train import Batch, batch_gradients, param_dtype
from dlcourse.units import binary
from dlcourse.workers import one_blas_thread


@dataclass(frozen=True)
class Ledger:
    """Measured bytes of one step. `rows` are those of one micro-batch; `peak` is that of the whole step, parameters and
    slots included, the data set not. `unattributed`: array bytes that no walk of the saved tensors, gradients, slots
    and outputs found, the largest of three quiet points (after forward, after backward, after the update)."""

    rows: tuple[Row, ...]
    peak: int
    unattributed: int

    def total(self, kind: str) -> int:
        """One column's sum over the layers."""
        return sum(getattr(row, kind) for row in self.rows)

    def compare(self, bill: Bill) -> "Comparison":
        """Predicted beside measured: each kind that outlives a call, and the peak."""
        kinds = [kind for kind in KINDS if kind != "workspace"]
        pairs = {kind: (bill.total(kind), self.total(kind)) for kind in kinds}
        return Comparison(pairs | {"peak of the step": (bill.peak, self.peak)}, self.unattributed)

    def _table(self) -> Any:
        kinds = [kind for kind in KINDS if kind != "workspace"]
        notes = [f"measured peak {{{self.peak}}}; unattributed: {self.unattributed} bytes"]
        return table("layer", kinds, [(row.name, [getattr(row, k) for k in kinds]) for row in self.rows], notes)

    def __str__(self) -> str:
        return self._table().text()

    def _repr_html_(self) -> str:
        return self._table().html()

    __repr__ = __str__


@dataclass(frozen=True)
class Comparison:
    """{what: (predicted bytes, measured bytes)}, and the unattributed bytes of the measurement."""

    pairs: dict[str, tuple[int, int]]
    unattributed: int

    def ratio(self, what: str) -> float:
        """Measured over predicted."""
        predicted, measured = self.pairs[what]
        return measured / predicted if predicted else float(measured == 0)

    def _lines(self) -> list[list[str]]:
        return [[what, binary(p), binary(m), f"{self.ratio(what):.4f}"] for what, (p, m) in self.pairs.items()]

    def __str__(self) -> str:
        lines = [["", "predicted", "measured", "ratio"], *self._lines()]
        widths = [max(len(line[i]) for line in lines) for i in range(4)]
        text = [
            "  ".join([x[0].ljust(widths[0]), *(c.rjust(w) for c, w in zip(x[1:], widths[1:], strict=True))])
            for x in lines
        ]
        return "\n".join([*text, f"unattributed: {self.unattributed} bytes"])

    def _repr_html_(self) -> str:
        def line(cells: list[str], tag: str) -> str:
            return "<tr>" + "".join(f'<{tag} style="text-align:right">{cell}</{tag}>' for cell in cells) + "</tr>"

        head = line(["", "predicted", "measured", "measured / predicted"], "th")
        body = "".join(line(cells, "td") for cells in self._lines())
        return (
            f"<table><thead>{head}</thead><tbody>{body}</tbody></table><p>unattributed: {self.unattributed} bytes</p>"
        )

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

    Runs the step twice (the first warms up), and its first micro-batch once more by the layer. Allocates a copy of the
    parameters and the optimizer's slots beside the step.
    """
    params = tree.copy(params)
    slots = optimizer.init(params) if optimizer is not None else {}
    batch = Batch(x, labels, np.arange(len(x)), micro_batch, seed)  # gathered by rows and so copied, as in `fit`

    def step() -> None:
        _, grads, _ = batch_gradients(model, params, batch, loss, workers)
        if optimizer is not None:
            optimizer.update(params, grads, slots)

    step()
    with traced_peak() as traced:
        step()
    state = {name: slot for name, slot in slots.items() if not isinstance(slot, int)}
    persistent = tree.nbytes([params, state])
    rows, unattributed = _one_micro_batch(model, params, state, batch, loss, optimizer)
    return Ledger(rows, persistent + traced.peak, unattributed)


def _one_micro_batch(
    model: Sequential, params: Params, state: Params, batch: Batch, loss: Any, optimizer: Any
) -> tuple[tuple[Row, ...], int]:
    """The rows of the first micro-batch, and the largest difference, at three quiet points, between the growth of
    NumPy's traced bytes and the bytes of the arrays found by walking."""
    mine = not tracemalloc.is_tracing()
    if mine:
        tracemalloc.start()
    try:
        gc.collect()
        before = traced_array_bytes()
        off = []

        def quiet_point(found: Any) -> None:
            gc.collect()
            off.append(abs(traced_array_bytes() - before - tree.nbytes(found)))

        x, targets = batch.part(0, param_dtype(params))
        with one_blas_thread():
            logits, saved = model.forward(params, x, train=True, rng=batch.rng(0))
            gc.collect()
            quiet_point([x, targets, logits, saved])
            data = tree.nbytes(x)
            kept = _by_layer(model, saved, already=set(tree.owners(x)))
            _, dlogits = loss(logits, targets, total=len(batch))
            del logits
            grads = model.backward(params, saved, dlogits, dy_is_mine=True, release=True)[1]
            del dlogits
        quiet_point([x, targets, grads])
        if optimizer is not None:
            slots = optimizer.init(params)
            optimizer.update(params, grads, slots)
            made = {name: slot for name, slot in slots.items() if not isinstance(slot, int)}
            quiet_point([x, targets, grads, made])
        names = [name for name, _, _ in model.flat(batch.x.shape[1:])]
        rows = [
            Row(
                name,
                params=tree.nbytes(tree.trainable(_at(params, name))),
                grads=tree.nbytes(_at(grads, name)),
                saved=kept.get(name, 0),
                slots=sum(tree.nbytes(_at(slot, name)) for slot in state.values()),
                buffers=tree.nbytes(tree.buffers(_at(params, name))),
            )
            for name in names
        ]
        return (*rows, Row("input", data=data)), max(off)
    finally:
        if mine:
            tracemalloc.stop()


def _by_layer(model: Sequential, saved: Any, already: set[int], prefix: str = "") -> dict[str, int]:
    """Bytes that each layer keeps, an array that several keep counted for the first. Inner names are joined by "/"."""
    found: dict[str, int] = {}
    for name, layer in model.named():
        if isinstance(layer, Sequential):
            found |= _by_layer(layer, saved[name], already, f"{prefix}{name}/")
            continue
        own = {key: array for key, array in tree.owners(saved[name]).items() if key not in already}
        already.update(own)
        found[prefix + name] = sum(array.nbytes for array in own.values())
    return found


def _at(state: Any, name: str) -> Any:
    """The part of a tree under "a/b", None where there is none."""
    for key in name.split("/"):
        state = state.get(key) if isinstance(state, dict) else None
    return state
