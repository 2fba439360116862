"""The memory toolkit: predict the bytes of a training step (`bill`), and measure them (`ledger`)."""

from dlcourse.memory.admit import Admission, admit
from dlcourse.memory.bill import KINDS, Bill, Moment, Row, bill
from dlcourse.memory.buffers import Arena, BufferPlan, plan_buffers
from dlcourse.memory.isolate import Isolated, IsolatedError, isolated, wall
from dlcourse.memory.leaks import Leak, Leaks, find_leak
from dlcourse.memory.ledger import Ledger, ledger
from dlcourse.memory.meter import Reading, meter
from dlcourse.memory.monitor import Monitor, Sample
from dlcourse.memory.system import (
    Allocator,
    Available,
    Resident,
    Sizes,
    allocator,
    available,
    measure_resident,
    peak_since_start,
    process_sizes,
    resident_now,
    trim,
)
from dlcourse.memory.terminal import Log, NotSeen, View, read_log, watch
from dlcourse.memory.traced import TracedPeak, assert_peak, reset_traced_peak, traced_peak

# fmt: off
__all__ = [
    "KINDS", "Admission", "Allocator", "Arena", "Available", "Bill", "BufferPlan", "Isolated", "IsolatedError", "Leak", "Leaks", "Ledger",
    "Log", "Moment", "Monitor", "NotSeen", "Reading", "Resident", "Row", "Sample", "Sizes", "TracedPeak", "View",
    "admit", "allocator", "assert_peak", "available", "bill", "find_leak", "isolated", "ledger", "measure_resident",
    "meter", "peak_since_start", "plan_buffers", "process_sizes", "read_log", "reset_traced_peak", "resident_now", "traced_peak",
    "trim", "wall", "watch",
]
