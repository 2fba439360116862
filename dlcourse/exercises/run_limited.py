"""Call a function that may do anything: raise, loop, print, warn, leave."""

import _thread
import contextlib
import copy
import io
import numbers
import os
import signal
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KEPT = 2000  # characters of what a function prints
WARNINGS = 20  # different ones that are kept
PATIENT = 5  # interrupts that a function may catch before it is stopped less gently
LIBRARY = os.path.dirname(threading.__file__)
WATCHED = (np.ndarray, dict, list, tuple, set, frozenset, bytearray, bytes, numbers.Number, str)
_one_at_a_time = threading.RLock()  # standard output and the warnings belong to the whole process


class TooLong(Exception):
    """The function did not end in time."""


@dataclass
class Called:
    """What came of a call. error: what it raised, None if it returned; lines: where, the outermost first. changed: the
    places of the arguments that are no longer what they were. warned: the first warning of each text."""

    result: Any = None
    error: BaseException | None = None
    lines: list[tuple[types.CodeType, int]] = field(default_factory=list)
    changed: tuple[int, ...] = ()
    printed: str = ""
    warned: list[str] = field(default_factory=list)

    @property
    def returned(self) -> bool:
        """Whether there is a result, and the arguments are whole."""
        return self.error is None and not self.changed


def call(fn: Callable[..., Any], arguments: tuple, seconds: float) -> Called:
    """Run fn on copies of the arguments. KeyboardInterrupt passes through if it is the reader's own."""
    before = copy.deepcopy(arguments)
    given = copy.deepcopy(arguments)
    called = Called()
    with _one_at_a_time, _caught(called), np.errstate(all="warn", under="ignore"):
        try:
            called.result = within(seconds, fn, *given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  whatever it is, the reader is told
            called.lines = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
            called.error = error.with_traceback(None)  # its frames would keep the reader's arrays alive
            error.__context__ = error.__cause__ = None
    called.changed = tuple(place for place, (a, b) in enumerate(zip(before, given, strict=True)) if not unchanged(a, b))
    return called


@contextlib.contextmanager
def _caught(called: Called) -> Iterator[None]:
    """Keep what the block prints and warns of. A loop that does either for ever must not fill the memory."""

    def keep(message: Warning | str, *_: Any) -> None:
        if len(called.warned) < WARNINGS and str(message) not in called.warned:
            called.warned.append(str(message))

    out = _Short()
    with warnings.catch_warnings(), contextlib.redirect_stdout(out), contextlib.redirect_stderr(out):
        warnings.simplefilter("always")
        warnings.showwarning = keep  # type: ignore[assignment]
        try:
            yield
        finally:
            out.ended = True
            called.printed = out.getvalue()


class _Short(io.StringIO):
    """Keeps the first characters only, also after a `close`. What is written after the end, such as by a logger that was
    set up meanwhile, goes to its own place."""

    ended = False

    def write(self, text: str) -> int:
        if self.ended:
            return sys.stderr.write(text)
        super().write(text[: max(0, KEPT - self.tell())])
        return len(text)

    def close(self) -> None:
        pass


def unchanged(before: Any, after: Any) -> bool:
    """Whether an argument still has the same numbers. Generators and functions are not looked at."""
    watched = isinstance(before, WATCHED)
    if not watched or type(before) is not type(after):
        return not watched
    if isinstance(before, np.ndarray):
        return before.shape == after.shape and before.dtype == after.dtype and before.tobytes() == after.tobytes()
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(unchanged(value, after[key]) for key, value in before.items())
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(unchanged, before, after))
    return bool(before == after or before != before)  # noqa: PLR0124  not a number stays so


class _Stop(BaseException):
    """Raised in the middle of the function. Not an Exception, so `except Exception` in it does not catch it."""


def within(seconds: float, fn: Callable[..., Any], *arguments: Any) -> Any:
    """fn(*arguments), or TooLong after `seconds`, by an interrupt of the main thread: that works on all systems.

    A call into C code, such as one large matrix product, is ended by its own end only. A reader's interrupt is raised as
    always. In another thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        return fn(*arguments)
    ended, running, sent, asked, tracing = threading.Event(), False, 0, False, sys.gettrace()

    def stop(number: int, frame: types.FrameType | None) -> None:
        nonlocal asked
        if not running:  # the reader's waits for the end of what is done before and after; the limit's comes too late
            asked = asked or not sent
            return
        if sent > PATIENT:
            _stop_at_next_line(frame)
        raise _Stop if sent else KeyboardInterrupt

    def watch() -> None:
        nonlocal sent
        while not ended.wait(0.2 if sent else seconds):
            sent += 1
            _interrupt_main()

    watchdog = threading.Thread(target=watch, daemon=True)
    before = signal.signal(signal.SIGINT, stop)  # also where interrupts were ignored, as behind `nohup`
    try:
        watchdog.start()
        running = True
        if not asked:
            result = fn(*arguments)
        running = False
    except BaseException:  # `stop` raised it, or what the function made of that
        running = False
        if not sent:
            raise
    finally:
        running = False
        if sent > PATIENT:
            sys.settrace(tracing)
        ended.set()
        watchdog.join()  # an interrupt that was being sent is sent now, and `stop` passes over it
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
        if asked:
            raise KeyboardInterrupt
    if sent:
        raise TooLong(f"it had not ended after {seconds:g} s")
    return result


def _stop_at_next_line(frame: types.FrameType | None) -> None:
    """For a loop around `try: sleep(1)` and `except: pass`: an interrupt always finds it in its `try`. The next line that
    it comes to is outside."""

    def again(frame: types.FrameType, event: str, value: Any) -> Any:
        if event == "line":
            raise _Stop
        return again

    sys.settrace(lambda *_: None)  # no trace of functions that are called from here on
    while frame is not None and frame.f_code is not within.__code__:
        if not frame.f_code.co_filename.startswith(LIBRARY):  # what Python's own functions clean up is cleaned up
            frame.f_trace = again
        frame = frame.f_back


def _interrupt_main() -> None:
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # also ends a sleep
