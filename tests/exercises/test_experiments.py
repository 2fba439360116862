"""Experiments on what a process holds. Resident sizes are looked at in processes of their own."""

import os
import subprocess
import sys

import numpy as np
import pytest

from dlcourse.exercises.experiments import free_order, freed_blocks, made_again, read_and_write
from dlcourse.memory import allocator, isolated, process_sizes

MIB = 2**20
glibc = pytest.mark.skipif(allocator() is None, reason="needs mallinfo2")
linux = pytest.mark.skipif(sys.platform != "linux", reason="needs fork and PSS")


def test_each_moment_has_one_array_less_in_every_order():
    for order in ("scattered", "last first"):
        moments = isolated(freed_blocks, order, blocks=5, size=3).value  # it moves a limit of the allocator's
        assert [moment.requested for moment in moments] == [15, 12, 9, 6, 3, 0]


def test_each_block_is_freed_once():
    assert free_order("scattered", 5) == [0, 2, 4, 1, 3]
    assert free_order("last first", 3) == [2, 1, 0]


def test_an_order_that_is_not_known_is_named():
    with pytest.raises(ValueError, match="'scattered' or 'last first', got 'first'"):
        freed_blocks("first", blocks=2)


@glibc
def test_holes_between_arrays_stay_resident_until_they_are_given_back():
    kept = isolated(freed_blocks, start="spawn").value[50]
    assert kept.requested == 50 * MIB
    assert 95 * MIB < kept.resident < 110 * MIB
    assert 0.45 < kept.usage < 0.6
    given_back = isolated(freed_blocks, give_back=True, start="spawn").value[50]
    assert 45 * MIB < given_back.resident < 60 * MIB


@glibc
@pytest.mark.parametrize("padding", [0, 5000])
def test_the_heap_is_made_shorter_whatever_the_environment_has_put_on_it(padding):
    # Without holes for tracemalloc's notes one of them pinned the end of the heap in each environment but a lucky one.
    code = (
        "from dlcourse.exercises import experiments\n"
        "from dlcourse.memory import isolated\n"
        "moments = isolated(experiments.freed_blocks, 'last first', start='spawn').value\n"
        "print(*(moment.resident for moment in moments))"
    )
    environment = {"PATH": os.environ["PATH"], "PYTHONPATH": os.pathsep.join(sys.path), "PADDING": "x" * padding}
    text = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True
    ).stdout
    sizes = [int(word) for word in text.split()]
    assert sizes[49] > 95 * MIB > 60 * MIB > sizes[50]
    assert sizes[100] < 10 * MIB


@glibc
def test_what_was_freed_is_used_again():
    first, *others = isolated(made_again, start="spawn").value
    assert 14 * MIB < first < 20 * MIB
    assert all(abs(rise) < MIB for rise in others)


@linux
def test_a_forked_process_has_of_its_own_what_it_writes():
    array = np.ones((32, MIB), np.uint8)
    child, parent = isolated(read_and_write, array, 0, start="fork").value
    writer, _ = isolated(read_and_write, array, 16, start="fork").value
    assert array.min() == 1
    assert child.rss > 32 * MIB > child.uss
    assert 14 * MIB < writer.uss - child.uss < 20 * MIB
    assert child.pss + parent.pss < child.rss + parent.rss - 30 * MIB


def test_the_sizes_of_a_process_are_ordered():
    sizes = process_sizes()
    assert abs(sizes.rss - process_sizes(os.getpid()).rss) < MIB
    assert sizes.uss is None or 0 < sizes.uss <= sizes.rss
    assert sizes.pss is None or sizes.uss <= sizes.pss <= sizes.rss
