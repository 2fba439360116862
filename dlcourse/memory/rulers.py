"""The two rulers: the bytes that arrays asked for (exact, by tracemalloc), and what the operating system saw.

Both have a peak that is set back to measure a block. The blocks that are open are kept in a list, and each notes the peak
that it has seen before the peak is set back: so blocks may stand inside one another.
"""

import ctypes
import gc
import os
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np
import psutil


@dataclass(eq=False)
class Traced:
    """Bytes traced in a block: at its peak, and still there at its end; both beyond what was there at its beginning.
    `notes`: by how much tracemalloc's own records grew. No ruler traces them, but the system sees them."""

    peak: int = 0
    kept: int = 0
    notes: int = 0
    _highest: int = 0  # seen before the peak was set back


@dataclass(eq=False)
class Grown:
    """What the system saw of a block. `before` and `after`: the resident sizes at its ends. `peak`: the largest between
    them, beyond `before`. `ruler` says what `peak` was read from; `lower_bound`, that it can have been more."""

    before: "Resident"
    after: "Resident"
    peak: int = 0
    ruler: str = ""
    lower_bound: bool = False
    _highest: int = 0


_lock = threading.RLock()
_traced: list[Traced] = []  # the open blocks
_grown: list[Grown] = []
_tracing = False  # whether tracing was started here, to be ended with the last block
_highest_resident = 0  # of this process, before VmHWM was last set back


@contextmanager
def traced_peak(*, collect: bool = True) -> Iterator[Traced]:
    """`with traced_peak() as traced: …` measures the block by the exact ruler; afterwards read traced.peak, traced.kept.

    It counts what Python and NumPy allocate in all threads, untouched zeros in full; it misses memory maps, shared
    memory and BLAS's own buffers. Blocks may stand inside one another, if what sets the peak back inside them does it by
    `reset_traced_peak`. An array that was refused (MemoryError) counts in the peak with NumPy up to 2.4.
    With `collect` garbage is collected first, so that what is freed in the block is the block's.
    """
    global _tracing
    if collect:
        gc.collect()
    traced = Traced()
    with _lock:
        if not tracemalloc.is_tracing():
            tracemalloc.start()
            _tracing = True
        reset_traced_peak()
        _traced.append(traced)
    notes = tracemalloc.get_tracemalloc_memory()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield traced
    finally:
        _forget_refused()
        now, peak = tracemalloc.get_traced_memory()
        traced.notes = tracemalloc.get_tracemalloc_memory() - notes
        traced.peak, traced.kept = max(peak, traced._highest) - before, now - before
        with _lock:
            _traced.remove(traced)
            if _tracing and not _traced:
                tracemalloc.stop()
                _tracing = False


def _forget_refused() -> None:
    """NumPy up to 2.4 reports an allocation that failed as well, at address 0: it would count as kept."""
    ctypes.pythonapi.PyTraceMalloc_Untrack(ctypes.c_uint(np.lib.tracemalloc_domain), ctypes.c_size_t(0))


def reset_traced_peak() -> None:
    """As `tracemalloc.reset_peak`, but the open `traced_peak` blocks keep the peak that they have seen."""
    with _lock:
        peak = tracemalloc.get_traced_memory()[1]
        for block in _traced:
            block._highest = max(block._highest, peak)
        tracemalloc.reset_peak()


def traced_array_bytes() -> int:
    """The bytes of all arrays that NumPy allocated since tracing began and that are alive now."""
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    return sum(trace.size for trace in tracemalloc.take_snapshot().filter_traces([arrays]).traces)


@dataclass(frozen=True)
class Resident:
    """Pages of this process in memory. `mapped` are pages of files (libraries, memory-mapped data): the system can drop
    them at any time, since the file holds them. Where the system does not tell them apart, `anonymous` is None."""

    total: int
    anonymous: int | None
    mapped: int | None


def resident() -> Resident:
    """The resident size now."""
    if sys.platform != "linux":
        return Resident(psutil.Process().memory_info().rss, None, None)
    status = proc_status()
    anonymous = status["RssAnon"] + status["RssShmem"]
    return Resident(status["VmRSS"], anonymous, status["RssFile"])


def peak_resident() -> int:
    """The largest resident size since the process began: VmHWM on Linux, what psutil and getrusage offer elsewhere."""
    return max(_highest_resident, _high_water())


@contextmanager
def resident_peak() -> Iterator[Grown]:
    """`with resident_peak() as grown: …` measures the block by the system's ruler. Blocks may stand inside one another.

    Linux: VmHWM, set back through /proc/self/clear_refs: exact to a few pages a processor. Elsewhere, or where that file
    cannot be written, the system keeps one peak for the whole life of the process. It is the block's where the block
    raised it; otherwise the resident size at the block's end is all there is, a lower bound.
    """
    now = resident()
    grown = Grown(now, now)
    with _lock:
        exact = _reset_high_water()
        before = _high_water()
        _grown.append(grown)
    try:
        yield grown
    finally:
        peak = _high_water()
        grown.after = resident()
        with _lock:
            _grown.remove(grown)
        grown.lower_bound = not exact and peak <= before
        if grown.lower_bound:
            peak = grown.after.total
        grown.ruler = "RSS at the end" if grown.lower_bound else _HIGH_WATER.get(sys.platform, "ru_maxrss")
        grown.peak = max(peak, grown._highest, grown.after.total) - grown.before.total


_HIGH_WATER = {"linux": "VmHWM", "win32": "peak_wset"}


def _high_water() -> int:
    """What the system calls the peak of this process, since it began or since it was set back."""
    if sys.platform == "linux":
        return proc_status()["VmHWM"]
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def _reset_high_water() -> bool:
    """Set VmHWM back to the present resident size; open blocks keep the peak that they have seen. False where the
    system cannot."""
    global _highest_resident
    if sys.platform != "linux":
        return False
    peak = _high_water()
    try:
        with open("/proc/self/clear_refs", "w") as file:
            file.write("5")
    except OSError:
        return False
    _highest_resident = max(_highest_resident, peak)
    for block in _grown:
        block._highest = max(block._highest, peak)
    return True


def _fresh_in_child() -> None:
    """A forked child has a peak of its own, none of its parent's blocks, and a lock that nobody holds."""
    global _lock, _highest_resident
    _lock, _highest_resident = threading.RLock(), 0
    _traced.clear()
    _grown.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_fresh_in_child)


class ResidentPeak:
    """`with ResidentPeak() as peak: …` samples the resident size in a thread. What lives shorter than `interval`
    seconds is missed: the sampled figures are lower bounds."""

    def __init__(self, interval: float = 0.02) -> None:
        self.interval, self.total = interval, 0
        self.anonymous: int | None = None
        self._end = threading.Event()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def _sample(self) -> None:
        now = resident()
        self.total = max(self.total, now.total)
        if now.anonymous is not None:
            self.anonymous = max(self.anonymous or 0, now.anonymous)

    def _run(self) -> None:
        while not self._end.wait(self.interval):
            self._sample()

    def __enter__(self) -> Self:
        self._sample()
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._end.set()
        self._thread.join()
        self._sample()


def proc_status() -> dict[str, int]:
    """The sizes in /proc/self/status, in bytes. Linux only."""
    with open("/proc/self/status") as file:
        lines = [line.split() for line in file]
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) == 3 and words[2] == "kB"}
