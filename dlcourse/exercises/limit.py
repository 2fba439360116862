"""Call a function that may do anything: raise, loop, print, warn, leave."""

import contextlib
import copy
import io
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
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
    with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(out), np.errstate(all="warn"):
        warnings.simplefilter("always")
        try:
            with time_limit(seconds):
                called.result = fn(*given)
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


@contextlib.contextmanager
def time_limit(seconds: float) -> Iterator[None]:
    """Raise TooLong in the block after `seconds`, by an interrupt of the main thread: a signal would end a wait, too, but
    Windows has none. Repeated until the block ends, in case it catches the first. In another thread: no limit."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    ended, lock, fired = threading.Event(), threading.Lock(), []

    def watch() -> None:
        wait = seconds
        while not ended.wait(wait):
            with lock:  # the block may end between the wait and here: then no interrupt may follow
                if ended.is_set():
                    return
                fired.append(True)
                _interrupt_main()
            wait = (
                0.2 if len(fired) < 25 else 0.002
            )  # quicker where each is caught: one must come while another is handled

    watchdog = threading.Thread(target=watch, daemon=True)
    handler = signal.getsignal(signal.SIGINT)
    signal.signal(signal.SIGINT, signal.default_int_handler)  # an event loop may have put another in its place
    try:
        watchdog.start()
        try:
            yield
        finally:
            _end(ended, lock)
    except KeyboardInterrupt:
        if not fired:
            raise
    finally:
        _let_late_interrupt_pass(bool(fired))
        if handler is not None:
            signal.signal(signal.SIGINT, handler)
    if fired:
        raise TooLong(f"it had not ended after {seconds:g} s")


def _end(ended: threading.Event, lock: threading.Lock) -> None:
    """Stop the watchdog. An interrupt that comes in the middle of this must not leave it running."""
    while True:
        try:
            ended.set()
            with lock:
                return
        except KeyboardInterrupt:
            continue


def _let_late_interrupt_pass(fired: bool) -> None:
    if not fired:
        return
    try:
        for _ in range(1000):  # an interrupt that was sent and not yet raised is raised between two instructions
            pass
    except KeyboardInterrupt:
        pass


def _interrupt_main() -> None:
    if hasattr(signal, "pthread_kill") and sys.platform != "win32":
        main = threading.main_thread().ident
        assert main is not None
        signal.pthread_kill(main, signal.SIGINT)  # also ends a sleep
    else:
        import _thread

        _thread.interrupt_main()
