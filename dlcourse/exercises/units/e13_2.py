"""13.2  The step at the wall."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- Before step 1 it holds start, before step 2 start + each, and so on. In the step it needs moment more.
- Step n needs start + (n - 1) * each + moment. Which is the first n for which this is more than wall?
- If start + moment > wall, it is 1. Else, with room = wall - start - moment, it is room // each + 2.
"""


@solution
def step_at_wall(start, each, moment, wall):
    """Bytes, integers -> the number of the step, 1, 2, …; None if it never comes."""
    room = wall - start - moment
    if room < 0:
        return 1
    # room // each steps more fit after the first, and the next one does not
    return room // each + 2 if each > 0 else None


@wrong
def counted_from_0(start, each, moment, wall):
    """You are one step too early. Before step 1 nothing was kept yet: step n needs start + (n - 1) * each + moment."""
    step = step_at_wall(start, each, moment, wall)
    return step and step - 1


@wrong
def the_moment_forgotten(start, each, moment, wall):
    """You compare what is held between the steps. The wall is met inside a step, where `moment` comes on top."""
    return step_at_wall(start, each, 0, wall)


@wrong
def full_is_too_much(start, each, moment, wall):
    """A step that needs exactly `wall` bytes still fits. More than the wall is an error, as much is not."""
    return step_at_wall(start, each, moment, wall - 1)


@wrong
def kept_and_moment(start, each, moment, wall):
    """You add `each` to the moment of the same step. What the step keeps is a part of what it takes for the moment."""
    return step_at_wall(start, each, moment + each, wall)


@wrong
def never_is_a_number(start, each, moment, wall):
    """A training that keeps nothing and fits once fits for ever. Then there is no such step: return None."""
    return step_at_wall(start, each, moment, wall) or 0


def not_whole(start, each, moment, wall):
    room = wall - start - moment
    return 1 if room < 0 else room / each + 2 if each else None


def start_forgotten(start, each, moment, wall):
    return step_at_wall(0, each, moment, wall)


def first_step_always_fits(start, each, moment, wall):
    step = step_at_wall(start, each, moment, wall)
    return 2 if step == 1 else step


also_wrong = not_whole, start_forgotten, first_step_always_fits


def inputs(rng):
    yield "10 at the start, 5 each, 7 for a moment, wall 60", (10, 5, 7, 60)
    yield "a step that just fits", (10, 10, 10, 40)
    yield "the first step does not fit", (30, 5, 40, 60)
    yield "nothing is kept", (10, 0, 7, 60)
    yield "nothing is kept, and it does not fit", (10, 0, 70, 60)
    yield "bytes of a real training", (4_200_000, 4_030_000, 4_400_000, 71_600_000)
