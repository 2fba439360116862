"""09.3  Warm up, then cool down."""

import math

from dlcourse.exercises.unit import solution, wrong

hints = """
- Three cases: step < warmup; from there to `steps`; after that.
- In the warm-up the factor is (step + 1) / warmup. After it, count from its end: how much of the rest is done?
- done = (step - warmup) / (steps - warmup), at most 1; the factor is (1 + cos(π · done)) / 2.
"""


@solution
def factor(step, warmup, steps):
    """step 0, 1, 2, …; the first `warmup` of `steps` steps rise -> the factor of the learning rate, from 0 to 1."""
    if step < warmup:
        return (step + 1) / warmup
    # how much of the time after the warm-up is over; at most all of it
    done = min(1.0, (step - warmup) / (steps - warmup))
    return (1 + math.cos(math.pi * done)) / 2


@wrong
def first_step_stands(step, warmup, steps):
    """Your first factor is 0: the first step changes nothing, and its gradient was computed in vain. Begin at
    1 / warmup."""
    return step / warmup if step < warmup else factor(step, warmup, steps)


@wrong
def cosine_from_the_start(step, warmup, steps):
    """Your half cosine counts from step 0, so the rate falls at once where the warm-up ends. It starts when the warm-up
    is over, at 1."""
    return factor(step, warmup, steps) if step < warmup else factor(step, 0, steps)


@wrong
def comes_back(step, warmup, steps):
    """After the last step your factor rises again, as a cosine does. Stay at 0: let `done` be at most 1."""
    if step < warmup:
        return factor(step, warmup, steps)
    return (1 + math.cos(math.pi * (step - warmup) / (steps - warmup))) / 2


@wrong
def whole_cosine(step, warmup, steps):
    """You take the cosine itself: it goes down to -1, and a negative rate climbs. Lift and halve it: (1 + cos) / 2."""
    if step < warmup:
        return factor(step, warmup, steps)
    return math.cos(math.pi * min(1.0, (step - warmup) / (steps - warmup)))


@wrong
def straight(step, warmup, steps):
    """You go down in a straight line. Half a cosine is flat at both ends: (1 + cos(π · done)) / 2."""
    return factor(step, warmup, steps) if step < warmup else 1 - min(1.0, (step - warmup) / (steps - warmup))


@wrong
def rest_is_all_steps(step, warmup, steps):
    """Your cosine takes `steps` steps after the warm-up. `steps` counts all of them, those of the warm-up too:
    steps - warmup are left for the cosine."""
    return factor(step, warmup, steps) if step < warmup else factor(step - warmup, 0, steps)


def quarter(step, warmup, steps):
    if step < warmup:
        return factor(step, warmup, steps)
    return math.cos(math.pi / 2 * min(1.0, (step - warmup) / (steps - warmup)))


def degrees(step, warmup, steps):
    return (
        factor(step, warmup, steps) if step < warmup else (1 + math.cos(180 * (step - warmup) / (steps - warmup))) / 2
    )


also_wrong = (
    lambda step, warmup, steps: rest_is_all_steps(step, warmup, steps) if step < steps else 0.0,
    quarter,
    degrees,
)


def inputs(rng):
    for step, where in ((0, "the first step"), (3, "in the warm-up"), (9, "its last step"), (10, "the step after it")):
        yield f"step {step} of 100, warm-up 10: {where}", (step, 10, 100)
    for step, where in ((40, "on the way"), (99, "the last step"), (100, "just over"), (150, "long over")):
        yield f"step {step} of 100, warm-up 10: {where}", (step, 10, 100)
    yield "no warm-up", (25, 0, 100)
