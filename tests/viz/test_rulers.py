"""Pictures of requested and resident bytes."""

from dlcourse import viz
from dlcourse.exercises.experiments import Held

MIB = 2**20


def moments(usage=0.5):
    return [Held((4 - i) * MIB, 4 * MIB, usage) for i in range(5)]


def test_the_two_rulers_are_said_in_words_too():
    shown = viz.rulers({"zeros": (64 * MIB, -4096), "ones": (64 * MIB, 65 * MIB)}, "Zeros cost nothing")
    assert shown.alt.startswith("Zeros cost nothing.")
    assert "zeros 64.0 MiB and 0 B; ones 64.0 MiB and 65.0 MiB" in shown.alt
    assert shown.png().startswith(b"\x89PNG")


def test_the_looks_that_met_an_array_are_counted():
    shown = viz.looks([(0.1, 0.2), (0.5, 0.6)], [(0.0, 0.0), (0.15, 8.0), (0.4, 0.0)], 8)
    assert shown.axes[0].get_title(loc="left") == "3 looks met 1 of 2 arrays"
    assert shown.png().startswith(b"\x89PNG")


def test_the_heap_says_what_is_held_when_some_blocks_are_freed():
    shown = viz.heap(moments(), "scattered", 2)
    assert "2 of 4 arrays freed: 2.00 MiB requested, 4.00 MiB resident, usage 50 %" in shown.alt
    pale = [patch.get_facecolor()[0] > 0.5 for patch in shown.axes[2].patches]
    assert pale == [True, False, True, False]


def test_a_usage_that_cannot_be_asked_is_called_not_available():
    assert "usage not available" in viz.heap(moments(usage=None), "last first", 4).alt
