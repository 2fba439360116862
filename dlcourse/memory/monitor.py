"""Watch memory while something runs: this process and its children, sampled in a thread."""

import os
import sys
import threading
import time
import tracemalloc
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import pairwise
from numbers import Number, Real
from typing import Any, Literal, Self, TextIO

import numpy as np
import psutil

from dlcourse import tree
from dlcourse.memory.system import Sizes, allocator, family, resident_now, sizes_of
from dlcourse.memory.tables import Table
from dlcourse.memory.traced import lock, text_of
from dlcourse.units import binary

MAX_SAMPLES = 4_000  # that are kept; then every other one is let go, and a peak stays where peaks are kept
SYSTEM = ("RSS", "USS", "PSS", "allocated", "used")  # in the order of the table
# Of one core's time, at most, is spent on samples, and as much on USS and PSS: what costs more comes later.
MAX_SHARE = 0.005
NO_SAMPLE = "no sample yet: start() begins"

Source = tree.Tree | Callable[[], tree.Tree]


@dataclass(frozen=True)
class Sample:
    """One look: bytes, None where the system does not tell; USS and PSS also where they were not asked for.

    seconds: since the monitor began. kinds: bytes of each registered tree. rss, uss, pss: of the process and its
    children; pages that they share count in each one's rss, once in pss, not in uss. own: the same of the process alone.
    anonymous: what of its rss is no page of a file. allocated, used: what the allocator of this process took from the
    system, and what of it is in use. traced: what tracemalloc counts in it, None where nothing is traced.
    """

    seconds: float
    kinds: dict[str, int]
    rss: int
    uss: int | None
    pss: int | None
    anonymous: int | None
    allocated: int | None
    used: int | None
    processes: int
    own: Sizes
    traced: int | None

    @property
    def usage(self) -> float | None:
        """used / allocated, 0 to 1; None where the allocator cannot be asked."""
        return self.used / self.allocated if self.used is not None and self.allocated else None


