"""Predict, run, explain: the reader's number, the formula's and the measured one, side by side."""

import math
import numbers
from dataclasses import dataclass
from types import EllipsisType

from dlcourse.memory.tables import Shown, Table
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
LARGEST = {"bytes": 2**40, "seconds": 1e6, "percent": 1e6, "number": 1e15}  # more is a slip of the unit
SLIPS = {1024**power: word for power, word in ((1, "KiB"), (2, "MiB"), (3, "GiB"))}
QUESTIONS = {
    "00": "array convolution step accuracy",
    "01": "view temporary names blocks column divide",
    "02": "half peak seen after_del copy",
    "03": "forward outer saved backward equal",
    "04": "start logits accuracy bits chain inplace",
    "05": "columns kept blocks backward",
    "06": "index bits centre mask replay",
    "07": "means forward saved layernorm",
    "08": "object saved letgo factor draw objects set",
    "09": "limit slots update",
    "10": "float64 mapped batch mean",
    "11": "floats saved peak micro accuracy",
    "12": "float64 fixed all ratio",
    "13": "wall two factor",
    "14": "history columns error",
    "16": "live view two",
}

_predictions: dict[str, tuple[str, float]] = {}  # question -> (quantity, value); lives as long as the kernel


def predict(question: str, *numbers_alone: object, **amount: float | EllipsisType) -> None:
    """Commit a number before it is measured: `predict("00.array", mib=8)`. Prints one line.

    The unit is the keyword: bytes, kib, mib, gib, seconds, percent or number. `...` means none yet, and stops nobody; a
    second call replaces the first. A number that cannot be meant (negative, more bytes than any machine here has) is asked
    back and not kept. Raises TypeError unless there is one known unit and a number, ValueError if it is not finite, or if
    no notebook asks this question.
    """
    if numbers_alone:
        raise TypeError(
            f"predict({question!r}) takes its number by its unit: write mib={numbers_alone[0]!r}, not the number alone"
        )
    if len(amount) != 1 or not amount.keys() <= UNITS.keys():
        given = ", ".join(amount) or "none"
        raise TypeError(f"predict({question!r}) takes one number by one of the names {', '.join(UNITS)}; got {given}")
    notebook, _, name = str(question).partition(".")
    if name not in (known := QUESTIONS.get(notebook, "").split()):
        asked = f"notebook {notebook} asks {', '.join(known)}" if known else 'a question is named like "00.array"'
        raise ValueError(f"no notebook asks {question!r}: {asked}")
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
    if predicted < 0 or predicted > LARGEST[quantity] or (quantity == "bytes" and 0 < predicted < 1):
        what = "less than a byte" if 0 < predicted < 1 else "less than nothing" if predicted < 0 else "very much"
        other = (
            f" Is another unit meant, such as {'mib' if unit == 'bytes' else 'bytes'}?" if quantity == "bytes" else ""
        )
        print(f"{question}: {unit}={float(value):.6g} would be {what}, and is not kept.{other}")
        return
    _predictions[question] = quantity, predicted
    print(f"{question}: you predict {_written(quantity, predicted)}.")


@dataclass(frozen=True, repr=False)
class Compared(Shown):
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

    def _table(self) -> Table:
        lines = [["", self.quantity if self.quantity != "number" else "", "measured / this"]]
        for name, value in (("your prediction", self.prediction), (self.formula, self.by_formula)):
            if value is None:
                lines.append([name, "none yet", ""])
            else:
                lines.append([name, _written(self.quantity, value), f"{_ratio(self.measured, value):.2f}"])
        lines.append(["measured", _written(self.quantity, self.measured), ""])
        off = _ratio(self.prediction, self.measured) if self.prediction and self.quantity == "bytes" else 1.0
        slips = [
            f"Your number is {'larger' if off > 1 else 'smaller'} by the factor {size:,}: bytes taken for {word}?"
            for size, word in SLIPS.items()
            if abs(max(off, 1 / off) / size - 1) < 0.03
        ]
        return Table(lines, slips, rule=False)


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
