"""Call a function that may do anything: raise, loop, print, warn, leave."""

import _thread
import copy
import io
import numbers
import signal
import sys
import threading
import traceback
import types
import warnings
from collections.abc import Callable
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KEPT = 2000  # characters of what a function prints
WARNINGS = 20  # different ones that are kept
PATIENT = 5  # interrupts that a function may catch before it is stopped less gently
WATCHED = (np.ndarray, dict, list, tuple, set, frozenset, bytearray, bytes, numbers.Number, str)
_one_at_a_time = threading.RLock()  # standard output and the warnings belong to the whole process


class TooLong(Exception):
    """The function did not end in time."""


class _Stop(BaseException):
    """Raised in the middle of the function. Not an Exception, so `except Exception` in it does not catch it."""


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
    before, given = copy.deepcopy(arguments), copy.deepcopy(arguments)
    called, out = Called(), _Short()

    def keep(message: Warning | str, *_: Any) -> None:
        if len(called.warned) < WARNINGS and str(message) not in called.warned:
            called.warned.append(str(message))

    with (
        _one_at_a_time,
        warnings.catch_warnings(action="always"),
        redirect_stdout(out),
        redirect_stderr(out),
        np.errstate(all="warn", under="ignore"),
    ):
        warnings.showwarning = keep  # type: ignore[assignment]
        try:
            called.result = within(seconds, fn, *given)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # noqa: BLE001  whatever it is, the reader is told
            called.lines = [(frame.f_code, line) for frame, line in traceback.walk_tb(error.__traceback__)]
            called.error = error.with_traceback(None)  # its frames would keep the reader's arrays alive
            error.__context__ = error.__cause__ = None
        finally:
            out.ended = True
    called.printed = out.getvalue()
    called.changed = tuple(place for place, pair in enumerate(zip(before, given, strict=True)) if not unchanged(*pair))
    return called


class _Short(io.StringIO):
    """Keeps the first characters only, also after a `close`. What a logger that was set up meanwhile writes after the end
    goes to its own place."""

    ended = False

    def write(self, text: str) -> int:
        return sys.stderr.write(text) if self.ended else super().write(text[: max(0, KEPT - self.tell())]) or len(text)

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


def within(seconds: float, fn: Callable[..., Any], *arguments: Any) -> Any:
    """fn(*arguments), or TooLong after `seconds`, by an interrupt of the main thread: that works on all systems.

    A call into C code, such as one large matrix product, is ended by its own end only. A reader's interrupt is raised as
    always. In another thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        return fn(*arguments)
    ended, running, sent, asked, tracing = threading.Event(), False, 0, False, sys.gettrace()

    def stop(number: int, frame: Any) -> None:
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
            if sys.platform == "win32":
                _thread.interrupt_main()
            else:
                signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # also ends a sleep

    watchdog = threading.Thread(target=watch, daemon=True)
    before = signal.signal(signal.SIGINT, stop)  # also if interrupts were ignored, as behind `nohup`
    try:
        watchdog.start()
        running = True
        result = None if asked else fn(*arguments)
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


def _stop_at_next_line(frame: Any) -> None:
    """For a loop around `try: sleep(1)` and `except: pass`: an interrupt always finds it in its `try`, and the next line
    that the reader's function comes to is outside."""

    def again(frame: types.FrameType, event: str, value: Any) -> Any:
        if event == "line":
            raise _Stop
        return again

    while frame.f_back.f_code is not within.__code__:
        frame = frame.f_back
    frame.f_trace = again
    sys.settrace(lambda *_: None)  # no trace of functions that are called from here on
