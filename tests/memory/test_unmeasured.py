"""A measurement that failed raises and never reads as a small number; switches of the process have several owners."""

import asyncio
import functools
import gc
import os
import sys
import threading
import tracemalloc

import numpy as np
import pytest

from dlcourse import models, optim
from dlcourse.memory import (
    Monitor,
    assert_peak,
    find_leak,
    isolated,
    ledger,
    meter,
    reset_traced_peak,
    traced_peak,
    wall,
)

MIB = 2**20
forks = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs RLIMIT_DATA")


def stops():
    tracemalloc.stop()
    return np.ones(MIB)


def stops_and_starts():
    tracemalloc.stop()
    tracemalloc.start()
    return np.ones(MIB)


def clears():
    tracemalloc.clear_traces()
    return np.ones(MIB)


@pytest.fixture(autouse=True)
def nothing_is_left():
    start, reset = tracemalloc.start, tracemalloc.reset_peak
    yield
    tracemalloc.stop()
    assert (tracemalloc.start, tracemalloc.reset_peak) == (start, reset)
    assert gc.isenabled()


@pytest.mark.parametrize("code", [stops, stops_and_starts, clears])
@pytest.mark.parametrize("tool", [traced_peak, meter, functools.partial(assert_peak, "1 MiB")])
def test_a_block_in_which_tracing_was_ended_raises(tool, code):
    with pytest.raises(RuntimeError, match="could not measure: tracing was ended inside the block"), tool():
        code()


@pytest.mark.parametrize("code", [stops, stops_and_starts, clears])
def test_so_do_the_tools_that_call_a_function(code):
    with pytest.raises(RuntimeError, match="could not measure"):
        find_leak(code)
    if hasattr(os, "fork"):
        with pytest.raises(RuntimeError, match="could not measure"):
            isolated(code, start="fork")


def test_an_error_of_the_block_comes_out_and_there_is_no_number_to_read():
    for tool in (traced_peak, meter):
        with pytest.raises(KeyError, match="mine"), tool() as measured:
            stops()
            raise KeyError("mine")
        for name in type(measured).__annotations__:
            with pytest.raises(RuntimeError, match="could not measure"):
                getattr(measured, name)
    assert str(measured).startswith("could not measure")
    assert "problem" in repr(measured) or "could not" in repr(measured)


def test_before_the_end_of_a_block_there_is_no_number():
    with traced_peak() as traced, meter() as reading:
        for measured in (traced, reading):
            with pytest.raises(RuntimeError, match="not measured yet"):
                measured.kept  # noqa: B018
        assert not hasattr(reading, "another")


def requested(work):
    """As notebook 02 has it."""
    begun_here = not tracemalloc.is_tracing()
    if begun_here:
        tracemalloc.start()
    tracemalloc.reset_peak()
    before, _ = tracemalloc.get_traced_memory()
    try:
        work()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        if begun_here:
            tracemalloc.stop()


def test_a_ruler_of_the_readers_that_sets_the_peak_back_is_right_inside_and_outside():
    with meter() as reading:
        np.ones(8 * MIB, np.uint8)
        inner = requested(lambda: np.ones(2 * MIB, np.uint8))
    assert abs(inner - 2 * MIB) < 16 * 1024
    assert abs(reading.requested - 8 * MIB) < 64 * 1024
    assert not tracemalloc.is_tracing()


def test_a_tracing_that_is_begun_inside_a_block_outlives_it():
    with traced_peak():
        tracemalloc.start()
    assert tracemalloc.is_tracing()
    tracemalloc.stop()
    with assert_peak("1 MiB"):
        pass
    assert not tracemalloc.is_tracing()


# Work that is still to be run.


def generator():
    np.ones(MIB)
    yield


async def coroutine():
    np.ones(MIB)


async def stream():
    np.ones(MIB)
    yield


class Callable:
    async def __call__(self):
        np.ones(MIB)


UNRUN = [generator, coroutine, stream, functools.partial(coroutine), Callable()]


@pytest.mark.parametrize("function", UNRUN)
def test_a_generator_or_coroutine_function_is_refused(function):
    for tool in (assert_peak("1 MiB"), wall("1 MiB"), meter(), traced_peak()):
        with pytest.raises(TypeError, match="work that is still to be run"):
            tool(function)
    for call in (find_leak, isolated):
        with pytest.raises(TypeError, match="work that is still to be run"):
            call(function)


@pytest.mark.parametrize("function", UNRUN)
def test_so_is_a_function_that_returns_one(function):
    with pytest.raises(TypeError, match="work that is still to be run"):
        assert_peak("1 MiB")(lambda: function())()
    with pytest.raises(TypeError, match="work that is still to be run"):
        find_leak(lambda: function())


def test_what_has_run_is_measured():
    @assert_peak("1 MiB")
    def test():
        asyncio.run(coroutine())

    with pytest.raises(AssertionError, match=r"the peak is 8\."):
        test()


