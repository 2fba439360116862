"""`meter`: both rulers, and why they differ. What the system saw is asserted on in a child process only."""

import re
import subprocess
import sys

import numpy as np
import pytest

from dlcourse.memory import isolated, meter, system
from dlcourse.memory.meter import explain

MIB = 2**20
linux = pytest.mark.skipif(sys.platform != "linux", reason="VmHWM is Linux's")


def read(f):
    with meter() as reading:
        kept = f()
    del kept
    return reading


def in_child(f, before=lambda: None):
    def run():
        read(warm_up)
        before()
        return read(f)

    return isolated(run).value


def warm_up():
    """A forked process has the pages of libraries in memory only once it has touched them."""
    np.ones(MIB, np.uint8)
    np.zeros(MIB, np.uint8)


@linux
def test_written_arrays_are_the_same_to_both_rulers():
    reading = in_child(lambda: np.ones(40 * MIB, np.uint8))
    assert abs(reading.resident - 40 * MIB) < MIB
    assert reading.why == "less than 1 MiB or 5 %"
    assert reading.ruler == "VmHWM"


@linux
def test_untouched_zeros_are_requested_and_not_seen():
    reading = in_child(lambda: np.zeros(40 * MIB, np.uint8))
    assert 40 * MIB <= reading.requested < 40 * MIB + 4096
    assert reading.resident < MIB
    assert re.search("were never written", reading.why)


@linux
def test_memory_that_the_allocator_held_is_named():
    def leave_free_memory_on_the_heap():
        np.ones(25 * MIB, np.uint8)  # freeing it raises the size from which arrays are mapped
        np.ones(20 * MIB, np.uint8)

    reading = in_child(lambda: np.ones(18 * MIB, np.uint8), leave_free_memory_on_the_heap)
    assert reading.resident < 17 * MIB
    assert "that the allocator held free" in reading.why


@linux
def test_pages_of_mapped_files_are_named(tmp_path):
    np.save(tmp_path / "x.npy", np.ones(20 * MIB, np.uint8))

    def touch():
        x = np.load(tmp_path / "x.npy", mmap_mode="r")
        assert x.sum(dtype=int) == 20 * MIB
        return x

    reading = in_child(touch)
    assert reading.requested < MIB
    assert reading.resident >= 19 * MIB
    assert "pages of mapped files" in reading.why


@linux
def test_what_tracing_itself_takes_is_named():
    reading = in_child(lambda: [float(i) for i in range(300_000)])
    assert "tracemalloc's own notes" in reading.why


@linux
def test_the_buffers_of_the_first_product_are_named():
    code = """
import numpy as np
from dlcourse.memory import meter
a = np.ones((1200, 1200))
for _ in range(2):
    with meter() as m:
        b = a @ a
    print(m.why)
"""
    first, second = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert "BLAS's buffers" in first
    assert "BLAS" not in second


@linux
def test_an_inner_meter_does_not_lose_the_peaks_of_the_outer_one():
    def both():
        read(warm_up)
        with meter() as outer:
            np.ones(40 * MIB, np.uint8)
            with meter() as inner:
                np.ones(34 * MIB, np.uint8)
        return outer, inner

    outer, inner = isolated(both).value
    assert abs(outer.requested - 40 * MIB) < MIB / 8
    assert abs(outer.resident - 40 * MIB) < 2 * MIB
    assert abs(inner.requested - 34 * MIB) < MIB / 8
    assert abs(inner.resident - 34 * MIB) < 2 * MIB


@linux
def test_the_peak_of_the_whole_process_outlives_a_meter():
    def run():
        np.ones(60 * MIB, np.uint8)
        before = system.peak_since_start()
        read(lambda: None)
        return before, system.peak_since_start()

    before, after = isolated(run).value
    assert after >= before


def test_a_reading_is_equal_to_the_byte_in_every_run():
    def run():
        reading = read(lambda: np.ones(1000) * 2)
        return reading.requested, reading.kept

    run()  # code that runs for the first time keeps some bytes for itself
    first, *others = [run() for _ in range(6)]
    assert others == [first] * 5
    assert 16_000 <= first[0] < 17_000
    assert 8_000 <= first[1] < 8_500


def test_a_block_that_fails_is_measured():
    with pytest.raises(ZeroDivisionError), meter() as reading:
        np.ones(MIB, np.uint8)
        1 / 0  # noqa: B018
    assert MIB <= reading.requested < MIB + 4096
    assert reading.why


def test_an_array_that_was_refused_is_not_kept():
    with meter() as reading, pytest.raises(MemoryError):
        np.empty(2**60, np.uint8)  # until NumPy 2.4 it counts as if it had been given
    assert reading.kept < MIB


def test_a_reading_prints_three_lines_and_nothing_unless_asked(capsys):
    reading = read(lambda: np.ones(MIB, np.uint8))
    assert capsys.readouterr().out == ""
    assert reading.exact == "requested   peak 1.00 MiB, at the end 1.00 MiB"
    lines = str(reading).splitlines()
    assert lines[0] == reading.exact
    assert [line.split("  ")[0] for line in lines] == ["requested", "system saw", "difference"]


def test_where_the_peak_cannot_be_set_back_it_is_a_lower_bound(monkeypatch):
    monkeypatch.setattr(system, "_reset_high_water", lambda: False)
    monkeypatch.setattr(system, "_high_water", lambda: 2**40)  # reached long before
    reading = read(lambda: None)
    assert reading.lower_bound
    assert reading.ruler == "RSS at the end"
    assert "a lower bound" in str(reading)
    assert "cannot be told" in reading.why


def test_where_the_peak_cannot_be_set_back_but_rose_it_is_the_peak(monkeypatch):
    peaks = iter([2**40, 2**41])
    monkeypatch.setattr(system, "_reset_high_water", lambda: False)
    monkeypatch.setattr(system, "_high_water", lambda: next(peaks))
    with system.measure_resident() as grown:
        pass
    assert not grown.lower_bound
    assert grown.peak == 2**41 - grown.before.total


NOTHING = {"mapped": 0, "others": 0, "overhead": 0, "held": 0}


@pytest.mark.parametrize(
    ("requested", "resident", "told", "words"),
    [
        (100, 100.9, {}, ["less than"]),
        (1000, 960, {}, ["less than 1 MiB or 5 %"]),
        (100, 0, {}, ["100 MiB were never written"]),
        (100, 0, {"held": 100.5}, ["100 MiB found room in the 100 MiB that the allocator held free, or were never"]),
        (100, 0, {"held": 30}, ["70.0 MiB or more were never written", "the allocator held 30.0 MiB"]),
        (100, 0, {"held": None}, ["100 MiB found room in memory that the allocator held free, or were never"]),
        (0, 50, {"mapped": 50}, ["50.0 MiB more are pages of mapped files"]),
        (8, 40, {"others": 32}, ["32.0 MiB more come from outside of Python and malloc"]),
        (0, 50, {"mapped": 20}, ["20.0 MiB more are pages", "30.0 MiB more for a time"]),
        (100, 20, {"mapped": 20}, ["20.0 MiB more are pages", "100 MiB were never written"]),
        (0, 50, {"overhead": 49}, ["49.0 MiB more are tracemalloc's own notes"]),
    ],
)
def test_the_difference_is_told_in_parts_that_add_up(requested, resident, told, words):
    told = {name: size and int(size * MIB) for name, size in (NOTHING | told).items()}
    text = explain(int(requested * MIB), int(resident * MIB), **told)
    assert all(part in text for part in words), text
    assert len(text.split("; ")) == len(words)
