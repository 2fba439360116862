"""The system's ruler: which pages of a process are in memory, what its allocator took, and how much there is to have."""

import ctypes
import functools
import os
import sys
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import psutil

from dlcourse.memory.traced import Measured, block, lock

# Resident sizes.


@dataclass(frozen=True)
class Resident:
    """Bytes of this process in memory. `mapped` are pages of files (libraries, memory-mapped data): the system can drop
    them at any time, since the file holds them. Where the system does not tell them apart, `anonymous` is None."""

    total: int
    anonymous: int | None
    mapped: int | None


def resident_now(pid: int | None = None) -> Resident:
    """The resident size now, of this process if no `pid` is given. Raises psutil's errors if the other one is gone."""
    if sys.platform != "linux":
        return Resident(psutil.Process(pid).memory_info().rss, None, None)
    try:
        status = proc_status("self" if pid is None else pid)
        return Resident(status["VmRSS"], status["RssAnon"] + status["RssShmem"], status["RssFile"])
    except (FileNotFoundError, ProcessLookupError, KeyError):  # a process that has ended has no sizes
        raise psutil.NoSuchProcess(pid) from None


def proc_status(pid: int | str = "self") -> dict[str, int]:
    """The sizes in /proc/PID/status, in bytes. Linux only."""
    with open(f"/proc/{pid}/status") as file:
        lines = [line.split() for line in file]
    return {words[0].rstrip(":"): int(words[1]) * 1024 for words in lines if len(words) == 3 and words[2] == "kB"}


def peak_since_start() -> int:
    """The largest resident size since the process began: VmHWM on Linux, what psutil and getrusage offer elsewhere."""
    return max(_highest_resident, _high_water())


class ResidentGrowth(Measured):
    """What the system saw of a block, in bytes. `before` and `after`: the resident sizes at its ends. `peak`: the largest
    between them, beyond `before`. `ruler`: what `peak` was read from; `lower_bound`: it can have been more."""

    before: Resident
    after: Resident
    peak: int
    ruler: str
    lower_bound: bool

    def __init__(self) -> None:
        self._highest = 0  # seen before VmHWM was set back


_open: list[ResidentGrowth] = []
_highest_resident = 0  # of this process, before VmHWM was last set back
HIGH_WATER = {"linux": "VmHWM", "win32": "peak_wset"}


@block
def measure_resident() -> Iterator[ResidentGrowth]:
    """`with measure_resident() as grown: …` measures the block by the system's ruler. Blocks may stand inside one another.

    Linux: VmHWM, set back through /proc/self/clear_refs: exact to a few pages a processor. Elsewhere, or if that file
    cannot be written, the system keeps one peak for the whole life of the process. It is the block's if the block raised
    it; otherwise the resident size at the block's end is all there is, a lower bound. So is VmHWM if others set it back.
    """
    grown = ResidentGrowth()
    now = resident_now()
    with lock:
        exact = _reset_high_water()
        before = _high_water()
        _open.append(grown)
    try:
        yield grown
    finally:
        peak, after = _high_water(), resident_now()
        with lock:
            _open.remove(grown)
        grown.lower_bound = peak < before if exact else peak <= before
        if grown.lower_bound:
            peak = after.total
        grown.ruler = "RSS at the end" if grown.lower_bound else HIGH_WATER.get(sys.platform, "ru_maxrss")
        grown.before, grown.after = now, after
        grown.peak = max(peak, grown._highest, after.total) - now.total


def _high_water() -> int:
    """What the system calls the peak of this process, since it began or since it was set back."""
    if sys.platform == "linux":
        return proc_status()["VmHWM"]
    if sys.platform == "win32":
        return psutil.Process().memory_info().peak_wset
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss  # bytes on macOS


def _reset_high_water() -> bool:
    """Set VmHWM back to the present resident size; open blocks keep the peak that they have seen. False if the system
    cannot."""
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
    for grown in _open:
        grown._highest = max(grown._highest, peak)
    return True


if hasattr(os, "register_at_fork"):  # a forked child has a peak of its own
    os.register_at_fork(after_in_child=lambda: globals().update(_highest_resident=0))


# The allocator.


@dataclass(frozen=True)
class Allocator:
    """Bytes of glibc's malloc in this process. `allocated`: taken from the system, its arenas and its memory maps.
    `used`: handed out and not freed. What is freed stays allocated if something in use lies behind it."""

    allocated: int
    used: int

    @property
    def usage(self) -> float:
        """The share in use, 0 to 1, as Erlang's recon_alloc shows it: far below 1 means fragmentation."""
        return self.used / self.allocated


def allocator() -> Allocator | None:
    """The allocator now, by glibc's `mallinfo2` (2.33 of 2021, or newer). None if it cannot be asked, or if another
    malloc has taken its place: then nothing at all is allocated by this one."""
    function = _function("mallinfo2")
    info = None if function is None else function()
    return Allocator(info.arena + info.hblkhd, info.uordblks + info.hblkhd) if info and info.uordblks else None


def trim() -> bool:
    """Give back to the system what the allocator does not use (glibc's malloc_trim). Whether something was given back;
    False too if there is no such function."""
    function = _function("malloc_trim")
    return function is not None and bool(function(0))


class _MallInfo2(ctypes.Structure):
    _names = "arena ordblks smblks hblks hblkhd usmblks fsmblks uordblks fordblks keepcost"
    _fields_: ClassVar = [(name, ctypes.c_size_t) for name in _names.split()]


