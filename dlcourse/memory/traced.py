"""The exact ruler: the bytes that Python and NumPy ask for, by tracemalloc, and a memory test that rests on it.

One tracemalloc serves the whole process. So this package counts the blocks that need it, and the first one starts it and
the last one ends it. Each open block also notes the peak that it has seen before another one sets the peak back.
"""

import contextlib
import ctypes
import functools
import gc
import inspect
import os
import sys
import threading
import tracemalloc
import types
from collections.abc import Callable, Iterator
from typing import Any, Generic, ParamSpec, TypeVar

import numpy as np

from dlcourse.memory.holders import FRAMES, Walk, local_names, made_at, roots
from dlcourse.units import binary, parse

# Held while a setting of the whole process is changed: this one and those of the other memory tools. A forked child has
# the parent's open blocks, and may leave one.
lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release, after_in_child=lock.release)

P = ParamSpec("P")
T = TypeVar("T")
ENDED = "could not measure: tracing was ended inside the block (tracemalloc.stop or clear_traces)"
UNRUN = "could not measure work that is still to be run"
MAX_ARRAYS_SHOWN = 8

_begin, _set_back = tracemalloc.start, tracemalloc.reset_peak
_owners = 0  # blocks that need tracing now
_started_here = False  # to be ended with the last of them


def name_of(function: Any) -> str:
    """What an error calls a function. TypeError if it cannot be called, or if calling it does none of its work."""
    name = getattr(function, "__qualname__", repr(function))
    if not callable(function):
        raise TypeError(f"expected a function, got {name}")
    kinds = (inspect.isgeneratorfunction, inspect.iscoroutinefunction, inspect.isasyncgenfunction)
    call = getattr(type(function), "__call__", None)  # noqa: B004  of an object that can be called
    if any(kind(function) or kind(call) for kind in kinds):
        raise TypeError(f"{UNRUN}: {name} is a generator or coroutine function")
    return name


def text_of(error: BaseException) -> str:
    """The text of an exception, whose __str__ may raise anything."""
    try:
        return str(error)
    except BaseException:  # noqa: BLE001
        return "(its text cannot be made)"


def refuse_unrun(result: Any, name: str) -> None:
    """TypeError if a function returned a generator or a coroutine: a measurement of it would report next to nothing."""
    if inspect.isgenerator(result) or inspect.isawaitable(result) or inspect.isasyncgen(result):
        if inspect.iscoroutine(result):
            result.close()  # else Python warns that it was never awaited
        raise TypeError(f"{UNRUN}: {name} returned a generator or coroutine")


class Block(contextlib.ContextDecorator, Generic[T]):
    """A context manager that, as a decorator, refuses functions whose work is not done when they return."""

    def __init__(self, make: Callable[[], contextlib.AbstractContextManager[T]]) -> None:
        self._make = make

    def __enter__(self) -> T:
        self._open = self._make()
        return self._open.__enter__()

    def __exit__(self, *error: Any) -> bool | None:  # noqa: PYI036
        return self._open.__exit__(*error)

    def __call__(self, function: Any) -> Any:
        name = name_of(function)

        @functools.wraps(function)
        def inside(*args: Any, **kwargs: Any) -> Any:
            with self._make():
                result = function(*args, **kwargs)
                refuse_unrun(result, name)
                return result

        return inside


def block(function: Callable[P, Iterator[T]]) -> Callable[P, Block[T]]:
    """As contextlib.contextmanager, with a `Block`."""
    manager = contextlib.contextmanager(function)

    @functools.wraps(function)
    def begin(*args: P.args, **kwargs: P.kwargs) -> Block[T]:
        return Block(functools.partial(manager, *args, **kwargs))

    return begin


class Measured:
    """A base for figures that come with the end of a block. To read one that is not there raises RuntimeError with
    `problem`: no measurement that failed reads as a number."""

    problem = "not measured yet: the block has not ended"

    def __getattr__(self, name: str) -> Any:
        if name in type(self).__annotations__:
            raise RuntimeError(self.problem)
        raise AttributeError(f"{type(self).__name__} has no attribute {name!r}")

    def __repr__(self) -> str:
        return f"{type(self).__name__}({', '.join(f'{name}={value!r}' for name, value in vars(self).items())})"


class TracedPeak(Measured):
    """Bytes traced in a block, beyond what was there at its beginning. `peak`: the most at one moment. `kept`: what was
    still there at its end. `overhead`: by how much tracemalloc's own notes grew, which only the system sees."""

    peak: int
    kept: int
    overhead: int

    def __init__(self) -> None:
        self._highest = 0  # seen before the peak was set back


_open: list[TracedPeak] = []


def _start(frames: int = 1) -> None:
    """What tracemalloc.start is while a block is open: who calls it wants the tracing to outlive the block."""
    global _started_here
    with lock:
        _started_here = False
        _begin(frames)


def reset_traced_peak() -> None:
    """As `tracemalloc.reset_peak`, but the open `traced_peak` blocks keep the peak that they have seen. While one is open,
    tracemalloc.reset_peak is this function."""
    with lock:
        peak = tracemalloc.get_traced_memory()[1]
        for traced in _open:
            traced._highest = max(traced._highest, peak)
        _set_back()


