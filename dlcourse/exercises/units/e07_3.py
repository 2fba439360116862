"""07.3  The running statistics."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "running_mean", "running_var"
hints = """
- Momentum is the share of the way that the running number goes towards the new one: 0 stays, 1 jumps.
- running + momentum · (new - running). For the variance, new is the unbiased one: var · count / (count - 1).
- Return two new arrays, and change none that you were given.
"""


@solution
def running_statistics(running_mean, running_var, mean, var, count, momentum):
    """Four arrays (C,), values a channel, share of the way -> the new running mean and variance, (C,) each."""
    unbiased = var * (count / (count - 1))  # var was measured around the batch's own mean: too small on average
    new_mean = running_mean + momentum * (mean - running_mean)
    new_var = running_var + momentum * (unbiased - running_var)
    return new_mean, new_var


@wrong
def biased(running_mean, running_var, mean, var, count, momentum):
    """Your running variance goes towards the variance of the batch itself. That one is too small on average, by the
    factor (count - 1) / count, since it was measured around the batch's own mean. Multiply by count / (count - 1)."""
    return running_mean + momentum * (mean - running_mean), running_var + momentum * (var - running_var)


@wrong
def swapped(running_mean, running_var, mean, var, count, momentum):
    """You use momentum as the share that stays. Some libraries do (Keras). Here it is the share of the way to the new
    value: running + momentum · (new - running)."""
    return running_statistics(running_mean, running_var, mean, var, count, 1 - momentum)


@wrong
def wrong_way(running_mean, running_var, mean, var, count, momentum):
    """The factor of the variance stands upside down: the variance of a batch is too small, so it has to grow, by count
    / (count - 1)."""
    unbiased = var * ((count - 1) / count)
    return running_mean + momentum * (mean - running_mean), running_var + momentum * (unbiased - running_var)


@wrong
def added_up(running_mean, running_var, mean, var, count, momentum):
    """You add a part of the new value and take nothing of the old one away, so the numbers grow from step to step. Move
    by momentum times the difference."""
    return running_mean + momentum * mean, running_var + momentum * var * (count / (count - 1))


@wrong
def in_place(running_mean, running_var, mean, var, count, momentum):
    """Your function changes the arrays that it was given and returns None. Here it returns two new arrays. In a layer,
    in place is right; there it must happen once a step."""
    running_mean += momentum * (mean - running_mean)
    running_var += momentum * (var * (count / (count - 1)) - running_var)


@wrong
def as_keras_without_the_factor(running_mean, running_var, mean, var, count, momentum):
    """You use momentum as the share that stays; here it is the share of the way to the new value. And the batch's
    variance is too small on average: multiply it by count / (count - 1)."""
    stays = 1 - momentum
    return momentum * running_mean + stays * mean, momentum * running_var + stays * var


also_wrong = (
    lambda running_mean, running_var, mean, var, count, momentum: (mean, var * (count / (count - 1))),
    lambda *a: ((new := running_statistics(*a))[0] + a[5] * a[2] / (a[4] - 1), new[1]),
)


def inputs(rng):
    yield "the first step, 3 channels", (np.zeros(3), np.ones(3), np.array([1.0, -2, 3]), np.array([4.0, 1, 0]), 4, 0.1)
    yield "a later step", (*rng.standard_normal((2, 5)) ** 2, *rng.standard_normal((2, 5)) ** 2, 64, 0.25)
    yield "two values a channel", (np.ones(2), np.ones(2), np.zeros(2), np.full(2, 9.0), 2, 0.01)
    yield "float32", (*(rng.standard_normal((4, 6), dtype=np.float32) ** 2), 12, 0.3)
