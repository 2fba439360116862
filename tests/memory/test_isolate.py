"""`isolated`: a process of its own, that ends in every case and says what happened."""

import ctypes
import faulthandler
import os
import pickle
import signal
import sys
import threading
import time
import warnings
from pathlib import Path

import numpy as np
import psutil
import pytest

from dlcourse.memory import IsolatedError, isolated, traced_peak

MIB = 2**20
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")


def left_behind():
    """Children of this process, but for multiprocessing's own helpers, which stay for the next time."""
    children = psutil.Process().children()
    helpers = ("resource_tracker", "forkserver")
    return [child for child in children if not any(name in " ".join(child.cmdline()) for name in helpers)]


class TwoArguments(Exception):
    """Pickles, and cannot be read back: its text is not what its __init__ takes."""

    def __init__(self, a, b):
        super().__init__(f"{a} and {b}")


class HoldsALock(Exception):
    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


@linux
def test_value_peaks_and_time_come_back():
    def work(count, *, fill):
        np.full(count, fill, np.uint8)
        time.sleep(0.05)
        return os.getpid(), fill

    # Larger than 32 MiB, it never comes from pages that earlier work has left in the heap.
    outcome = isolated(work, 40 * MIB, fill=3)
    assert outcome.value[0] != os.getpid()
    assert outcome.value[1] == 3
    assert 40 * MIB <= outcome.requested < 40 * MIB + 8192
    assert 39 * MIB < outcome.grown < 50 * MIB  # with the pages of libraries that the new process touches first
    assert outcome.resident >= outcome.grown
    assert 0.05 <= outcome.seconds < 30
    assert "requested 40.0 MiB" in repr(outcome)


@forks
def test_the_same_work_requests_the_same_bytes_but_for_some_of_pythons_own():
    requested = [isolated(lambda: np.ones(10_000) * 2).requested for _ in range(3)]
    assert max(requested) - min(requested) < 1024


@pytest.mark.parametrize("start", ["forkserver", "spawn"])
def test_an_empty_process_runs_functions_of_modules(start):
    if start == "forkserver" and sys.platform == "win32":
        pytest.skip("Windows has spawn alone")
    outcome = isolated(np.full, 3 * MIB, 7, np.uint8, start=start)
    assert outcome.value.sum(dtype=int) == 21 * MIB
    assert 3 * MIB <= outcome.requested < 3 * MIB + 8192


def test_an_empty_process_cannot_get_a_local_function():
    with pytest.raises(ValueError, match='needs a function of a module; or use start="fork"'):
        isolated(lambda: 1, start="spawn")


def test_a_function_of_the_notebook_is_refused_by_name(monkeypatch):
    def of_the_notebook():
        pass

    of_the_notebook.__module__ = "__main__"
    monkeypatch.delattr(sys.modules["__main__"], "__file__", raising=False)
    with pytest.raises(ValueError, match="of_the_notebook is defined in the notebook"):
        isolated(of_the_notebook, start="spawn")


def test_a_start_method_that_does_not_exist_is_refused():
    with pytest.raises(ValueError, match="start='thread' is not known"):
        isolated(time.time, start="thread")


@forks
def test_large_results_come_back_without_a_deadlock():
    result = isolated(lambda: {"a": np.full(128 * MIB, 3, np.uint8), "b": [np.arange(5)]}).value
    assert result["a"].nbytes == 128 * MIB
    assert result["a"][-1] == 3
    assert (result["b"][0] == np.arange(5)).all()
    result["a"][0] = 4  # writable, as any array


@forks
def test_an_exception_comes_back_with_type_text_and_its_traceback():
    def fails_here():
        return {}["missing"]

    with pytest.raises(KeyError, match="missing") as error:
        isolated(fails_here)
    (note,) = error.value.__notes__
    assert "in fails_here" in note
    assert "_child" not in note  # not the way to it


@forks
@pytest.mark.parametrize("kind", [TwoArguments, HoldsALock])
def test_an_exception_that_does_not_pickle_comes_back_by_name(kind):
    def fails():
        raise kind(*["left", "right"][: kind.__init__.__code__.co_argcount - 1])

    with pytest.raises(IsolatedError, match=rf"{kind.__name__}: left") as error:
        isolated(fails)
    assert "in fails" in error.value.__notes__[0]


@forks
def test_a_result_that_does_not_pickle_is_named():
    with pytest.raises(IsolatedError, match="the result, of type generator, does not pickle"):
        isolated(lambda: (i for i in range(3)))


