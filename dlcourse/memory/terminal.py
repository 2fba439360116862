"""What a monitor shows in a terminal, its log, and the watch of a process that is not this one."""

import errno
import json
import os
import shutil
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import fields
from pathlib import Path
from typing import TextIO

import psutil

from dlcourse.memory.monitor import NO_SAMPLE, Monitor, Sample
from dlcourse.memory.system import Sizes
from dlcourse.units import binary

UNASKED = "not available: this machine's allocator cannot be asked (glibc's can, from 2.33 on)"
REST = "rest"  # what is traced and belongs to no registered tree


class View:
    """What a monitor calls after a sample: a block of lines, renewed in place in a terminal; a line each time elsewhere.

    file: None: nothing is shown. log: an observation is written there, too. notes: {kind: words behind its bytes}.
    untraced: kinds that were there before tracing began. `said` stands in the first line: how far the training is.
    """

    def __init__(
        self,
        file: TextIO | None,
        log: "Log | None" = None,
        *,
        notes: Mapping[str, str] | None = None,
        untraced: tuple[str, ...] = (),
    ) -> None:
        self._file, self.log, self.untraced, self.said = file, log, untraced, ""
        windows = os.name == "nt" and "WT_SESSION" not in os.environ  # an old console shows the codes as signs
        plain = windows or os.environ.get("TERM", "") == "dumb"
        self.in_place = file is not None and file.isatty() and not plain
        self.notes = dict(notes or {}) if self.in_place else {}  # said once in a block, and not in each line
        self._height = 0
        self._last: Sample | None = None

    def __call__(self, monitor: Monitor) -> None:
        last, self._last = self._last, monitor.samples[-1] if monitor.samples else None
        new = self._last is not None and self._last is not last  # not so if a look failed
        if self.log is not None and new:
            self.log.write(monitor)
        if self._file is None or (monitor.pid is not None and not new):
            return
        rows = self.rows(monitor)
        if not self.in_place:
            self._file.write("; ".join(f"{name.strip()} {text}" for name, text in rows) + "\n")
        else:
            width, height = shutil.get_terminal_size()
            left = max(len(name) for name, _ in rows)
            lines = [f"{name.ljust(left)}  {text}"[: max(1, width - 1)] for name, text in rows[: max(1, height - 2)]]
            up = f"\x1b[{self._height}A" if self._height else ""
            below = "\x1b[J" if len(lines) < self._height else ""
            # One write: nothing of another thread comes between. A line that was longer is cleared to its end.
            self._file.write("\r" + up + "".join(f"\x1b[K{line}\n" for line in lines) + below)
            self._height = len(lines)
        self._file.flush()

    def rows(self, monitor: Monitor) -> list[tuple[str, str]]:
        """(name, text) of each line. USS and PSS are the last ones that were asked for."""
        if not monitor.samples:
            return [("memory", monitor.problem or NO_SAMPLE)]
        last = monitor.samples[-1]
        whole = next((sample for sample in reversed(monitor.samples) if sample.own.uss is not None), last)
        rows = [("memory", f"after {last.seconds:.1f} s{', ' + self.said if self.said else ''}")]
        if monitor.pid is None:
            rows.append(("usage", UNASKED if last.usage is None else _usage(last)))
        inside = {kind: size for kind, size in last.kinds.items() if kind not in self.untraced}
        if last.traced is not None:
            rows.append(("traced", binary(last.traced)))
            inside[REST] = max(0, last.traced - sum(inside.values()))
        rows += [(f"  {kind}", self._noted(kind, size)) for kind, size in inside.items()]
        rows += [(kind, self._noted(kind, last.kinds[kind])) for kind in self.untraced if kind in last.kinds]
        rows.append(("resident", f"{binary(last.own.rss)}{_files(last)}"))
        if monitor.pid is not None:
            known = [(name, getattr(whole.own, name.lower())) for name in ("PSS", "USS")]
            rows += [(name, "not told by the system" if size is None else binary(size)) for name, size in known]
        if last.processes > 1:
            rows.append(("children", f"{last.processes - 1}: {_children(whole)}"))
        rows.append(("peak", f"{binary(monitor.peaks['RSS'])} resident, sampled: a lower bound"))
        return [*rows, *([("problem", monitor.problem)] if monitor.problem else [])]

    def _noted(self, kind: str, size: int) -> str:
        return binary(size) + (f": {self.notes[kind]}" if kind in self.notes else "")


def _usage(sample: Sample) -> str:
    assert sample.usage is not None and sample.used is not None and sample.allocated is not None
    return f"{100 * sample.usage:.1f} %: {binary(sample.used)} used of {binary(sample.allocated)} allocated"


def _files(sample: Sample) -> str:
    if sample.anonymous is None:
        return ""
    return f", {binary(max(0, sample.own.rss - sample.anonymous))} of it pages of files"


def _children(sample: Sample) -> str:
    if sample.pss is not None and sample.own.pss is not None:
        return f"{binary(sample.pss - sample.own.pss)} by PSS"
    return f"{binary(sample.rss - sample.own.rss)} resident, shared pages in each one; their PSS is not told"


