"""The memory toolkit: predict the bytes of a training step (`bill`), and measure them (`ledger`)."""

from dlcourse.memory.admit import Admission, admit
from dlcourse.memory.allocator import Allocator, allocator, trim
from dlcourse.memory.assertion import assert_peak
from dlcourse.memory.bill import KINDS, Bill, Moment, Row, bill
from dlcourse.memory.isolate import Isolated, IsolatedError, isolated
from dlcourse.memory.leaks import Leak, Leaks, find_leak
from dlcourse.memory.ledger import Ledger, ledger
from dlcourse.memory.meter import Reading, meter
from dlcourse.memory.monitor import Monitor
from dlcourse.memory.rulers import (
    Resident,
    ResidentPeak,
    peak_resident,
    reset_traced_peak,
    resident,
    traced_peak,
)
from dlcourse.memory.sample import Sample
from dlcourse.memory.wall import wall

__all__ = [
    "KINDS",
    "Admission",
    "Allocator",
    "Bill",
    "Isolated",
    "IsolatedError",
    "Leak",
    "Leaks",
    "Ledger",
    "Moment",
    "Monitor",
    "Reading",
    "Resident",
    "ResidentPeak",
    "Row",
    "Sample",
    "admit",
    "allocator",
    "assert_peak",
    "bill",
    "find_leak",
    "isolated",
    "ledger",
    "meter",
    "peak_resident",
    "reset_traced_peak",
    "resident",
    "traced_peak",
    "trim",
    "wall",
]