@functools.cache
def _function(name: str) -> Any:
    """A function of this process's C library, None if it has no such one (macOS, Windows, musl, old glibc)."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    types = {"mallinfo2": (_MallInfo2, ()), "malloc_trim": (ctypes.c_int, (ctypes.c_size_t,))}
    function.restype, function.argtypes = types[name]
    return function


# Several processes.


class Sizes(NamedTuple):
    """Sizes of processes in bytes, None where the system does not tell. rss: all pages in memory, shared ones in each
    process. uss: the pages that no other process has. pss: pages divided by the number of processes that have them."""

    rss: int
    uss: int | None
    pss: int | None


def process_sizes(pid: int | None = None) -> Sizes:
    """The sizes of a process, of this one if no `pid` is given. For USS and PSS the system looks at every page: that takes
    milliseconds, and more for a large process. Raises psutil's errors if the process is gone."""
    return sizes_of(psutil.Process(pid))


def sizes_of(process: psutil.Process, *, whole: bool = True) -> Sizes:
    """The same; without `whole` the RSS alone, which is quick."""
    try:
        info = process.memory_full_info() if whole else process.memory_info()
    except psutil.AccessDenied:
        info = process.memory_info()
    return Sizes(info.rss, getattr(info, "uss", None), getattr(info, "pss", None))


def family(pid: int | None = None) -> list[psutil.Process]:
    """A process, this one if no `pid` is given, and all below it. Linux names the children of each thread; elsewhere every
    process of the machine is asked for its parent, which takes milliseconds. Raises psutil's errors if it is gone."""
    first = psutil.Process(pid)
    if not Path(f"/proc/{first.pid}/task/{first.pid}/children").exists():
        return [first, *first.children(recursive=True)]
    found = [first]
    for process in found:  # grows meanwhile
        with suppress(OSError):  # it ended, or one of its threads
            for thread in os.listdir(f"/proc/{process.pid}/task"):
                with open(f"/proc/{process.pid}/task/{thread}/children") as file:
                    for child in file.read().split():
                        with suppress(psutil.NoSuchProcess):
                            found.append(psutil.Process(int(child)))
    return found


# What there is to have.

ROOT = Path("/")
GROUP_FILES = {
    "": ("memory.max", "memory.current", "inactive_file"),
    "memory": ("memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file"),
}


@dataclass(frozen=True)
class Available:
    """Bytes that this process can still take, and what binds: `source`, with its `limit`."""

    free: int
    limit: int
    source: str


def available() -> Available:
    """The smallest of what is left: in the machine, in each control group from this process's own up to the root (versions
    1 and 2; files in memory that can be dropped count as free), under JupyterHub's MEM_LIMIT, under `ulimit -v` and `-d`."""
    memory = psutil.virtual_memory()
    found = [Available(memory.available, memory.total, "the machine")]
    text = os.environ.get("MEM_LIMIT", "")  # bytes: of a notebook's server with its kernels
    if text.isascii() and text.isdigit():
        found.append(_left(int(text), resident_now().total, "MEM_LIMIT of JupyterHub"))
    if sys.platform == "linux":
        found += [*_ulimits(), *(left for left in _control_groups() if left.limit < memory.total)]
    return min(found, key=lambda left: left.free)


def _left(limit: int, used: int, source: str) -> Available:
    return Available(max(0, limit - used), limit, source)


def _ulimits() -> Iterator[Available]:
    import resource

    status = proc_status()
    for option, kind, used in (("v", resource.RLIMIT_AS, "VmSize"), ("d", resource.RLIMIT_DATA, "VmData")):
        soft, _ = resource.getrlimit(kind)
        if soft != resource.RLIM_INFINITY:
            yield _left(soft, status[used], f"ulimit -{option}")


def _control_groups() -> Iterator[Available]:
    """What is left in each control group that this process is in and that limits memory."""
    try:
        groups = (ROOT / "proc/self/cgroup").read_text().splitlines()
        mounts = (ROOT / "proc/self/mountinfo").read_text().splitlines()
    except OSError:
        return
    own = {kind: path for _, kinds, path in (line.split(":", 2) for line in groups) for kind in kinds.split(",")}
    for fields in (line.split() for line in mounts):
        # Version 2 is named by nothing; of version 1 the hierarchy that counts memory matters.
        kind = {"cgroup2": "", "cgroup": "memory"}.get(fields[fields.index("-") + 1])
        if kind not in own or kind not in ("", *fields[-1].split(",")):
            continue
        top = ROOT / fields[4].lstrip("/")
        inner = Path(os.path.relpath(own[kind], fields[3]))  # a container sees its own group as the top
        folder = top if ".." in inner.parts else top / inner
        for group in (folder, *folder.parents):
            limit, used = (_figures(group / name).get("") for name in GROUP_FILES[kind][:2])
            if limit is not None and used is not None:
                used -= _figures(group / "memory.stat").get(GROUP_FILES[kind][2], 0)
                yield _left(limit, used, f"the control group {group.relative_to(ROOT).name}")
            if group == top:
                break


def _figures(path: Path) -> dict[str, int]:
    """The numbers in a control group's file by their names, a lone one under ""; {} for "max" and if there is no file."""
    try:
        return {"".join(name): int(number) for *name, number in map(str.split, path.read_text().splitlines())}
    except (OSError, ValueError):
        return {}
