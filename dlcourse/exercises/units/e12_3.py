"""12.3  The peak, from a table of moments."""

from dlcourse.exercises.unit import solution, wrong

parts = "moment", "bytes"
hints = """
- Keep a dictionary of what is alive. In each moment: put in what is made, look at the sum, then take out what is freed.
- The order matters. What a moment frees is still there while it works. And the workspace is there only while it works,
  so it never goes into the dictionary.
- `total = before + sum(alive.values()) + workspace`; keep it with its name where it is larger than the best so far;
  then `del alive[array]` for what is freed.
"""


@solution
def peak_of_step(before, moments):
    """moments: [(name, {array: bytes made}, workspace, [arrays freed after it]), …] -> name and bytes of the highest."""
    alive = {}
    highest = "", -1
    for name, made, workspace, freed in moments:
        alive |= made
        total = before + sum(alive.values()) + workspace
        if total > highest[1]:
            highest = name, total
        for array in freed:  # only now: the moment still used them
            del alive[array]
    return highest


def _highest(before, moments, *, workspace=True, freed_first=False, freed=True):
    alive = {}
    best = ("", -1)
    for name, made, own, gone in moments:
        alive |= made
        late = {array: size for array, size in alive.items() if freed and array in gone}
        alive = {array: size for array, size in alive.items() if array not in late}
        total = before + sum(alive.values()) + (0 if freed_first else sum(late.values())) + (own if workspace else 0)
        best = max(best, (name, total), key=lambda one: one[1])
    return best


@wrong
def sum_of_all(before, moments):
    """You add up everything that is ever made. Not all of it is alive at the same time: a peak is one moment."""
    name = _highest(before, moments)[0]
    return name, before + sum(sum(made.values()) + own for _, made, own, _ in moments)


@wrong
def no_workspace(before, moments):
    """The workspace is missing. It is there only during the call, and that is just when the peak can be."""
    return _highest(before, moments, workspace=False)


@wrong
def freed_at_once(before, moments):
    """You free the arrays before you look. A layer still reads them while it works; they go when it is done."""
    return _highest(before, moments, freed_first=True)


@wrong
def never_freed(before, moments):
    """Nothing is ever freed in your bill. Take out the arrays of the last column."""
    return _highest(before, moments, freed=False)


@wrong
def from_zero(before, moments):
    """What was there before the step is missing: parameters and slots are alive all the time."""
    return _highest(0, moments)


def inputs(rng):
    yield "one moment with workspace", (0, [("conv, forward", {"y": 400}, 250, [])])
    yield "an array is alive in the moment that frees it", (100, [("a", {"x": 50}, 0, []), ("b", {"y": 30}, 0, ["x"])])
    forward = [("first, forward", {"h": 64}, 30, []), ("second, forward", {"y": 8}, 0, [])]
    second = "second, backward", {"dh": 64, "dW2": 40}, 20, ["h", "y"]
    both_ways = [*forward, second, ("first, backward", {"dW1": 60}, 50, ["dh"])]
    yield "params 100, forward and backward of two layers", (100, both_ways)
    yield "the peak is at the start, in a large workspace", (10, [("a", {"x": 1}, 500, ["x"]), ("b", {"y": 90}, 0, [])])
    equal = [("a", {"x": 20}, 10, ["x"]), ("b", {"y": 30}, 0, []), ("c", {}, 0, ["y"])]
    yield "two moments that are equally high: the first one counts", (5, equal)
    yield "nothing is made", (77, [("update", {}, 0, [])])
    yield "nothing at all", (0, [("update", {}, 0, [])])
