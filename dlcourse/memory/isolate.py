"""Run a function in a process of its own: measured apart from everything else, and unable to leave anything behind; and
the wall: a block that may take so many bytes more and then gets a MemoryError, in a process that lives on."""

import contextlib
import gc
import mmap
import os
import pickle
import signal
import sys
import threading
import time
import traceback
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from numbers import Real
from typing import Any, Literal, cast

import numpy as np

from dlcourse.memory.system import measure_resident, peak_since_start, proc_status, trim
from dlcourse.memory.traced import block, lock, name_of, text_of, traced_peak
from dlcourse.units import binary, parse
from dlcourse.workers import one_blas_thread

POLL_SECONDS = 0.1  # between two looks at whether the process lives, in case its pipe does not tell
JOIN_SECONDS = 2.0  # that the process may take to end after its answer
MIB = 2**20
RESERVE_BYTES = 4 * MIB  # let go first where the wall is hit: the error itself needs some memory
CALLERS = max(4, os.cpu_count() or 1)


class IsolatedError(RuntimeError):
    """The process died, or what came of the function, a result or an exception, cannot be sent back."""


@dataclass(frozen=True)
class Isolated:
    """value: what the function returned. requested: its traced peak, exact. resident: the largest resident size of the
    whole process. grown: by how much that rose while the function ran, after a fork with some MiB of libraries' pages
    that a new process touches first. All bytes. seconds: the function's time, the tracing of each allocation included."""

    value: Any
    requested: int
    resident: int
    grown: int
    seconds: float

    def __repr__(self) -> str:
        return (
            f"requested {binary(self.requested)}; the process had {binary(self.resident)} resident at its peak, "
            f"of it {binary(self.grown)} since the function began; {self.seconds:.3g} s"
        )


def isolated(
    fn: Callable[..., Any],
    *args: Any,
    start: Literal["fork", "forkserver", "spawn"] | None = None,
    wall: int | str | None = None,
    timeout: float | None = None,
    **kwargs: Any,
) -> Isolated:
    """Run fn(*args, **kwargs) in a fresh process -> its value, both peaks, its time. The process is gone afterwards.

    start: "fork" copies this process: quick, and functions of a notebook work. "spawn" and "forkserver" begin an empty
        one (their helper, multiprocessing's, lives on): fn must stand in a module. None: fork on Linux, spawn elsewhere.
    wall: how many bytes fn may take, such as "200 MiB"; past it MemoryError. See `wall` for what counts.
    timeout: seconds after which the process is killed and TimeoutError raised.

    An exception of fn is raised here, with the traceback that it had there as a note; IsolatedError with its type and
    text if it does not pickle, if the result does not, and if the process dies or cannot be started. ValueError if fn or
    an argument cannot be handed to an empty process; TypeError for a generator or coroutine function. The result's arrays
    are copied on the way, more than once: a result of 16 MiB took some 50 MiB here for a moment.
    """
    import multiprocessing

    may_start()
    budget = None if wall is None else parse(wall)
    name = name_of(fn)
    limit: Any = timeout
    if limit is not None and not (isinstance(limit, Real) and float(limit) > 0):
        raise ValueError(f"timeout must be a number of seconds above 0, or None for no limit, got {timeout!r}")
    start = start or ("fork" if sys.platform == "linux" else "spawn")
    if start not in (known := multiprocessing.get_all_start_methods()):
        raise ValueError(f"start={start!r} is not known on {sys.platform}; it has {', '.join(known)}")
    context: Any = multiprocessing.get_context(start)
    job = (fn, args, kwargs) if start == "fork" else _packed_job(name, fn, args, kwargs, start)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, budget, job))
    try:
        with contextlib.closing(sender), warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads, and a notebook always has some. The child starts none of them.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            try:
                process.start()
            except OSError as error:
                raise IsolatedError(f"no process could be started for {name}: {error}") from error
        answer = _answer(receiver, process, timeout, name, budget)
        process.join(JOIN_SECONDS)
    finally:
        receiver.close()
        if process.pid is not None:
            process.kill()
            process.join()
        process.close()
    if isinstance(answer, Isolated):
        return answer
    with contextlib.suppress(Exception):  # a class may refuse attributes
        answer.error.add_note(f"In the process of its own:\n{answer.trace}")
    raise answer.error