def test_what_is_no_function_or_no_tree_is_named():
    for call in (find_leak, isolated, assert_peak("1 MiB")):
        with pytest.raises(TypeError, match="expected a function, got 5"):
            call(5)
    with pytest.raises(TypeError, match="trees must be a dict"):
        Monitor(trees=[np.zeros(3)])
    with Monitor(60, {"model": models.mlp(), "slots": {"step": 3, "m": np.zeros(5)}}) as monitor:
        pass
    assert monitor.problem == "model: TypeError: holds Sequential, which is no array and no tree of arrays"
    assert monitor.peaks["slots"] == 40


# Several owners.


def beside(other, work):
    """Run `work` while the block of `other` is open on another thread and then ends."""
    inside, go_on = threading.Event(), threading.Event()

    def run():
        other(lambda: (inside.set(), go_on.wait()))

    thread = threading.Thread(target=run)
    thread.start()
    inside.wait()
    return work(lambda: (go_on.set(), thread.join()))


def in_block(tool):
    def run(wait):
        with tool():
            wait()

    return run


def in_ledger(wait):
    model = models.mlp()
    params = model.init((8, 8, 1), np.random.default_rng(0))

    def loss(*args, **options):
        wait()
        from dlcourse.losses import softmax_cross_entropy

        return softmax_cross_entropy(*args, **options)

    ledger(model, params, np.zeros((4, 8, 8, 1), np.float32), np.zeros(4, int), optimizer=optim.SGD(), loss=loss)


OTHERS = {
    "assert_peak": in_block(functools.partial(assert_peak, "1 GiB")),
    "meter": in_block(meter),
    "traced_peak": in_block(traced_peak),
    "find_leak": lambda wait: find_leak(wait, 2),
    "ledger": in_ledger,
}


@pytest.mark.parametrize("other", OTHERS)
def test_the_end_of_one_tool_leaves_the_tracing_of_another(other):
    def work(end_the_other):
        with traced_peak() as traced:
            end_the_other()
            np.ones(40 * MIB, np.uint8)
        return traced

    traced = beside(OTHERS[other], work)
    assert abs(traced.peak - 40 * MIB) < 4 * MIB  # what the other thread makes meanwhile counts too
    assert not tracemalloc.is_tracing()


def test_the_collector_is_enabled_again_when_the_last_of_two_has_ended():
    def work(end_the_other):
        seen = []

        def step():
            if not seen:
                end_the_other()
            seen.append(gc.isenabled())

        find_leak(step, 2)
        return seen

    assert not any(beside(lambda wait: find_leak(wait, 2), work))
    assert gc.isenabled()


def test_a_step_that_enables_the_collector_is_told():
    with pytest.raises(RuntimeError, match="enabled the collector"):
        find_leak(lambda: gc.enable())
    assert not find_leak(lambda: (gc.disable(), gc.enable(), gc.disable()))


@linux
def test_walls_of_two_threads_leave_no_limit_behind():
    def run():
        import resource

        def work(end_the_other):
            with wall("200 MiB"):
                end_the_other()
                return resource.getrlimit(resource.RLIMIT_DATA)[0]

        before = resource.getrlimit(resource.RLIMIT_DATA)
        inside = beside(in_block(lambda: wall("100 MiB")), work)
        return inside != resource.RLIM_INFINITY, before == resource.getrlimit(resource.RLIMIT_DATA)

    assert isolated(run).value == (True, True)


@forks
@pytest.mark.parametrize("tool", [traced_peak, meter, functools.partial(assert_peak, "64 MiB")])
def test_a_child_that_is_forked_inside_a_block_may_leave_it(tool):
    try:
        with tool():
            child = os.fork()
            if child == 0:
                np.ones(MIB, np.uint8)
        if child == 0:
            os._exit(int(tracemalloc.is_tracing()))
    finally:
        if child == 0:
            os._exit(2)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


# NumPy's own numbers.


def test_numpys_numbers_are_as_good_as_pythons():
    found = find_leak(lambda: kept.append(np.zeros(10)), np.int8(3), warm_up=np.int64(1))
    assert type(found.growth) is int and found.growth == 80
    assert type(found.leaks[0].copies) is int and type(found.leaks[0].growth) is int
    with assert_peak(np.int32(2**20)):
        pass
    with Monitor(np.float32(30)) as monitor:
        pass
    assert type(monitor.interval) is float
    if hasattr(os, "fork"):
        assert isolated(abs, -1, timeout=np.float32(60)).value == 1
    with pytest.raises(TypeError):
        find_leak(lambda: None, 2.5)


kept: list = []


def test_an_inner_reset_keeps_the_peak_of_a_block_on_another_thread():
    def work(end_the_other):
        np.ones(3 * MIB, np.uint8)
        reset_traced_peak()
        end_the_other()

    peaks = []

    def other(wait):
        with traced_peak() as traced:
            wait()
        peaks.append(traced.peak)

    beside(other, work)
    assert abs(peaks[0] - 3 * MIB) < 64 * 1024
