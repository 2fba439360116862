"""10.1  The batches of an epoch."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- One generator for the epoch, made from seed and epoch: np.random.default_rng([seed, epoch]). It draws one order.
- order = rng.permutation(n) has each number from 0 to n - 1 once. Cut it into pieces.
- [order[start : start + batch_size] for start in range(0, n, batch_size)]: the last slice may be shorter.
"""


@solution
def batches(n, batch_size, seed, epoch):
    """n samples -> a list of arrays of indices: every sample once, in an order drawn from (seed, epoch)."""
    order = np.random.default_rng([seed, epoch]).permutation(n)
    # a slice that reaches over the end is shorter: the last batch
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]


@wrong
def last_one_dropped(n, batch_size, seed, epoch):
    """You drop the last batch if it is not full. Then up to batch_size - 1 samples are not seen in this epoch. Let the
    last batch be shorter."""
    return [part for part in batches(n, batch_size, seed, epoch) if len(part) == batch_size]


@wrong
def with_replacement(n, batch_size, seed, epoch):
    """You draw each index anew. Then some samples come twice and more than a third of them not at all. Draw one
    permutation of all, and cut it."""
    order = np.random.default_rng([seed, epoch]).integers(0, n, n)
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]


@wrong
def same_each_epoch(n, batch_size, seed, epoch):
    """Your order depends on the seed alone, so each epoch has the same batches. Give both to the generator: [seed, epoch]."""
    order = np.random.default_rng(seed).permutation(n)
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]


@wrong
def added(n, batch_size, seed, epoch):
    """You add seed and epoch. Then the second epoch of seed 0 is the first one of seed 1. Give both: [seed, epoch]."""
    order = np.random.default_rng(seed + epoch).permutation(n)
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]


@wrong
def not_shuffled(n, batch_size, seed, epoch):
    """Your batches are right, and not shuffled. Data often lie sorted by class: a batch would then hold one class."""
    return [np.arange(n)[start : start + batch_size] for start in range(0, n, batch_size)]


also_wrong = (
    lambda n, k, *at: [not_shuffled(n, k, *at)[i] for i in np.random.default_rng(at).permutation(-(-n // k))],
    lambda n, size, *at: np.array_split(np.random.default_rng(at).permutation(n), max(1, n // size)),
    lambda n, batch_size, seed, epoch: np.array_split(np.random.default_rng([seed, epoch]).permutation(n), batch_size),
)


def inputs(rng):
    yield "7 samples in batches of 3", (7, 3, 0, 0)
    yield "the next epoch", (7, 3, 0, 1)
    yield "another seed", (7, 3, 1, 0)
    yield "6 in batches of 3: no rest", (6, 3, 5, 2)
    yield "a batch larger than the data", (4, 10, 0, 0)
    yield "100 in batches of 32", (100, 32, 3, 7)
