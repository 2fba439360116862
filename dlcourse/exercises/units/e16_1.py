"""16.1  How many steps may one process run?"""

from dlcourse.exercises.unit import solution, wrong

hints = """
- How many steps fit into one process? Their leaks together may be as much as room, and not more.
- each = room // leak, at least 1: a step that does not fit has to run all the same. Without a leak all steps are one run.
- [(first, min(first + each, steps)) for first in range(0, steps, each)].
"""


@solution
def runs(steps, leak, room):
    """-> [(first, end), …]: steps first … end - 1 run in one process."""
    # a leak of 0 never fills the room; a leak larger than it still has to run, one step a process
    each = max(1, room // leak) if leak else max(1, steps)
    return [(first, min(first + each, steps)) for first in range(0, steps, each)]


@wrong
def last_run_dropped(steps, leak, room):
    """Your last run is missing: the steps that do not fill a process. They want to be trained, too."""
    each = max(1, room // leak) if leak else max(1, steps)
    return [(first, first + each) for first in range(0, steps - each + 1, each)]


@wrong
def last_run_too_long(steps, leak, room):
    """Your last run goes past the last step. Its end is `steps` at most."""
    each = max(1, room // leak) if leak else max(1, steps)
    return [(first, first + each) for first in range(0, steps, each)]


@wrong
def last_step_named(steps, leak, room):
    """Your second number is the last step of the run. It should be the one after it, as in range(first, end)."""
    return [(first, end - 1) for first, end in runs(steps, leak, room)]


@wrong
def one_step_fewer(steps, leak, room):
    """Your runs are a step too short. Leaks that fill the room exactly still fit."""
    each = max(1, (room - 1) // leak) if leak else max(1, steps)
    return [(first, min(first + each, steps)) for first in range(0, steps, each)]


@wrong
def one_step_each(steps, leak, room):
    """You take a process for each step. That is right if a step fills the room; else it costs starts that nobody needs."""
    return [(step, step + 1) for step in range(steps)]


def one_run(steps, leak, room):
    return [(0, steps)] if steps else []


def rounded_up(steps, leak, room):
    each = max(1, -(-room // leak)) if leak else max(1, steps)
    return [(first, min(first + each, steps)) for first in range(0, steps, each)]


def lengths(steps, leak, room):
    return [end - first for first, end in runs(steps, leak, room)]


also_wrong = one_run, rounded_up, lengths


def inputs(rng):
    yield "10 steps, a leak of 3, room for 10", (10, 3, 10)
    yield "leaks that fill the room exactly", (9, 5, 15)
    yield "no leak", (7, 0, 100)
    yield "a leak larger than the room", (3, 50, 10)
    yield "no steps", (0, 1, 10)
    yield "bytes of a real training", (1000, 3 * 2**20, 300 * 2**20)
