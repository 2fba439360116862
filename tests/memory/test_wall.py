"""The wall: a MemoryError at the budget, and a process that lives on. Always in a child."""

import sys
import threading

import numpy as np
import pytest

from dlcourse.memory import isolated, wall
from dlcourse.workers import one_blas_thread

MIB = 2**20
# The wall does not count free memory that the child finds in its allocator, and how much that is depends on the tests
# before. So what must fit and what must not lie hundreds of MiB on either side of it. Nothing of it is written.
linux = pytest.mark.skipif(sys.platform != "linux", reason="only Linux holds RLIMIT_DATA")


def refused(count):
    try:
        np.empty(count, np.uint8)
    except MemoryError:
        return True
    return False


@linux
def test_under_the_wall_arrays_fit_past_it_they_raise_and_after_it_they_fit_again():
    def run():
        with wall("400 MiB"):
            inside = refused(300 * MIB), refused(900 * MIB)
        return (*inside, refused(900 * MIB))

    assert isolated(run).value == (False, True, False)


@linux
def test_what_is_there_before_is_not_counted():
    def run():
        there = np.ones(200 * MIB, np.uint8)
        with wall(400 * MIB):
            return refused(300 * MIB), refused(900 * MIB), there.nbytes

    assert isolated(run).value == (False, True, 200 * MIB)


@linux
def test_the_wall_is_lifted_when_the_block_fails():
    def run():
        with pytest.raises(MemoryError), wall("50 MiB"):
            np.empty(600 * MIB, np.uint8)
        with pytest.raises(ZeroDivisionError), wall("50 MiB"):
            1 / 0  # noqa: B018
        return refused(500 * MIB)

    assert isolated(run).value is False


@linux
def test_an_inner_wall_never_loosens_the_outer_one():
    def run():
        with wall("500 MiB"):
            with wall("2 GiB"):
                looser = refused(1000 * MIB)
            with wall("20 MiB"):
                tighter = refused(400 * MIB)
            return looser, tighter, refused(400 * MIB), refused(1000 * MIB)

    assert isolated(run).value == (True, True, False, True)


@linux
def test_many_small_objects_meet_the_wall_too():
    def run():
        with pytest.raises(MemoryError), wall("30 MiB"):
            _ = [bytes(900) for _ in range(10**6)]
        return sum(range(1000))

    assert isolated(run).value == 499500


@linux
def test_products_in_several_threads_find_their_buffers_under_the_wall():
    def run():
        a, together = np.ones((300, 300), np.float32), threading.Barrier(3)

        def products():
            together.wait()
            for _ in range(10):
                a @ a

        with wall("40 MiB"):
            a @ a
            threads = [threading.Thread(target=products) for _ in range(3)]
            with one_blas_thread():
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
            return float((a @ a)[0, 0])

    assert isolated(run).value == 300


@linux
def test_a_block_that_lowers_the_hard_limit_keeps_its_result():
    def run():
        import resource

        with wall("400 MiB"):
            resource.setrlimit(resource.RLIMIT_DATA, (2**40, 2**40))
            return 5

    assert isolated(run).value == 5


def test_elsewhere_it_says_that_there_is_no_such_limit(monkeypatch):
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(OSError, match=r"wall\('1 MiB'\): darwin has no limit"), wall("1 MiB"):
        pass


@linux
def test_a_system_that_does_not_hold_the_limit_is_found_out(monkeypatch):
    import resource

    monkeypatch.setattr(resource, "setrlimit", lambda *_: None)
    with pytest.raises(OSError, match="does not hold RLIMIT_DATA"), wall("1 MiB"):
        pass


def test_a_budget_that_is_no_size_is_refused():
    with pytest.raises(ValueError, match="expected a size such as"), wall("200 MB"):
        pass
