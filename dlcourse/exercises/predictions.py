"""Predict, run, explain: the reader's number, the formula's and the measured one, side by side."""

import html
import math
import numbers
from dataclasses import dataclass
from types import EllipsisType

from dlcourse.units import binary

# keyword of `predict` -> (the quantity, what one of it is in the quantity's own unit)
UNITS = {
    "bytes": ("bytes", 1),
    "kib": ("bytes", 2**10),
    "mib": ("bytes", 2**20),
    "gib": ("bytes", 2**30),
    "seconds": ("seconds", 1),
    "percent": ("percent", 1),
    "number": ("number", 1),
}

_predictions: dict[str, tuple[str, float]] = {}  # question -> (quantity, value); lives as long as the kernel


def predict(question: str, **amount: float | EllipsisType) -> None:
    """Commit a number before it is measured: `predict("00.array", mib=8)`. Prints one line.

    The unit is the keyword: bytes, kib, mib, gib, seconds, percent or number. `...` means none yet, and stops nobody; a
    second call replaces the first. Raises TypeError where there is not one known unit or the value is not a number, and
    ValueError where it is not finite.
    """
    if len(amount) != 1 or not amount.keys() <= UNITS.keys():
        given = ", ".join(amount) or "none"
        raise TypeError(f"predict({question!r}) takes one number by one of the names {', '.join(UNITS)}; got {given}")
    ((unit, value),) = amount.items()
    if value is ...:
        _predictions.pop(question, None)
        print(f"{question}: no prediction yet. Write a number in place of ... and run this cell again, or read on.")
        return
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise TypeError(f"predict({question!r}): {unit} must be a number, such as {unit}=12.5; got {value!r}")
    quantity, size = UNITS[unit]
    try:
        predicted = float(value) * size
    except OverflowError:  # an integer of more than 308 digits
        predicted = math.inf
    if not math.isfinite(predicted):
        raise ValueError(f"predict({question!r}): {unit} must be a finite number; got {str(value)[:40]}")
    _predictions[question] = quantity, predicted
    print(f"{question}: you predict {_written(quantity, predicted)}.")


@dataclass(frozen=True)
class Compared:
    """A table of three rows: what was predicted, what the formula gives, what was measured. A prediction that was not
    made is None."""

    quantity: str
    prediction: float | None
    formula: str
    by_formula: float
    measured: float

    @property
    def ratio(self) -> float:
        """Measured over the formula's number."""
        return _ratio(self.measured, self.by_formula)

    def _lines(self) -> list[list[str]]:
        lines = [["", self.quantity if self.quantity != "number" else "", "measured / this"]]
        for name, value in (("your prediction", self.prediction), (self.formula, self.by_formula)):
            if value is None:
                lines.append([name, "none yet", ""])
            else:
                lines.append([name, _written(self.quantity, value), f"{_ratio(self.measured, value):.2f}"])
        return [*lines, ["measured", _written(self.quantity, self.measured), ""]]

    def __str__(self) -> str:
        lines = self._lines()
        widths = [max(len(line[i]) for line in lines) for i in range(3)]
        return "\n".join(f"{a:<{widths[0]}}  {b:>{widths[1]}}  {c:>{widths[2]}}".rstrip() for a, b, c in lines)

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def line(cells: list[str], tag: str) -> str:
            left, *others = map(html.escape, cells)
            right = "".join(f'<{tag} style="text-align:right">{cell}</{tag}>' for cell in others)
            return f'<tr><{tag} style="text-align:left">{left}</{tag}>{right}</tr>'

        head, *body = self._lines()
        rows = "".join(line(cells, "td") for cells in body)
        return f"<table><thead>{line(head, 'th')}</thead><tbody>{rows}</tbody></table>"


def compare(question: str, *, formula: str, by_formula: float, measured: float, unit: str = "bytes") -> Compared:
    """The reader's prediction of `question` beside the number that `formula` gives and the measured one.

    `unit` is that of the two numbers, a keyword of `predict`. Raises ValueError where the prediction was made of another
    quantity, such as seconds.
    """
    quantity, size = UNITS[unit]
    predicted = _predictions.get(question)
    if predicted and predicted[0] != quantity:
        raise ValueError(f"{question} was predicted in {predicted[0]} and is compared in {quantity}")
    return Compared(quantity, predicted[1] if predicted else None, formula, by_formula * size, measured * size)


def _written(quantity: str, value: float) -> str:
    if quantity == "bytes":
        return binary(value)
    return f"{value:.3g}" + {"seconds": " s", "percent": " %", "number": ""}[quantity]


def _ratio(measured: float, value: float) -> float:
    return measured / value if value else (1.0 if measured == 0 else math.inf)
