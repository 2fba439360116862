"""14.1  Does it grow?"""

from dlcourse.exercises.unit import solution, wrong

hints = """
- A leak is higher in the second half than it ever was in the first. What is made once is as high in both.
- The last level alone says little: a program that comes and goes may end at a low one, or at a high one.
- `max(levels[half:]) - max(levels[:half])`, and 0 where that is negative.
"""


@solution
def growth(levels):
    """levels: array bytes before the first step, and after each -> by how many bytes the highest level of the second half
    is above the highest of the first half, 0 if it is not above. The level in the middle belongs to the second half."""
    half = len(levels) // 2
    # Highest against highest: where a level comes and goes, the ends say nothing.
    return max(0, max(levels[half:]) - max(levels[:half]))


@wrong
def last_less_first(levels):
    """You compare the last level with the first. What is made once, a cache or the slots of an optimizer, then looks like
    a leak: it grows in the first steps and never again."""
    return max(0, levels[-1] - levels[0])


@wrong
def highest_less_lowest(levels):
    """You compare the highest level with the lowest. Each program that makes an array and lets it go then has a leak."""
    return max(levels) - min(levels)


@wrong
def at_two_moments(levels):
    """You look at two moments, the middle and the end. Where levels come and go, two moments are an accident: compare the
    highest level of each half."""
    return max(0, levels[-1] - levels[len(levels) // 2])


@wrong
def may_be_negative(levels):
    """What shrinks has no leak: give 0 where the second half is lower."""
    half = len(levels) // 2
    return max(levels[half:]) - max(levels[:half])


@wrong
def lowest_of_each(levels):
    """You compare the lowest levels. A program whose low points are always 0 can still climb higher each time."""
    half = len(levels) // 2
    return max(0, min(levels[half:]) - min(levels[:half]))


@wrong
def a_step(levels):
    """You divide by the number of steps. Asked is the whole growth from half to half."""
    return growth(levels) // (len(levels) - len(levels) // 2)


def mean_of_each(levels):
    half = len(levels) // 2
    return max(0, round(sum(levels[half:]) / (len(levels) - half) - sum(levels[:half]) / half))


def all_below(levels):
    half = len(levels) // 2
    return max(0, min(levels[half:]) - max(levels[:half]))


also_wrong = mean_of_each, all_below


def inputs(rng):
    yield "a straight line", ([0, 400, 800, 1200, 1600, 2000],)
    yield "made once", ([0, 900, 900, 900, 900, 900, 900],)
    yield "made and let go by turns", ([0, 500, 0, 500, 0, 500],)
    yield "a saw that climbs", ([0, 300, 100, 400, 0, 600, 100, 700],)
    yield "it shrinks", ([900, 900, 600, 300, 0, 0],)
    yield "always the same", ([64, 64, 64],)
    yield "an odd number of levels: the middle one is the highest", ([0, 10, 70, 20, 30],)
