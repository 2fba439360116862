"""16.2  Bytes of the whole machine."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- Three cases. In each ask which copies of the state are alive, and whether work is alive beside them.
- By pickle there are two moments, during the epoch and after it; the higher one counts.
- max(2 * state + work, 3 * state) by pickle, and state + work for the other two.
"""


@solution
def highest_moment(state, work, how):
    """how: "one process", "pickle" or "shared" -> bytes of parent and child together, at the highest moment."""
    if how == "pickle":
        # during the epoch; then work is gone, and the new state arrives beside the old one
        return max(2 * state + work, 3 * state)
    return state + work


@wrong
def the_hand_back_forgotten(state, work, how):
    """By pickle you look at the epoch alone. When it is over, the new state arrives in the parent beside the old one, and
    the child still has its own: three. For a small work that is the higher moment."""
    return 2 * state + work if how == "pickle" else state + work


@wrong
def work_at_the_hand_back(state, work, how):
    """You add work to the three states. When the result is handed back, the epoch's own arrays are gone: two moments, and
    the higher one counts."""
    return 3 * state + work if how == "pickle" else state + work


@wrong
def the_parent_alone(state, work, how):
    """By pickle you count the parent alone. The child's copy of the state and its work lie in the same machine."""
    return 2 * state if how == "pickle" else state + work


@wrong
def shared_counts_twice(state, work, how):
    """You count the shared state once for each process. It is there once, however many map it."""
    return highest_moment(state, work, how) + (state if how == "shared" else 0)


@wrong
def work_left_out(state, work, how):
    """In one process you leave out work: what the epoch itself makes."""
    return state if how == "one process" else highest_moment(state, work, how)


def always_two(state, work, how):
    return 2 * state + work


def only_at_the_end(state, work, how):
    return 3 * state if how == "pickle" else state + work


def lower_of_both(state, work, how):
    return min(2 * state + work, 3 * state) if how == "pickle" else state + work


also_wrong = always_two, only_at_the_end, lower_of_both


def inputs(rng):
    for how in ("one process", "pickle", "shared"):
        yield f"a state of 100, work of 30, {how}", (100, 30, how)
        yield f"a state of 100, work of 400, {how}", (100, 400, how)
    yield "bytes of a real training, pickle", (6 * 10**9, 2 * 10**9, "pickle")