class Log:
    """JSON lines, one an observation, added at the end of a file, each in one write: whoever is killed leaves whole lines.

    Raises OSError if the file cannot be opened, ValueError if it holds something else. What cannot be written later is
    counted in `lost`, with the reason in `problem`: a training does not end for its log.
    """

    def __init__(self, path: str | Path) -> None:
        self.path, self.lost, self.problem = str(path), 0, ""
        flags = os.O_WRONLY
        if Path(path).is_file():
            flags = os.O_RDWR
            before = Path(path).read_bytes()
            if before and not before.startswith(b'{"time"'):
                raise ValueError(f"{path} is there and no log of a monitor: name another file")
        self._file = os.open(path, flags | os.O_APPEND | os.O_CREAT | getattr(os, "O_BINARY", 0), 0o666)
        if flags == os.O_RDWR:
            os.ftruncate(self._file, before.rfind(b"\n") + 1)  # the machine went down within a line

    def write(self, monitor: Monitor) -> None:
        """Add the last sample."""
        last = monitor.samples[-1]
        about = {"time": round(time.time(), 3), "pid": monitor.pid or os.getpid(), "usage": last.usage}
        line = json.dumps(about | vars(last) | {"own": last.own._asdict(), "peaks": monitor.peaks}).encode() + b"\n"
        try:
            written = os.write(self._file, line)
            if written < len(line):  # a full disk: what is there of the line is taken back
                os.ftruncate(self._file, os.fstat(self._file).st_size - written)
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        except OSError as error:
            self.lost, self.problem = self.lost + 1, f"{self.path}: {error.strerror}"

    def close(self) -> None:
        """Close the file. Raises OSError if something could not be written."""
        os.close(self._file)
        if self.problem:
            raise OSError(f"{self.problem}; {self.lost} observations are not in this log")


def read_log(path: str | Path) -> Monitor:
    """The last run in a log as a monitor that has ended: `samples`, `peaks`, `table()`; `viz.monitor_log` draws it.

    Raises OSError if it cannot be read, and ValueError, with the line's number, for what is no observation. A last line
    without its end is passed over.
    """
    text = Path(path).read_text(encoding="utf-8")
    lines = text[: text.rfind("\n") + 1].splitlines()
    monitor, before = Monitor(), (0, 0.0)
    for number, line in enumerate(lines, 1):
        try:
            found = json.loads(line)
            sample = Sample(**{one.name: found[one.name] for one in fields(Sample)} | {"own": Sizes(**found["own"])})
            run = (found["pid"], float(sample.seconds))
            if run[0] != before[0] or run[1] < before[1]:
                monitor = Monitor()
            monitor.keep(sample)
            monitor.peaks |= {name: int(size) for name, size in found["peaks"].items()}
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(f"{path}, line {number}: no observation of a monitor: {line[:60]!r}") from None
        before = run
    if not monitor.samples:
        raise ValueError(f"{path} holds no observation of a monitor")
    return monitor


class NotSeen(ValueError):
    """A process that is not there, has ended, or does not let itself be seen."""


def watch(pid: int, view: View, *, every: float = 1.0) -> Monitor:
    """Watch a process and its children until it ends: `view` is called each `every` seconds. -> the monitor.

    Raises NotSeen at once if the process is not there, has ended or is not ours to see.
    """
    process = _seen(pid)
    with Monitor(every, name=f"process {pid}", pid=pid, on_sample=view) as monitor:
        view(monitor)
        while not _ended(process):
            pass
    return monitor


def _seen(pid: int) -> psutil.Process:
    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            raise NotSeen(f"process {pid} has ended: only its exit code waits, for its parent")
        if process.memory_full_info().vms == 0:
            raise NotSeen(f"process {pid} has no memory of its own: it is a part of the system, or about to end")
    except psutil.AccessDenied:
        owner = ""
        with suppress(psutil.Error):
            owner = f": it belongs to {process.username()}"
        raise NotSeen(f"process {pid} is not ours to see{owner}; watch it as that user") from None
    except psutil.Error:
        raise NotSeen(f"there is no process {pid}: it has ended, or never was") from None
    return process


def _ended(process: psutil.Process) -> bool:
    """Waits for a second at most."""
    try:
        process.wait(1.0)
    except psutil.TimeoutExpired:
        with suppress(psutil.NoSuchProcess):
            return process.status() == psutil.STATUS_ZOMBIE
    return True


def show_watch(pid: int, *, every: float, log: str | None) -> None:
    """What `dlcourse watch` does: print until the process has ended, and then its peaks."""
    _seen(pid)  # before a log is begun
    written = None if log is None else Log(log)
    view = View(sys.stdout, written)
    view.said = f"process {pid}"
    monitor = watch(pid, view, every=every)
    sizes = ", ".join(
        f"{name} {binary(monitor.peaks[name])}" for name in ("RSS", "USS", "PSS") if name in monitor.peaks
    )
    words = f"sampled each {monitor.apart:.2g} s or less: lower bounds"
    print(f"process {pid} has ended. Peaks, with its children: {sizes} ({words})")
    if written is not None:
        written.close()