def may_start() -> None:
    """IsolatedError in a process that multiprocessing lets have no children."""
    import multiprocessing

    if multiprocessing.current_process().daemon:
        raise IsolatedError(
            "this is a daemonic process, such as a worker of multiprocessing.Pool, and may start no process: call from "
            "the main process, or from a worker of concurrent.futures.ProcessPoolExecutor"
        )


@dataclass(frozen=True)
class _Failure:
    error: Exception
    trace: str


def _packed_job(name: str, fn: Any, args: tuple, kwargs: dict[str, Any], start: str) -> bytes:
    if getattr(fn, "__module__", None) == "__main__" and not hasattr(sys.modules["__main__"], "__file__"):
        why = "is defined in the notebook"
    else:
        try:
            return pickle.dumps((fn, args, kwargs), protocol=5)
        except (pickle.PicklingError, AttributeError, TypeError) as error:
            why = f"or its arguments do not pickle ({error})"
    raise ValueError(
        f'{name} {why}: start="{start}" needs a function of a module; or use start="fork" where there is one'
    )


def _child(sender: Any, budget: int | None, job: Any) -> None:
    """What the process does: run the job, and send back an Isolated or a _Failure before anything else: what is done on the
    way out, such as flushing stdout, may fail."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's: it kills this process
    gc.freeze()  # what a fork has inherited is not looked through, and so not copied
    answer: Isolated | _Failure
    try:
        fn, args, kwargs = pickle.loads(job) if isinstance(job, bytes) else job
        at_wall: Any = contextlib.nullcontext() if budget is None else wall(budget)
        with at_wall, measure_resident() as grown, traced_peak() as traced:
            began = time.perf_counter()
            value = fn(*args, **kwargs)
            seconds = time.perf_counter() - began
        answer = Isolated(value, traced.peak, peak_since_start(), grown.peak, seconds)
    except BaseException as error:  # noqa: BLE001  raised again in the parent
        answer = _failure(error, budget)
    buffers: list[pickle.PickleBuffer] = []
    try:
        message = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
    except BaseException as error:  # noqa: BLE001  pickling raises anything
        kind = type(cast(Isolated, answer).value).__name__
        buffers.clear()
        why = f"the result, of type {kind}, does not pickle: {text_of(error)}"
        message = pickle.dumps(_failure(IsolatedError(why), None))
    views = [buffer.raw() for buffer in buffers]
    sender.send([view.nbytes for view in views])
    for part in (message, *views):
        sender.send_bytes(part)


def _failure(error: BaseException, budget: int | None) -> _Failure:
    """What can be sent back of an exception: itself where it pickles both ways, else its type and text."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    trace = "".join(traceback.format_exception(type(error), error, tb))
    text = text_of(error)
    if isinstance(error, MemoryError) and budget is not None:
        error = MemoryError(f"past the wall of {binary(budget)}: {text or 'how much was asked for is not known'}")
    try:
        if isinstance(error, Exception) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return _Failure(error, trace)
    except BaseException:  # noqa: BLE001, S110  whatever its __reduce__ or __init__ raises
        pass
    return _Failure(IsolatedError(f"{type(error).__module__}.{type(error).__qualname__}: {text}"), trace)


def _answer(receiver: Any, process: Any, timeout: float | None, name: str, budget: int | None) -> Isolated | _Failure:
    """Wait for the answer, and read it before the process is joined: it cannot end while its pipe is full."""
    from multiprocessing.connection import wait

    end = None if timeout is None else time.monotonic() + timeout
    while receiver not in wait([receiver, process.sentinel], POLL_SECONDS):
        if process.exitcode is not None and not receiver.poll():
            raise _died(process, name, budget)
        if end is not None and time.monotonic() > end:
            raise TimeoutError(f"{name} ran for more than {timeout:g} s; its process was killed")
    try:
        buffers = [bytearray(size) for size in receiver.recv()]
        message = receiver.recv_bytes()
        for buffer in buffers:
            receiver.recv_bytes_into(buffer)
    except (EOFError, OSError):
        process.join(JOIN_SECONDS)
        raise _died(process, name, budget) from None
    try:
        return pickle.loads(message, buffers=buffers)
    except Exception as error:
        raise IsolatedError(f"what {name} returned cannot be read here: {type(error).__name__}: {error}") from error


