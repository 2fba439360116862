"""07.1  The statistics of each channel."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "mean", "var"
hints = """
- The result has one number for each channel: shape (C,). Which axes must go?
- x.mean takes a tuple of axes. All but the last are tuple(range(x.ndim - 1)).
- First the mean, then x - mean, then the mean of its squares. The square of the deviations can be written into the
  array of the deviations.
"""
costs = ((1.8, "an array of deviations with one of their squares beside it, or wider numbers; square in place"),)


@solution
def channel_statistics(x):
    """x (N, ..., C) -> mean (C,), var (C,), over all axes but the last."""
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axis=axes)
    deviations = x - mean
    np.square(deviations, out=deviations)  # no second array like x
    return mean, deviations.mean(axis=axes)


def leading(x):
    return tuple(range(x.ndim - 1))


@wrong
def a_statistic_a_pixel(x):
    """Your mean is over the samples alone (axis 0), so each pixel of each channel has a statistic of its own. A filter
    writes its channel at every pixel: all of them belong together. Look at the axes of pictures."""
    return x.mean(axis=0), x.var(axis=0)


@wrong
def one_number(x):
    """You have one mean for the whole array. Each channel comes from another filter and has another scale; the last
    axis must stay."""
    return x.mean(), x.var()


@wrong
def over_channels(x):
    """You took the mean over the last axis, the channels, and kept the others. That is LayerNorm, of section 10. Here
    the last axis stays and all others go."""
    return x.mean(axis=-1), x.var(axis=-1)


@wrong
def each_picture(x):
    """Each picture has statistics of its own: the axis of the samples is still there. BatchNorm goes over the batch
    too, so axis 0 must go with the others."""
    inside = tuple(range(1, x.ndim - 1))
    return x.mean(axis=inside), x.var(axis=inside)


@wrong
def unbiased(x):
    """Your variance divides by M - 1. Normalizing takes the mean of the squares, divided by M: only then is the
    variance of the result 1. M - 1 comes in section 8, for the running variance."""
    return x.mean(axis=leading(x)), x.var(axis=leading(x), ddof=1)


@wrong
def square_minus_square(x):
    """You computed the variance as the mean of squares minus the square of the mean. On paper that is the same. In
    float32 it subtracts two large numbers that are nearly equal, and what is left is rounding. Subtract the mean
    first."""
    mean = x.mean(axis=leading(x))
    return mean, (x * x).mean(axis=leading(x)) - mean * mean


also_wrong = (
    lambda x: tuple(f(np.moveaxis(x, 1, -1).reshape(-1, x.shape[1]), axis=0) for f in (np.mean, np.var)),
    lambda x: (x.mean(axis=leading(x)), x.std(axis=leading(x))),
    lambda x: (x.mean(axis=leading(x)), (x * x).mean(axis=leading(x))),
)


def inputs(rng):
    yield "two images of 2 × 2 with two channels, 0 to 15", (np.arange(16.0).reshape(2, 2, 2, 2).transpose(0, 2, 3, 1),)
    yield "3 images of 2 × 5 with 4 channels", (rng.standard_normal((3, 2, 5, 4)),)
    yield "one image", (rng.standard_normal((1, 3, 2, 5)),)
    yield "4 samples of 3 numbers", (rng.standard_normal((4, 3)),)
    yield "float32 with means of ±1000", (1000 + rng.standard_normal((4, 3, 3, 2), dtype=np.float32),)


def large(rng):
    return (rng.standard_normal((16, 32, 32, 64), dtype=np.float32),)