@contextlib.contextmanager
def tracing(frames: int = 1) -> Iterator[Callable[[], bool]]:
    """Allocations are traced in the block, with so many calls that led to each -> a function that says whether they were,
    without a gap, until now. RuntimeError at the end of the block if not. What others trace goes on as it is."""
    global _owners, _started_here
    with lock:
        if not tracemalloc.is_tracing():
            _begin(frames)
            _started_here = True
        if _owners == 0:
            tracemalloc.__dict__.update(start=_start, reset_peak=reset_traced_peak)
        _owners += 1
    witness = object()  # traced until its trace is dropped

    def unbroken() -> bool:
        return tracemalloc.get_object_traceback(witness) is not None

    try:
        yield unbroken
    finally:
        whole = unbroken()
        with lock:
            _owners -= 1
            if _owners == 0:
                tracemalloc.__dict__.update(start=_begin, reset_peak=_set_back)
                if _started_here:
                    tracemalloc.stop()
                _started_here = False
    if not whole:
        raise RuntimeError(ENDED)


@block
def traced_peak(*, collect: bool = True) -> Iterator[TracedPeak]:
    """`with traced_peak() as traced: …` measures the block by the exact ruler; afterwards read traced.peak, traced.kept.

    It counts what Python and NumPy allocate in all threads, untouched zeros in full; it misses memory maps, shared
    memory and BLAS's own buffers. Blocks may stand inside one another. An array that was refused (MemoryError) counts in
    the peak with NumPy up to 2.4. With `collect` garbage is collected first, so that what is freed is the block's.
    Raises RuntimeError if tracing was ended inside the block.
    """
    if collect:
        gc.collect()
    traced = TracedPeak()
    with tracing() as unbroken:
        with lock:
            reset_traced_peak()
            _open.append(traced)
        overhead = tracemalloc.get_tracemalloc_memory()
        before = tracemalloc.get_traced_memory()[0]
        try:
            yield traced
        finally:
            # NumPy up to 2.4 reports an allocation that failed as well, at address 0: it would count as kept.
            ctypes.pythonapi.PyTraceMalloc_Untrack(ctypes.c_uint(np.lib.tracemalloc_domain), ctypes.c_size_t(0))
            now, peak = tracemalloc.get_traced_memory()
            traced.problem = "" if unbroken() else ENDED
            if not traced.problem:
                traced.overhead = tracemalloc.get_tracemalloc_memory() - overhead
                traced.peak, traced.kept = max(peak, traced._highest) - before, now - before
            with lock:
                _open.remove(traced)


def array_traces() -> tracemalloc.Snapshot:
    """The arrays that NumPy allocated since tracing began and that are alive now. RuntimeError if nothing is traced."""
    if not tracemalloc.is_tracing():
        raise RuntimeError(ENDED)
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    return tracemalloc.take_snapshot().filter_traces([arrays])


def traced_array_bytes() -> int:
    """Their bytes."""
    return sum(trace.size for trace in array_traces().traces)


@block
def assert_peak(budget: int | str) -> Iterator[TracedPeak]:
    """`with assert_peak("10 MiB"): …`, or `@assert_peak("10 MiB")` over a test: fails where the block's peak by the
    exact ruler, beyond what was there before it, is over the budget.

    The peak is the same in every run but for what code allocates when it runs for the first time, up to some KiB: call
    it once before. Raises AssertionError with the peak, the budget and the arrays that are alive at the end of the
    block, the largest first; an error in the block comes out as it is; ValueError for a budget that is no size; TypeError
    for a generator or coroutine function; RuntimeError if tracing was ended inside.
    """
    limit = parse(budget)
    with tracing(FRAMES):
        with traced_peak() as traced:
            yield traced
        if traced.peak > limit:
            sizes = f"{binary(traced.peak)} ({traced.peak:,} bytes), {binary(traced.peak - limit)} over {binary(limit)}"
            raise AssertionError(f"the peak is {sizes}\n{_alive(traced, _caller())}")


def _alive(traced: TracedPeak, frame: types.FrameType | None) -> str:
    """What is alive of the block, by size and name."""
    names = [] if frame is None else [*local_names(frame).items(), *frame.f_globals.items()]
    walk = Walk([*names, *roots()])
    found = [(array, made_at(array)) for array in walk.arrays]
    arrays = sorted(((array, place) for array, place in found if place), key=lambda pair: -pair[0].nbytes)
    lines = ["alive at the end of the block:"]
    for array, place in arrays[:MAX_ARRAYS_SHOWN]:
        words = "".join(walk.words(walk.path(array)))
        lines.append(f"  {binary(array.nbytes):>8}  {words}  {array.shape} {array.dtype}, made at {place}")
    nameless = traced_array_bytes() - sum(array.nbytes for array, _ in arrays)
    if nameless > 0:
        lines.append(f"  {binary(nameless):>8}  in arrays that no name leads to")
    if len(lines) == 1:
        lines.append("  no array")
    return "\n".join([*lines, f"freed before it: {binary(traced.peak - max(0, traced.kept))}"])


def _caller() -> types.FrameType | None:
    """The frame of the block, above those of this file and of contextlib."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame = frame.f_back
    return frame
