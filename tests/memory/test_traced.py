"""The two rulers: exact bytes in this process, resident ones in a child."""

import threading
import tracemalloc

import numpy as np
import pytest

from dlcourse.memory.traced import reset_traced_peak, traced_peak

MIB = 2**20
SMALL = 4096  # for Python's own objects


def test_the_traced_peak_is_what_was_asked_for_whether_written_or_not():
    with traced_peak() as traced:
        np.zeros(5 * MIB, np.uint8)
        kept = np.zeros(2 * MIB, np.uint8)
    assert 5 * MIB <= traced.peak < 5 * MIB + SMALL
    assert kept.nbytes <= traced.kept < kept.nbytes + SMALL


def test_an_inner_block_does_not_lose_the_peak_of_the_outer_one():
    with traced_peak() as outer:
        np.empty(8 * MIB, np.uint8)
        with traced_peak() as inner:
            np.empty(MIB, np.uint8)
        with traced_peak() as second:
            np.empty(3 * MIB, np.uint8)
    assert 8 * MIB <= outer.peak < 8 * MIB + SMALL
    assert MIB <= inner.peak < MIB + SMALL
    assert 3 * MIB <= second.peak < 3 * MIB + SMALL


def test_the_peak_of_an_inner_block_counts_for_the_outer_one():
    with traced_peak() as outer:
        held = np.empty(MIB, np.uint8)
        with traced_peak() as inner:
            np.empty(6 * MIB, np.uint8)
        np.empty(2 * MIB, np.uint8)
    assert held.nbytes + 6 * MIB <= outer.peak < held.nbytes + 6 * MIB + SMALL
    assert 6 * MIB <= inner.peak < 6 * MIB + SMALL


def test_the_peak_can_be_set_back_inside_a_block_and_the_block_keeps_it():
    with traced_peak() as traced:
        np.empty(4 * MIB, np.uint8)
        reset_traced_peak()
        assert tracemalloc.get_traced_memory()[1] < tracemalloc.get_traced_memory()[0] + MIB
    assert 4 * MIB <= traced.peak < 4 * MIB + SMALL


def test_arrays_alone_measure_the_same_in_every_run():
    """But for some bytes of Python's own: its free lists are not ours."""

    def peak():
        with traced_peak() as traced:
            a = np.ones(100_000)
            a * 2 + 1
        return traced.peak, traced.kept

    for _ in range(3):
        peak()
    for figures in zip(*(peak() for _ in range(10)), strict=True):
        assert max(figures) - min(figures) < 1024


def test_a_block_that_fails_ends_tracing_and_is_measured():
    with pytest.raises(ZeroDivisionError), traced_peak() as traced:
        np.empty(MIB, np.uint8)
        1 / 0  # noqa: B018
    assert MIB <= traced.peak < MIB + SMALL
    assert not tracemalloc.is_tracing()


def test_tracing_that_others_began_goes_on():
    tracemalloc.start()
    try:
        with traced_peak():
            pass
        assert tracemalloc.is_tracing()
    finally:
        tracemalloc.stop()


def test_a_block_that_ends_in_one_thread_leaves_the_one_that_another_opened():
    inside, go_on = threading.Event(), threading.Event()

    def other():
        with traced_peak():
            inside.set()
            go_on.wait()

    thread = threading.Thread(target=other)
    thread.start()
    inside.wait()
    with traced_peak() as traced:  # begun second, and ends last
        go_on.set()
        thread.join()
        np.empty(3 * MIB, np.uint8)
    assert abs(traced.peak - 3 * MIB) < SMALL
    assert not tracemalloc.is_tracing()
