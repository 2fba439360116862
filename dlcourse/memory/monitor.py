"""Watch memory while something runs: this process and its children, sampled in a thread."""

import os
import sys
import threading
import time
from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import Any, Literal, Self, TextIO

import numpy as np

from dlcourse.memory.sample import Processes, Sample, Source, owners
from dlcourse.memory.tables import Table
from dlcourse.units import binary

MOST = 4_000  # samples that are kept; then every other one is let go, and a peak stays where peaks are kept
SYSTEM = ("RSS", "USS", "PSS", "allocated", "used")  # in the order of the table
SHARE = (
    0.005  # of one core's time, at most, is spent on samples, and as much on USS and PSS: what costs more comes later
)


class Monitor:
    """Samples each `interval` seconds, from `start()` or the head of a `with` block on:

        with Monitor(trees={"params": params, "history": lambda: history}) as monitor:
            fit(…, callbacks=[monitor])            # adds params and slots as fit has them
        monitor.table()

    trees: {kind: a tree of arrays, or a function that gives one}; an array that several have counts for the first.
    show: "text" writes a line that is renewed in place in a terminal or notebook (elsewhere the last one, at the end).
    name: a monitor that starts ends the running one of the same name, so a cell can be run again.
    on_sample, on_end: called with the monitor after each sample, in its thread, and when it has ended.

    Ends with the `with` block, also by an error, and with the process. What it cannot see stands in `cannot_see`.
    """

    def __init__(
        self,
        interval: float = 0.5,
        trees: Mapping[str, Source] | None = None,
        *,
        show: Literal["text"] | None = None,
        name: str = "monitor",
        on_sample: Callable[["Monitor"], Any] | None = None,
        on_end: Callable[["Monitor"], Any] | None = None,
        file: TextIO | None = None,
    ) -> None:
        if not (isinstance(interval, int | float) and interval > 0):
            raise ValueError(f"interval must be a number of seconds, more than 0, got {interval!r}")
        if show not in (None, "text"):
            raise ValueError(f'show must be "text" or None, got {show!r}')
        self.interval, self.trees, self.show, self.name = interval, dict(trees or {}), show, name
        self.on_sample, self.on_end, self._file = on_sample, on_end, file
        self.samples: list[Sample] = []
        self.peaks: dict[str, int] = {}  # by kind, and "RSS", "USS", "PSS", "allocated", "used": sampled, lower bounds
        self.problem = ""  # the last error of a function in `trees` or of `on_sample`
        self.cost = 0.0  # seconds of processor time that the samples took
        self._of_fit: dict[str, Source] = {}
        self._thread: threading.Thread | None = None
        self._end = threading.Event()
        self._width = 0

    @property
    def running(self) -> bool:
        return self._thread is not None

    @property
    def apart(self) -> float:
        """The longest time between two samples so far, in seconds: at least the interval."""
        times = [sample.seconds for sample in self.samples]
        return max([self.interval, *(after - before for before, after in pairwise(times))])

    @property
    def cannot_see(self) -> str:
        """What the figures leave out, in words."""
        return (
            f"sampled each {self.apart:.2g} s or less: what lives shorter can be missed, so each peak is a lower bound; "
            "a kind is its registered arrays and nothing else; pages never written are not in RSS, USS, PSS"
        )

    def start(self) -> Self:
        """Begin anew, and end a running monitor of this name."""
        with _lock:
            older = _running.get(self.name)
            _running[self.name] = self
        if older is not None:
            older.stop()
        self.samples, self.peaks, self.problem, self.cost, self._width = [], {}, "", 0.0, 0
        self._end = threading.Event()
        self._began = self._next_whole = time.perf_counter()
        self._processes = Processes()
        self._look()
        self._thread = threading.Thread(target=self._run, args=(self._end,), name=f"{self.name} of memory", daemon=True)
        self._thread.start()
        return self

    def stop(self) -> None:
        """Take a last sample and end. The figures stay, the trees that `fit` gave are let go."""
        thread, self._thread = self._thread, None
        if thread is None:
            return
        self._end.set()
        if thread is not threading.current_thread():
            thread.join(5)
        self._look(whole=True)
        self._of_fit = {}
        self._write(last=True)
        with _lock:
            if _running.get(self.name) is self:
                del _running[self.name]
        if self.on_end is not None:
            self.on_end(self)

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, step: Any) -> None:
        """What `fit` calls after each step: its parameters and slots are registered."""
        if not self._of_fit and self.running:
            self._of_fit = {"params": step.params, "slots": step.slots}

    def table(self, rows: int = 12) -> Table:
        """At most `rows` of the samples, the first and the last among them, and the peaks of all."""
        if not self.samples:
            return Table([["seconds"]], ["no sample yet: start() begins"])
        places = np.unique(
            np.linspace(0, len(self.samples) - 1, min(max(rows, 2), len(self.samples))).round().astype(int)
        )
        kinds = list(dict.fromkeys(kind for sample in self.samples for kind in sample.kinds))
        known = [name for name in SYSTEM if name in self.peaks]
        lines = [["seconds", *kinds, *known, "usage"]]
        for sample in (self.samples[i] for i in places):
            sizes = [sample.kinds.get(kind) for kind in kinds] + [getattr(sample, name.lower()) for name in known]
            lines.append([f"{sample.seconds:.1f}", *map(_size, sizes), _usage(sample)])
        lines.append(["peak", *(_size(self.peaks.get(name)) for name in (*kinds, *known)), ""])
        missing = [name for name in SYSTEM if name not in self.peaks]
        notes = [self.cannot_see, *([f"not available here: {', '.join(missing)}"] if missing else [])]
        return Table(lines, [*notes, *([f"problem: {self.problem}"] if self.problem else [])])

    def line(self) -> str:
        """The last sample as one line."""
        last = self.samples[-1]
        kinds = "".join(f"{kind} {binary(size)}  " for kind, size in last.kinds.items())
        peak = f"RSS {binary(last.rss)} (peak {binary(self.peaks['RSS'])}, sampled, a lower bound)"
        return f"{last.seconds:.1f} s  {kinds}{peak}  usage {_usage(last)}"

    def _run(self, end: threading.Event) -> None:
        wait = self.interval
        while not end.wait(wait):
            before = time.thread_time()
            apart = self._look()
            self._write()
            if self.on_sample is not None:
                try:
                    self.on_sample(self)
                except Exception as error:  # noqa: BLE001  told in the table: nobody could catch it here
                    self.problem = f"on_sample: {type(error).__name__}: {error}"
            cost = time.thread_time() - before
            self.cost += cost
            wait = max(self.interval, (cost - apart) / SHARE)

    def _look(self, *, whole: bool = False) -> float:
        """Take a sample -> the processor time of what was asked besides each sample's own figures."""
        now, before = time.perf_counter(), time.thread_time()
        whole = whole or now >= self._next_whole
        sample = self._processes.look(self._kinds(), now - self._began, whole=whole)
        cost = time.thread_time() - before if whole else 0.0
        if whole:
            self._next_whole = now + cost / SHARE
        if len(self.samples) >= MOST:
            self.samples = self.samples[::2]
        self.samples.append(sample)
        sizes = sample.kinds | {name: getattr(sample, name.lower()) for name in SYSTEM}
        for name, size in sizes.items():
            if size is not None:
                self.peaks[name] = max(size, self.peaks.get(name, 0))
        return cost

    def _kinds(self) -> dict[str, int]:
        found: dict[str, int] = {}
        counted: set[int] = set()
        for kind, source in (self._of_fit | self.trees).items():
            try:
                own = owners(source)
            except Exception as error:  # noqa: BLE001  a function of the reader's may raise anything
                self.problem = f"{kind}: {type(error).__name__}: {error}"
                continue
            found[kind] = sum(array.nbytes for key, array in own.items() if key not in counted)
            counted.update(own)
        return found

    def _write(self, *, last: bool = False) -> None:
        if self.show is None:
            return
        file = sys.stdout if self._file is None else self._file
        in_place = file.isatty() or type(file).__name__ == "OutStream"  # a terminal, or the cell of a notebook
        if in_place or last:
            text = self.line()
            file.write(("\r" if in_place else "") + text.ljust(self._width) + ("\n" if last else ""))
            file.flush()
            self._width = len(text)


_running: dict[str, Monitor] = {}
_lock = threading.Lock()

if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # a child has none of these threads


def _size(size: int | None) -> str:
    return "" if size is None else binary(size)


def _usage(sample: Sample) -> str:
    return "not available" if sample.usage is None else f"{100 * sample.usage:.0f} %"
