"""The two rulers: the bytes that arrays asked for (exact, by tracemalloc), and what the operating system saw."""

import gc
import sys
import threading
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Self

import numpy as np
import psutil


@dataclass
class Traced:
    """Bytes traced in a block: at its peak, and still there at its end; both beyond what was there at its beginning."""

    peak: int = 0
    kept: int = 0


@contextmanager
def traced_peak() -> Iterator[Traced]:
    """`with traced_peak() as traced: …` measures the block by the exact ruler; afterwards read traced.peak, traced.kept.

    It counts what Python and NumPy allocate, untouched zeros in full; it misses memory maps, shared memory and BLAS's
    own buffers. May stand in another `traced_peak`, whose peak it then moves up to its own beginning.
    """
    mine = not tracemalloc.is_tracing()
    if mine:
        tracemalloc.start()
    traced = Traced()
    gc.collect()
    tracemalloc.reset_peak()
    before = tracemalloc.get_traced_memory()[0]
    try:
        yield traced
    finally:
        now, peak = tracemalloc.get_traced_memory()
        traced.peak, traced.kept = peak - before, now - before
        if mine:
            tracemalloc.stop()


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
    status = _status()
    anonymous = status["RssAnon"] + status["RssShmem"]
    return Resident(status["VmRSS"], anonymous, status["RssFile"])


def peak_resident() -> int:
    """The largest resident size since the process began: VmHWM on Linux, what psutil and getrusage offer elsewhere."""
    if sys.platform == "linux":
        return _status()["VmHWM"]
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


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


def _status() -> dict[str, int]:
    """The sizes in /proc/self/status, in bytes."""
    with open("/proc/self/status") as file:
        lines = [line.split() for line in file]
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) == 3 and words[2] == "kB"}