def _died(process: Any, name: str, budget: int | None) -> IsolatedError:
    code = process.exitcode
    if code is None:
        return IsolatedError(f"{name} closed its way back; its process was killed")
    if code < 0:
        how = f"was killed by {signal.Signals(-code).name}"
        if -code == getattr(signal, "SIGKILL", None):
            how += " (the system does so where memory runs out)"
    else:
        how = f"ended with exit code {code}"
        if budget is not None:
            how += f" (under the wall of {binary(budget)} a library can end it that gets no memory)"
    return IsolatedError(f"the process of {name} {how} before it returned a result")


_walls: list[int] = []  # the limits of the open walls, in bytes of data
_without = 0  # the limit before the first of them


@block
def wall(budget: int | str) -> Iterator[None]:
    """`with wall("200 MiB"): …` lets the process take `budget` bytes more than it has, then raises MemoryError.

    Zeros that are not yet written count, as they do for the exact ruler; memory that the allocator holds free does not.
    A new thread takes 8 MiB for its stack. The wall is lifted at the end of the block, whatever happens there. Of walls
    that are open at once, inside one another or in several threads, the lowest one holds for the whole process.

    In a notebook's kernel use it around large arrays only: under the wall every allocation of the process can fail,
    also the small ones of other threads, and NumPy can end the process if a small request of its own fails.
    `isolated(f, wall="200 MiB")` is the usual way; let the work ask for a large array now and then, so that the wall is
    met there. BLAS is warmed up on every thread before, since a first matrix product that gets no buffer ends the process.

    Works on Linux, by a soft RLIMIT_DATA; raises OSError elsewhere and if the system does not hold the limit.
    """
    global _without
    size = parse(budget)
    if sys.platform != "linux":
        raise OSError(f"wall({budget!r}): {sys.platform} has no limit on data that raises MemoryError; Linux has one")
    import resource

    if resource.getrlimit(resource.RLIMIT_DATA)[0] == resource.RLIM_INFINITY:  # else a thread could fail to start
        warm_up_blas()
    trim()  # free memory at the end of the heap would stretch the budget
    reserve = [bytearray(RESERVE_BYTES)]
    limit, holds = proc_status()["VmData"] + size, True
    with lock:
        if not _walls:
            _without = resource.getrlimit(resource.RLIMIT_DATA)[0]
        _walls.append(limit)
        _hold_lowest()
    try:
        with contextlib.suppress(OSError, MemoryError):  # as it should be: asked for and handed back, untouched
            mmap.mmap(-1, size + 16 * MIB, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
            holds = False
        if not holds:
            raise OSError(f"wall({budget!r}): this system does not hold RLIMIT_DATA (Linux does, from 4.7 on)")
        yield
    finally:
        reserve.clear()
        with lock:
            _walls.remove(limit)
            _hold_lowest()


def _hold_lowest() -> None:
    import resource

    hard = resource.getrlimit(resource.RLIMIT_DATA)[1]  # a block may have lowered it
    limits = [limit for limit in (*_walls, _without, hard) if limit != resource.RLIM_INFINITY]
    resource.setrlimit(resource.RLIMIT_DATA, (min(limits, default=resource.RLIM_INFINITY), hard))


def warm_up_blas() -> None:
    """Let BLAS start its threads, and take a buffer for each of `CALLERS` Python threads that may call it at once.
    Takes some tens of milliseconds, and for OpenBLAS 32 MiB of address space a buffer, resident only as touched."""
    a = np.ones((768, 768), np.float32)
    a @ a  # starts BLAS's own threads
    # A caller gets the first buffer that nobody has. So all must be inside at once: each product takes several of the
    # slices of time that the system gives to a thread, and nobody is done before the last has begun.
    results = [np.empty_like(a) for _ in range(CALLERS)]
    together = threading.Barrier(CALLERS)

    def product(result: np.ndarray) -> None:
        together.wait()
        np.matmul(a, a, out=result)

    with one_blas_thread(), ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(product, results))
