"""The story's training, rebuilt small: what rises, what is flat, and that the arithmetic is the same."""

import itertools
import sys
from functools import cache

import pytest

from dlcourse.exercises.incident import Way, train, watched
from dlcourse.memory import isolated

MIB = 2**20
STEPS, SAMPLES = 14, 96  # six steps to an epoch
WAYS = {
    "objects": Way(),
    "apart": Way(objects=False),
    "process": Way(process=True),
    "process, numbers": Way(process=True, numbers=True),
    "both": Way(objects=False, process=True),
    "last": Way(objects=False, columns=False, copies=False),
    "float32": Way(objects=False, columns=False, copies=False, dtype="float32"),
}

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="a wall, and a fork for each step")


@cache
def seen(name: str, wall: int | None = None) -> list[dict]:
    return isolated(watched, WAYS[name], STEPS, SAMPLES, start="spawn", wall=wall).value


def rise(moments: list[dict]) -> int:
    return moments[-1]["held"] - moments[len(moments) // 2]["held"]


@pytest.mark.parametrize("name", ["objects", "process"])
def test_records_in_a_history_rise_and_a_process_for_each_step_that_hands_them_back_does_not_help(name):
    steps = [moment["held"] for moment in seen(name)]
    rises = [after - before for before, after in itertools.pairwise(steps)]
    assert len(steps) == STEPS
    assert min(rises) > 3 * MIB
    assert max(rises) < 5 * MIB


@pytest.mark.parametrize("name", ["apart", "process, numbers", "both", "last", "float32"])
def test_each_fix_that_hands_on_numbers_alone_is_flat_to_the_byte(name):
    assert len(seen(name)) == STEPS
    assert rise(seen(name)) == 0


def test_every_way_computes_the_same_bits():
    first, *others = ([moment["bits"] for moment in seen(name)] for name in WAYS if name != "float32")
    assert len(set(first)) == STEPS
    assert all(other == first for other in others)
    assert [moment["bits"] for moment in seen("float32")] != first
    ends = [seen(name)[-1] for name in WAYS if name != "float32"]
    assert len({(end["loss"], end["right"]) for end in ends}) == 1


def test_the_first_meets_the_wall_and_by_then_holds_20_times_the_last_with_the_same_numbers():
    with pytest.raises(MemoryError, match=r"past the wall of 40\.0 MiB"):
        isolated(train, Way(), [], STEPS, SAMPLES, start="spawn", wall=40 * MIB)
    moments = seen("objects", 40 * MIB)
    last = seen("last")[len(moments) - 1]
    assert 4 < len(moments) < STEPS
    assert moments[-1]["held"] > 20 * last["held"]
    assert (moments[-1]["loss"], moments[-1]["right"]) == (last["loss"], last["right"])


def test_a_process_for_each_step_meets_the_wall_too():
    assert 4 < len(seen("process", 40 * MIB)) < STEPS


def test_the_system_sees_the_same_order():
    grown = {name: seen(name)[-1]["resident"] - seen(name)[1]["resident"] for name in ("objects", "apart", "both")}
    assert grown["objects"] > 3 * max(grown["apart"], grown["both"])
