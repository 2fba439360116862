"""Run a function in a process of its own: measured apart from everything else, and unable to leave anything behind."""

import contextlib
import gc
import pickle
import signal
import sys
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal, cast

from dlcourse.memory.rulers import peak_resident, resident_peak, traced_peak
from dlcourse.memory.wall import wall as limited
from dlcourse.units import binary, parse

LOOK = 0.1  # seconds between two looks at whether the process lives, in case its pipe does not tell
LEAVE = 2.0  # seconds that the process may take to end after its answer


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
    text where it does not pickle, where the result does not, and where the process dies. ValueError where fn or an
    argument cannot be handed to an empty process. The result's arrays are copied once in each process.
    """
    import multiprocessing

    budget = None if wall is None else parse(wall)
    if timeout is not None and not (isinstance(timeout, int | float) and timeout > 0):
        raise ValueError(f"timeout must be a number of seconds above 0, or None for no limit, got {timeout!r}")
    start = start or ("fork" if sys.platform == "linux" else "spawn")
    if start not in (known := multiprocessing.get_all_start_methods()):
        raise ValueError(f"start={start!r} is not known on {sys.platform}; it has {', '.join(known)}")
    context: Any = multiprocessing.get_context(start)
    job = (fn, args, kwargs) if start == "fork" else _packed_job(fn, args, kwargs, start)
    receiver, sender = context.Pipe(duplex=False)
    process = context.Process(target=_child, args=(sender, budget, job))
    try:
        with contextlib.closing(sender), warnings.catch_warnings():
            # Python 3.12 warns of forks beside threads, and a notebook always has some. The child starts none of them.
            warnings.filterwarnings("ignore", "This process .* is multi-threaded", DeprecationWarning)
            process.start()
        answer = _answer(receiver, process, timeout, getattr(fn, "__qualname__", repr(fn)), budget)
        process.join(LEAVE)
    finally:
        receiver.close()
        if process.pid is not None:
            process.kill()
            process.join()
        process.close()
    if isinstance(answer, Isolated):
        return answer
    answer.error.add_note(f"In the process of its own:\n{answer.trace}")
    raise answer.error


@dataclass(frozen=True)
class _Failure:
    error: Exception
    trace: str


def _packed_job(fn: Any, args: tuple, kwargs: dict[str, Any], start: str) -> bytes:
    name = getattr(fn, "__qualname__", repr(fn))
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
    """What the process does: run the job, and send back an Isolated or a _Failure."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the parent's: it kills this process
    gc.freeze()  # what a fork has inherited is not looked through, and so not copied
    answer: Isolated | _Failure
    try:
        fn, args, kwargs = pickle.loads(job) if isinstance(job, bytes) else job
        answer = _run(fn, args, kwargs, budget)
    except BaseException as error:  # noqa: BLE001  raised again in the parent
        answer = _failure(error, budget)
    buffers: list[pickle.PickleBuffer] = []
    try:
        message = pickle.dumps(answer, protocol=5, buffer_callback=buffers.append)
    except Exception as error:  # noqa: BLE001  pickling raises anything
        kind = type(cast(Isolated, answer).value).__name__
        buffers.clear()
        message = pickle.dumps(_failure(IsolatedError(f"the result, of type {kind}, does not pickle: {error}"), None))
    sys.stdout.flush()
    sys.stderr.flush()
    views = [buffer.raw() for buffer in buffers]
    sender.send([view.nbytes for view in views])
    for part in (message, *views):
        sender.send_bytes(part)


def _run(fn: Any, args: tuple, kwargs: dict[str, Any], budget: int | None) -> Isolated:
    at_wall = contextlib.nullcontext() if budget is None else limited(budget)
    with at_wall, resident_peak() as grown, traced_peak() as traced:
        began = time.perf_counter()
        value = fn(*args, **kwargs)
        seconds = time.perf_counter() - began
    return Isolated(value, traced.peak, peak_resident(), grown.peak, seconds)


def _failure(error: BaseException, budget: int | None) -> _Failure:
    """What can be sent back of an exception: itself where it pickles both ways, else its type and text."""
    tb = error.__traceback__
    while tb is not None and tb.tb_frame.f_code.co_filename == __file__:
        tb = tb.tb_next
    trace = "".join(traceback.format_exception(type(error), error, tb))
    text = str(error)
    if isinstance(error, MemoryError) and budget is not None:
        error = MemoryError(f"past the wall of {binary(budget)}: {text or 'how much was asked for is not known'}")
    try:
        if isinstance(error, Exception) and type(pickle.loads(pickle.dumps(error))) is type(error):
            return _Failure(error, trace)
    except Exception:  # noqa: BLE001, S110  whatever its __reduce__ or __init__ raises
        pass
    return _Failure(IsolatedError(f"{type(error).__module__}.{type(error).__qualname__}: {text}"), trace)


def _answer(receiver: Any, process: Any, timeout: float | None, name: str, budget: int | None) -> Isolated | _Failure:
    """Wait for the answer, and read it before the process is joined: it cannot end while its pipe is full."""
    from multiprocessing.connection import wait

    end = None if timeout is None else time.monotonic() + timeout
    while receiver not in wait([receiver, process.sentinel], LOOK):
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
        process.join(LEAVE)
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
