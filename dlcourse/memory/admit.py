"""A gate: does a model's training step fit a budget of bytes? Predicted first, and measured only where that fits."""

import functools
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse import losses, tree
from dlcourse.inputs import as_input
from dlcourse.layers.base import Shape
from dlcourse.memory.bill import KINDS, Bill, bill
from dlcourse.memory.isolate import IsolatedError, isolated, may_start
from dlcourse.memory.ledger import ledger
from dlcourse.memory.traced import traced_peak
from dlcourse.model import Sequential
from dlcourse.units import binary, parse
from dlcourse.workers import in_order, one_blas_thread


@dataclass(frozen=True)
class Admission:
    """Whether a model fits. `measured` is None where the prediction refused it already, or where the run did not come to
    its end: then `problem` says why. All in bytes of arrays, parameters and slots included, the data set not."""

    budget: int
    bill: Bill
    measured: int | None = None
    problem: str = ""

    @property
    def ok(self) -> bool:
        """Admitted: the predicted peak and the measured one are within the budget."""
        return self.measured is not None and max(self.measured, self.bill.peak) <= self.budget

    def __bool__(self) -> bool:
        return self.ok

    @property
    def over(self) -> int:
        """By how many bytes the higher of the two peaks is over the budget; negative: what is to spare."""
        return max(self.measured or 0, self.bill.peak) - self.budget

    @property
    def largest(self) -> tuple[str, str, int]:
        """(layer, kind, bytes): the largest entry of the bill."""
        sizes = [(getattr(row, kind), row.name, kind) for row in self.bill.rows for kind in KINDS]
        size, name, kind = max(sizes, key=lambda entry: entry[0])
        return name, kind, size

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        layer, kind, size = self.largest
        return {
            "admitted": self.ok,
            "budget": self.budget,
            "predicted": self.bill.peak,
            "predicted_at": self.bill.peak_at,
            "measured": self.measured,
            "over": self.over,
            "largest": {"layer": layer, "kind": kind, "bytes": size},
            "problem": self.problem,
        }

    def __str__(self) -> str:
        layer, kind, size = self.largest
        if self.ok:
            verdict = f"admitted: {binary(-self.over)} of {binary(self.budget)} to spare"
        elif self.problem:
            verdict = f"refused: {self.problem}"
        else:
            how = "measured" if self.measured is not None else "predicted, nothing was run"
            verdict = f"refused: {binary(self.over)} over the budget of {binary(self.budget)} ({how})"
        bound = ", an upper bound with several workers" if self.bill.workers > 1 else ""
        lines = [verdict, f"predicted peak {binary(self.bill.peak)}, in {self.bill.peak_at}{bound}"]
        if self.measured is not None:
            lines.append(f"measured peak  {binary(self.measured)}")
        return "\n".join([*lines, f"largest: {kind} of {layer}, {binary(size)}"])

    __repr__ = __str__


def admit(
    model: Sequential,
    in_shape: Shape,
    optimizer: Any = None,
    *,
    budget: int | str,
    batch_size: int = 100,
    micro_batch: int | None = None,
    workers: int = 1,
    inference: bool = False,
    loss: Any = losses.softmax_cross_entropy,
    dtype: Any = "float32",
) -> Admission:
    """Decide whether a step of `model` on inputs of `in_shape` fits `budget`, bytes or a text such as "200 MiB".

    Where the predicted peak is over the budget it is refused at once: nothing is run, nothing large is allocated. Else a
    step on random images runs in a process of its own, and its peak by the exact ruler must be within the budget too.
    With `inference` the step is a forward pass that keeps nothing, and optimizer and loss do not count.

    Raises ValueError for a budget that is no size and for shapes that do not fit, which names the layer; what a layer
    raises in the measured run comes out as it is.
    """
    limit = parse(budget)
    cut: dict[str, Any] = {"batch_size": batch_size, "micro_batch": micro_batch, "workers": workers}
    predicted = bill(model, in_shape, optimizer=optimizer, loss=loss, dtype=dtype, inference=inference, **cut)
    if predicted.peak > limit:
        return Admission(limit, predicted)
    may_start()
    try:
        ran = isolated(
            _measure, model, tuple(in_shape), None if inference else optimizer, loss, dtype, inference, **cut
        )
    except (MemoryError, IsolatedError) as error:
        return Admission(limit, predicted, problem=f"the measured run did not come to its end: {error}")
    return Admission(limit, predicted, ran.value)


def _measure(
    model: Sequential,
    in_shape: Shape,
    optimizer: Any,
    loss: Any,
    dtype: Any,
    inference: bool,
    batch_size: int,
    micro_batch: int | None,
    workers: int,
) -> int:
    """The traced peak of one step on random images, parameters and slots included."""
    rng = np.random.default_rng(0)
    params = model.init(in_shape, rng, np.dtype(dtype))
    x = rng.integers(0, 256, (batch_size, *in_shape), dtype=np.uint8)
    if not inference:
        targets = _targets(loss, rng, batch_size, model.out_shape(in_shape))
        cut: dict[str, Any] = {"micro_batch": micro_batch, "workers": workers}
        return ledger(model, params, x, targets, optimizer=optimizer, loss=loss, **cut).peak
    size = min(micro_batch or batch_size, batch_size)
    parts = -(-batch_size // size)

    def one(index: int) -> None:
        inputs = as_input(x[index * size : (index + 1) * size], dtype)
        model.forward(params, inputs)

    def step() -> None:
        for _ in in_order(one, parts, workers):
            pass

    with one_blas_thread():
        step()
        with traced_peak() as traced:
            step()
    return tree.nbytes(params) + traced.peak


def _targets(loss: Any, rng: np.random.Generator, samples: int, out_shape: Shape) -> np.ndarray:
    """Classes for cross-entropy, zeros and ones for every other loss."""
    while isinstance(loss, functools.partial):
        loss = loss.func
    if loss is losses.softmax_cross_entropy:
        return rng.integers(0, out_shape[-1], (samples, *out_shape[:-1]))
    return rng.integers(0, 2, (samples, *out_shape)).astype(np.float32)
