"""`isolated`: the answer is not lost on the way out, and what the library beneath refuses is said in words."""

import multiprocessing
import os
import sys

import pytest

from dlcourse import models, optim
from dlcourse.memory import admit, isolated

forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")


@forks
def test_a_result_is_sent_before_stdout_is_flushed():
    def closes():
        sys.stdout.close()
        return 5

    def has_none():
        sys.stdout = sys.stderr = None
        return 6

    assert isolated(closes, start="fork").value == 5
    assert isolated(has_none, start="fork").value == 6


class Unspeakable(Exception):
    def __str__(self):
        raise ZeroDivisionError

    def __reduce__(self):
        raise SystemExit


class Sealed(Exception):
    def add_note(self, text):
        raise AttributeError


@forks
def test_an_exception_without_a_text_comes_back_by_its_type():
    def fails():
        raise Unspeakable

    with pytest.raises(RuntimeError, match=r"Unspeakable: \(its text cannot be made\)"):
        isolated(fails, start="fork")

    def sealed():
        raise Sealed("x")

    with pytest.raises(Sealed, match="x"):
        isolated(sealed, start="fork")


@forks
def test_a_result_whose_pickling_ends_the_program_is_named():
    class Result:
        def __reduce__(self):
            raise SystemExit("no")

    with pytest.raises(RuntimeError, match="the result, of type Result, does not pickle: no"):
        isolated(Result, start="fork")


def in_a_pool(tool):
    try:
        if tool == "isolated":
            isolated(abs, -1)
        else:
            admit(models.mlp(), (8, 8, 1), optim.SGD(), budget="1 GiB", batch_size=2)
    except Exception as error:  # noqa: BLE001
        return type(error).__name__, str(error)


@forks
@pytest.mark.parametrize("tool", ["isolated", "admit"])
def test_in_a_worker_of_a_pool_it_says_that_there_can_be_no_child(tool):
    with multiprocessing.get_context("fork").Pool(1) as pool:
        kind, text = pool.apply(in_a_pool, (tool,))
    assert kind == "IsolatedError"
    assert "worker of multiprocessing.Pool" in text and "ProcessPoolExecutor" in text


@forks
def test_a_process_that_cannot_be_started_is_an_error_of_its_own(monkeypatch):
    def no_fork():
        raise BlockingIOError(11, "Resource temporarily unavailable")

    monkeypatch.setattr(os, "fork", no_fork)
    with pytest.raises(RuntimeError, match=r"no process could be started for abs: .*temporarily"):
        isolated(abs, -1, start="fork")
