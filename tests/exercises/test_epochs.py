"""Epochs in processes of their own."""

import multiprocessing
from multiprocessing.shared_memory import SharedMemory

import numpy as np
import pytest

from dlcourse.exercises.epochs import burden, epoch, epoch_in_block, first_state, flat_state, left_behind, shared
from dlcourse.memory import allocator, isolated, traced_peak

MIB = 2**20
STARTS = multiprocessing.get_all_start_methods()


@pytest.mark.parametrize("start", STARTS)
def test_epochs_in_processes_end_at_the_same_bits_as_in_one(start):
    params, slots = first_state()
    losses = [epoch(params, slots, number) for number in range(2)]
    with shared(flat_state(*first_state())) as (block, views):
        assert [isolated(epoch_in_block, block, number, start=start).value for number in range(2)] == losses
        arrays = {path: view.copy() for path, view in views.items()}
    expected = flat_state(params, slots)
    assert len(arrays) == len(expected) == 12
    assert all(np.array_equal(arrays[path], array) for path, array in expected.items())
    with pytest.raises(FileNotFoundError):
        SharedMemory(block.name)


def test_no_new_state_arrives_in_the_parent():
    with shared(flat_state(*first_state())) as (block, views):
        size = sum(view.nbytes for view in views.values())
        isolated(epoch_in_block, block, 0)
        with traced_peak() as traced:
            isolated(epoch_in_block, block, 1)
    assert traced.peak < size / 3


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")  # Python cannot close it, and says so
def test_a_block_is_gone_after_an_error_even_if_a_view_is_still_held():
    with pytest.raises(KeyError), shared({"x": np.ones(3), "y": np.zeros((), np.int16)}) as (block, views):
        held = views["x"]
        raise KeyError
    with pytest.raises(FileNotFoundError):
        SharedMemory(block.name)
    assert held.tolist() == [1.0, 1.0, 1.0]


@pytest.mark.skipif(allocator() is None, reason="needs glibc")
@pytest.mark.parametrize("start", STARTS)
def test_a_child_takes_leak_and_holes_with_it_and_brings_its_result(start):
    for kind in ("a leak", "holes"):
        here, child = (isolated(left_behind, kind, one, start="spawn").value for one in (None, start))
        assert here > 24 * MIB > 4 * child
    assert isolated(left_behind, "a live set", start, start="spawn").value > 24 * MIB


def test_a_burden_that_is_not_known_is_named():
    with pytest.raises(ValueError, match="'a leak', 'holes' or 'a live set', got 'x'"):
        burden("x")