class Monitor:
    """Samples each `interval` seconds, from `start()` or the head of a `with` block on:

        with Monitor(trees={"params": params, "history": lambda: history}) as monitor:
            fit(…, callbacks=[monitor])            # adds params and slots as fit has them
        monitor.table()

    trees: {kind: a tree of arrays, or a function that gives one}; an array that several have counts for the first.
    show: "text" writes a line that is renewed in place in a terminal or notebook (elsewhere the last one, at the end).
    name: a monitor that starts ends the running one of the same name, so a cell can be run again.
    on_sample, on_end: called with the monitor after each sample, in its thread, and when it has ended. on_whole: after
        each sample with USS and PSS, which come at least `whole` seconds apart.
    pid: another process is watched, with its children; of its allocator nothing is known.

    Ends with the `with` block, also by an error, and with the process. What fails meanwhile, in a function of the caller's
    or in the sampling itself, is told in `problem` and raises nothing: the block's own error stands. What it cannot see
    stands in `cannot_see`. ValueError for an interval that no thread can wait.
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
        on_whole: Callable[["Monitor"], Any] | None = None,
        whole: float = 0.0,
        pid: int | None = None,
        file: TextIO | None = None,
    ) -> None:
        number: Any = interval
        if not (isinstance(number, Real) and 0 < float(number) < threading.TIMEOUT_MAX):
            most = f"a thread waits {threading.TIMEOUT_MAX:.2g} s at most"
            raise ValueError(f"interval must be a number of seconds, more than 0, got {interval!r} ({most})")
        if not isinstance(trees, Mapping | None):
            raise TypeError(f'trees must be a dict such as {{"params": params}}, got {trees!r:.60}')
        if show not in (None, "text"):
            raise ValueError(f'show must be "text" or None, got {show!r}')
        self.interval, self.trees, self.show, self.name = float(interval), dict(trees or {}), show, name
        self.on_sample, self.on_end, self.on_whole, self.whole = on_sample, on_end, on_whole, whole
        self.pid, self._file = pid, file
        self.samples: list[Sample] = []
        self.peaks: dict[str, int] = {}  # by kind, "RSS", …, "used" and "anonymous": sampled, lower bounds
        self.problem = ""  # the last error of a function of the caller's, of a look, or of writing
        self.cost = self.dearest = 0.0  # seconds of processor time that the samples took, all and the dearest one
        self.count = 0  # of them
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
        with lock:
            older = _running.pop(self.name, None)
        if older is not None:
            older.stop()
        self.samples, self.peaks, self.problem, self._width = [], {}, "", 0
        self.cost, self.dearest, self.count = 0.0, 0.0, 0
        self._end = threading.Event()
        self._began = self._next_whole = time.perf_counter()
        self._processes: list[psutil.Process] = []
        self._guarded("sampling", self._look)
        thread = threading.Thread(target=self._run, args=(self._end,), name=f"{self.name} of memory", daemon=True)
        thread.start()
        self._thread = thread
        with lock:
            _running[self.name] = self
        return self

    def stop(self) -> None:
        """Take a last sample and end. The figures stay, the trees that `fit` gave are let go."""
        thread, self._thread = self._thread, None
        with lock:
            if _running.get(self.name) is self:
                del _running[self.name]
        if thread is None:
            return
        self._end.set()
        if thread is not threading.current_thread():
            thread.join(5)
        self._guarded("sampling", self._look, whole=True)
        self._of_fit = {}
        self._guarded("show", self._write, last=True)
        if self.on_end is not None:
            self._guarded("on_end", self.on_end, self)

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
        problem = [f"problem: {self.problem}"] if self.problem else []
        if not self.samples:
            return Table([["seconds"]], [NO_SAMPLE, *problem])
        count = min(max(rows, 2), len(self.samples))
        places = np.unique(np.linspace(0, len(self.samples) - 1, count).round().astype(int))
        kinds = list(dict.fromkeys(kind for sample in self.samples for kind in sample.kinds))
        known = [name for name in SYSTEM if name in self.peaks]
        lines = [["seconds", *kinds, *known, "usage"]]
        for sample in (self.samples[i] for i in places):
            sizes = [sample.kinds.get(kind) for kind in kinds] + [getattr(sample, name.lower()) for name in known]
            lines.append([f"{sample.seconds:.1f}", *map(_size, sizes), _usage(sample)])
        lines.append(["peak", *(_size(self.peaks.get(name)) for name in (*kinds, *known)), ""])
        missing = [name for name in SYSTEM if name not in self.peaks]
        return Table(
            lines, [self.cannot_see, *([f"not available here: {', '.join(missing)}"] if missing else []), *problem]
        )

    def line(self) -> str:
        """The last sample as one line."""
        if not self.samples:
            return NO_SAMPLE
        last = self.samples[-1]
        kinds = "".join(f"{kind} {binary(size)}  " for kind, size in last.kinds.items())
        peak = f"RSS {binary(last.rss)} (peak {binary(self.peaks['RSS'])}, sampled, a lower bound)"
        return f"{last.seconds:.1f} s  {kinds}{peak}  usage {_usage(last)}"

    def _guarded(self, what: str, function: Callable[..., Any], *args: Any, **options: Any) -> Any:
        """Call a function that may raise anything: nobody could catch that in the thread, and at the end of a block it
        would hide the block's own error. -> what it returns, None if it failed."""
        try:
            return function(*args, **options)
        except Exception as error:  # noqa: BLE001
            self.problem = f"{what}: {type(error).__name__}: {text_of(error)}"
            return None

    def _run(self, end: threading.Event) -> None:
        wait = self.interval
        while not end.wait(min(wait, threading.TIMEOUT_MAX)):
            before = time.thread_time()
            apart = self._guarded("sampling", self._look)
            self._guarded("show", self._write)
            if self.on_sample is not None:
                self._guarded("on_sample", self.on_sample, self)
            if apart is not None and self.on_whole is not None:
                self._guarded("on_whole", self.on_whole, self)
            cost = time.thread_time() - before
            self.cost, self.dearest, self.count = self.cost + cost, max(self.dearest, cost), self.count + 1
            wait = max(self.interval, (cost - (apart or 0.0)) / MAX_SHARE)

    def _look(self, *, whole: bool = False) -> float | None:
        """Take a sample -> the processor time of one with USS and PSS, None of another."""
        now, before = time.perf_counter(), time.thread_time()
        whole = whole or now >= self._next_whole
        sample = self._sample(now - self._began, whole)
        self.keep(sample)
        if not whole:
            return None
        cost = time.thread_time() - before
        self._next_whole = now + max(cost / MAX_SHARE, self.whole)
        return cost

    def keep(self, sample: Sample) -> None:
        """Add a sample, which may be one of a log, to those that are there."""
        if len(self.samples) >= MAX_SAMPLES:
            self.samples = self.samples[::2]
        self.samples.append(sample)
        sizes = sample.kinds | {name: getattr(sample, name.lower()) for name in (*SYSTEM, "anonymous")}
        for name, size in sizes.items():
            if size is not None:
                self.peaks[name] = max(size, self.peaks.get(name, 0))

    def _sample(self, seconds: float, whole: bool) -> Sample:
        """`whole` finds the children anew and asks for USS and PSS, for which the system looks at every page."""
        if whole:
            self._processes = family(self.pid)
        found = [sizes_of(self._processes[0], whole=whole)]
        for process in self._processes[1:]:
            with suppress(psutil.Error):  # it ended meanwhile
                found.append(sizes_of(process, whole=whole))
        rss, uss, pss = (None if None in sizes else sum(sizes) for sizes in zip(*found, strict=True))
        heap = allocator() if self.pid is None else None
        allocated, used = (None, None) if heap is None else (heap.allocated, heap.used)
        traced = tracemalloc.get_traced_memory()[0] if tracemalloc.is_tracing() and self.pid is None else None
        anonymous, own = resident_now(self.pid).anonymous, found[0]
        return Sample(seconds, self._kinds(), rss or 0, uss, pss, anonymous, allocated, used, len(found), own, traced)

    def _kinds(self) -> dict[str, int]:
        found: dict[str, int] = {}
        counted: set[int] = set()
        for kind, source in (self._of_fit | self.trees).items():
            own = self._guarded(kind, _owners, source)
            if own is not None:
                found[kind] = sum(array.nbytes for key, array in own.items() if key not in counted)
                counted.update(own)
        return found

    def _write(self, *, last: bool = False) -> None:
        if self.show is None:
            return
        file: Any = sys.stdout if self._file is None else self._file
        in_place = file.isatty() or type(file).__name__ == "OutStream"  # a terminal, or the cell of a notebook
        if in_place or last:
            text = self.line()
            file.write(("\r" if in_place else "") + text.ljust(self._width) + ("\n" if last else ""))
            file.flush()
            self._width = len(text)


_running: dict[str, Monitor] = {}
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_running.clear)  # a child has none of these threads


def _owners(source: Source) -> dict[int, np.ndarray]:
    """{id: array} of the arrays that own the memory of a tree; numbers in it, such as a step count, are passed over.
    The thread that trains may change a dict meanwhile: then once more."""
    for _ in range(3):
        try:
            return _arrays(source)
        except RuntimeError:  # a dict changed its size
            pass
    return _arrays(source)


def _arrays(source: Source) -> dict[int, np.ndarray]:
    leaves = tree.leaves(source() if callable(source) else source)
    others = [leaf for leaf in leaves if not isinstance(leaf, np.ndarray | Number | str)]
    if odd := next((leaf for leaf in others if not hasattr(leaf, "arrays")), None):
        raise TypeError(f"holds {type(odd).__name__}, which is no array and no tree of arrays")
    return tree.owners([leaf for leaf in leaves if isinstance(leaf, np.ndarray) or hasattr(leaf, "arrays")])


def _size(size: int | None) -> str:
    return "" if size is None else binary(size)


def _usage(sample: Sample) -> str:
    return "not available" if sample.usage is None else f"{100 * sample.usage:.0f} %"
