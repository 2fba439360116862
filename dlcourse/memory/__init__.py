"""The memory toolkit: predict the bytes of a training step (`bill`), and measure them (`ledger`)."""

from dlcourse.memory.bill import KINDS, Bill, Moment, Row, bill
from dlcourse.memory.ledger import Ledger, ledger
from dlcourse.memory.rulers import (
    Resident,
    ResidentPeak,
    peak_resident,
    reset_traced_peak,
    resident,
    traced_peak,
)

__all__ = [
    "KINDS",
    "Bill",
    "Ledger",
    "Moment",
    "Resident",
    "ResidentPeak",
    "Row",
    "bill",
    "ledger",
    "peak_resident",
    "reset_traced_peak",
    "resident",
    "traced_peak",
]