@forks
def test_a_result_that_cannot_be_read_back_is_named():
    with pytest.raises(IsolatedError, match="cannot be read here: TypeError"):
        isolated(lambda: TwoArguments(1, 2))
    assert pickle.dumps(TwoArguments(1, 2))


@forks
@pytest.mark.parametrize(
    ("end", "words"),
    [
        (lambda: os.kill(os.getpid(), signal.SIGKILL), "was killed by SIGKILL"),
        (lambda: os._exit(3), "ended with exit code 3 before it returned"),
        (lambda: os._exit(0), "ended with exit code 0 before it returned"),
        (lambda: (faulthandler.disable(), ctypes.string_at(0)), "was killed by SIG(SEGV|BUS)"),
        (lambda: sys.exit("enough"), "SystemExit: enough"),
    ],
    ids=["killed", "exit 3", "exit 0", "crash", "sys.exit"],
)
def test_a_process_that_dies_is_an_error_at_once(end, words):
    began = time.monotonic()
    with pytest.raises(IsolatedError, match=words):
        isolated(end)
    assert time.monotonic() - began < 20


@linux
def test_a_process_that_dies_is_seen_although_its_own_child_holds_the_pipe():
    def leaves_a_child():
        if os.fork() == 0:
            time.sleep(10)
            os._exit(0)
        os._exit(5)

    began = time.monotonic()
    with pytest.raises(IsolatedError, match="exit code 5"):
        isolated(leaves_a_child)
    assert time.monotonic() - began < 8


@forks
def test_a_time_limit_kills():
    with pytest.raises(TimeoutError, match=r"sleep ran for more than 0.2 s"):
        isolated(time.sleep, 60, timeout=0.2)
    assert left_behind() == []


@pytest.mark.parametrize("timeout", [0, -1, float("nan"), "5"])
def test_a_time_limit_that_is_none_is_refused(timeout):
    with pytest.raises(ValueError, match="timeout must be a number of seconds above 0"):
        isolated(abs, 1, timeout=timeout)


@forks
def test_an_interrupt_kills_the_process(tmp_path):
    where = tmp_path / "pid"

    def sleeps():
        where.write_text(str(os.getpid()))
        time.sleep(60)

    def interrupt():
        while not where.exists() or not where.read_text():
            time.sleep(0.01)
        time.sleep(0.5)  # an interrupt while Python is still in its fork is lost
        os.kill(os.getpid(), signal.SIGINT)

    thread = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        thread.start()
        isolated(sleeps)
    thread.join()
    assert not psutil.pid_exists(int(where.read_text()))


@linux
def test_nothing_stays_behind():
    def left():
        return psutil.Process().num_fds(), len(psutil.Process().children()), threading.active_count()

    isolated(lambda: None)  # what is imported for the first time
    before = left()
    for work in (lambda: np.ones(10), lambda: 1 / 0, lambda: os._exit(1)):
        try:
            isolated(work)
        except (ZeroDivisionError, IsolatedError):
            pass
    assert left() == before


@forks
def test_a_fork_beside_threads_multiplies_after_its_parent_did_and_nobody_is_warned():
    a = np.ones((400, 400))
    a @ a
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert isolated(lambda: float((a @ a).sum()), timeout=60).value == 400**3
    finally:
        end.set()
        thread.join()


@forks
def test_it_may_run_in_a_block_that_is_measured():
    with traced_peak() as traced:
        np.ones(5 * MIB, np.uint8)
        outcome = isolated(lambda: np.ones(MIB, np.uint8).nbytes)
    assert outcome.value == MIB
    assert MIB <= outcome.requested < MIB + 8192
    assert 5 * MIB <= traced.peak < 6 * MIB


@linux
def test_past_the_wall_memory_error_says_the_wall_and_what_was_asked_for():
    with pytest.raises(MemoryError, match=r"past the wall of 50.0 MiB: Unable to allocate 191. MiB"):
        isolated(np.ones, 25_000_000, wall="50 MiB")
    assert isolated(lambda: np.ones(5_000_000).sum(), wall="50 MiB").value == 5_000_000


@linux
def test_a_function_may_catch_its_memory_error_and_go_on():
    def tries():
        try:
            np.ones(25_000_000)
        except MemoryError:
            return np.ones(10).sum()

    assert isolated(tries, wall=50 * MIB).value == 10


def test_a_wall_that_is_no_size_is_refused_before_anything_runs():
    with pytest.raises(ValueError, match="expected a size such as"):
        isolated(time.sleep, 60, wall="200 MB")


@forks
def test_files_that_the_function_writes_are_all_that_is_left(tmp_path):
    isolated((tmp_path / "x").write_text, "done")
    assert Path(tmp_path / "x").read_text() == "done"
