"""Call a function that may do anything: raise, loop, print, warn, leave."""

import _thread
import contextlib
import copy
import io
import signal
import sys
import threading
import types
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

KEPT = 2000  # characters of what a function prints


class TooLong(Exception):
    """The function did not end in time."""


@dataclass
class Called:
    """What came of a call. error: what it raised, None if it returned. changed: the places of the arguments that are no
    longer what they were. warned: the first warning of each text."""

    result: Any = None
    error: BaseException | None = None
    changed: tuple[int, ...] = ()
    printed: str = ""
    warned: list[str] = field(default_factory=list)


def call(fn: Callable[..., Any], arguments: tuple, seconds: float) -> Called:
    """Run fn on copies of the arguments. KeyboardInterrupt passes through where it is the reader's own."""
    before = copy.deepcopy(arguments)
    given = copy.deepcopy(arguments)
    called = Called()
    out = _Short()
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out), np.errstate(all="warn", under="ignore"):
        warnings.simplefilter("always")
        try:
            called.result = within(seconds, fn, *given)
        except (Exception, SystemExit, GeneratorExit) as error:  # noqa: BLE001  whatever it is, the reader is told
            called.error = error
    called.printed = out.getvalue()
    called.warned = list(dict.fromkeys(str(warning.message) for warning in caught))
    called.changed = tuple(place for place, (a, b) in enumerate(zip(before, given, strict=True)) if not unchanged(a, b))
    return called


class _Short(io.StringIO):
    """Keeps the first characters only: a loop that prints must not fill the memory."""

    def write(self, text: str) -> int:
        super().write(text[: max(0, KEPT - self.tell())])
        return len(text)


def unchanged(before: Any, after: Any) -> bool:
    """Whether an argument still has the same numbers. Generators and functions are not looked at."""
    if isinstance(before, np.ndarray):
        return (
            isinstance(after, np.ndarray)
            and before.shape == after.shape
            and before.dtype == after.dtype
            and before.tobytes() == after.tobytes()
        )
    if isinstance(before, dict):
        return before.keys() == after.keys() and all(unchanged(value, after[key]) for key, value in before.items())
    if isinstance(before, list | tuple):
        return len(before) == len(after) and all(map(unchanged, before, after))
    return True


class _Stop(BaseException):
    """Raised in the middle of the function. Not an Exception, so `except Exception` in it does not catch it."""


def within(seconds: float, fn: Callable[..., Any], *arguments: Any) -> Any:
    """fn(*arguments), or TooLong after `seconds`, by an interrupt of the main thread: that works on all systems.

    A call into C code, such as one large matrix product, is ended by its own end only. A reader's interrupt is raised as
    always. In another thread there is no limit.
    """
    if threading.current_thread() is not threading.main_thread():
        return fn(*arguments)
    ended, lock = threading.Event(), threading.Lock()
    over = fired = False

    def stop(number: int, frame: types.FrameType | None) -> None:
        if not over:  # an interrupt that comes after the end does nothing
            raise _Stop if fired else KeyboardInterrupt

    def watch() -> None:
        nonlocal fired
        wait, count = seconds, 0
        while not ended.wait(wait):
            with lock:
                if over:
                    return
                fired = True
                _interrupt_main()
            count += 1
            wait = 0.2 if count < 25 else 0.002  # it catches each: one must come while another is being handled

    before = signal.signal(signal.SIGINT, stop)
    watchdog = threading.Thread(target=watch, daemon=True)
    try:
        watchdog.start()
        result = fn(*arguments)
        over = True
    except _Stop:
        pass
    finally:
        over = True
        ended.set()
        with lock:  # an interrupt that was being sent is sent now, and `stop` passes over it
            pass
        watchdog.join()
        signal.signal(signal.SIGINT, signal.default_int_handler if before is None else before)
    if fired:
        raise TooLong(f"it had not ended after {seconds:g} s")
    return result


def _interrupt_main() -> None:
    if sys.platform == "win32":
        _thread.interrupt_main()
    else:
        signal.pthread_kill(threading.main_thread().ident or 0, signal.SIGINT)  # also ends a sleep
