"""10.2  The mean loss of an epoch."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- Each loss is the mean over its batch. How large is the sum over the samples of one batch?
- Add losses times sizes, and divide by the number of all samples.
"""


@solution
def epoch_mean(losses, sizes):
    """losses: the mean loss of each batch, sizes: its number of samples -> the mean over all samples."""
    return float(np.dot(losses, sizes) / np.sum(sizes))  # sum over all samples, by how many there are


@wrong
def of_the_batches(losses, sizes):
    """You take the mean of the batches. A last batch of 10 then counts as much as one of 256. Weigh each with its size."""
    return float(np.mean(losses))


@wrong
def over_the_batches(losses, sizes):
    """You weigh with the sizes and divide by the number of batches. Divide by the number of samples."""
    return float(np.dot(losses, sizes) / len(losses))


@wrong
def without_the_last(losses, sizes):
    """You leave the last batch out. It is shorter, but its samples count."""
    return epoch_mean(losses[:-1], sizes[:-1]) if len(losses) > 1 else epoch_mean(losses, sizes)


@wrong
def without_sizes(losses, sizes):
    """You add up means and divide by the number of samples. Multiply each mean by the size of its batch before."""
    return sum(losses) / sum(sizes)


@wrong
def sum_of_all(losses, sizes):
    """That is the sum over all samples. Divide by how many there are."""
    return float(np.dot(losses, sizes))


also_wrong = (
    lambda losses, sizes: float(np.dot(losses, sizes) / (len(sizes) * max(sizes))),
    lambda losses, sizes: float(np.median(losses)),
)


def inputs(rng):
    yield "256, 256 and 10 samples", ([0.7, 0.8, 0.9], [256, 256, 10])
    yield "one batch", ([0.5], [3])
    yield "equal batches", ([1.0, 2.0], [10, 10])
    yield "a last batch of one, with a large loss", ([0.1, 0.3, 0.2, 90.0], [100, 100, 100, 1])
