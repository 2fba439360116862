"""Predicted beside measured: the bill and the ledger of the same step, by kind, by layer and by moment."""

from dataclasses import dataclass, field

from dlcourse.memory import grid
from dlcourse.units import binary

ROOM = 64 * 1024  # bytes: NumPy's buffers of 8,192 numbers, and Python's own small objects, which the bill leaves out
SHARE = 0.02  # of the peak

Pair = tuple[int, int]  # predicted bytes, measured bytes


@dataclass(frozen=True)
class Comparison:
    """pairs: {what: (predicted bytes, measured bytes)}, a kind that outlives a call or the peak of the step.
    layers: the same for {(layer, kind): …}, workspace too. moments: the same for {"conv2d_1, forward": …}, empty where
    several workers were at work. unattributed: the bytes that the measurement found nobody for.
    `upper_bound`: the predicted peak is one, since several workers need not stand at their highest moment at once, and a
    last micro-batch may be smaller."""

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
            if abs(p - m) > (ROOM if kind == "workspace" else 0)
        }
        for what, (p, m) in (self.moments | {PEAK: self.pairs[PEAK]}).items():
            room = max(SHARE * self.pairs[PEAK][0], ROOM)
            if m > p + room or (m < p - room and not self.upper_bound):
                found[what] = (p, m)
        return found

    @property
    def agree(self) -> bool:
        """Whether everything agrees, and no byte is unattributed."""
        return not self.off and not self.unattributed

    def _parts(self) -> tuple[list[list[str]], list[str]]:
        def row(what: str) -> list[str]:
            predicted, measured = self.pairs[what]
            return [what, binary(predicted), binary(measured), f"{self.ratio(what):.4f}"]

        notes = [f"unattributed: {self.unattributed} bytes"]
        notes += [f"{name}: predicted {p:,} bytes, measured {m:,}: {m - p:+,}" for name, (p, m) in self.off.items()]
        if not self.off:
            where = "each layer and each moment" if self.moments else "each layer"
            notes.append(f"predicted and measured agree in {where}")
        return [["", "predicted", "measured", "measured / predicted"], *map(row, self.pairs)], notes

    def __str__(self) -> str:
        return grid.text(*self._parts())

    def _repr_html_(self) -> str:
        return grid.as_html(*self._parts())

    __repr__ = __str__


PEAK = "peak of the step"
