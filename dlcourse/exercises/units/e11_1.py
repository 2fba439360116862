"""11.1  The mean of an epoch."""

from dlcourse.exercises.unit import solution, wrong

hints = """
- The value of a batch is a mean over its samples. What would you do if you had the values of all samples?
- The sum over the samples of a batch is its value times its size. Add these sums, and divide by the number of all
  samples.
"""


@solution
def epoch_mean(values, sizes):
    """values: the mean of each batch, sizes: how many samples it had -> the mean over all samples of the epoch."""
    total = sum(value * size for value, size in zip(values, sizes, strict=True))  # back to sums
    return total / sum(sizes)


@wrong
def each_batch_alike(values, sizes):
    """Each batch counts the same here. But the last one has fewer samples, and each of these would count for many:
    weight every value by the size of its batch."""
    return sum(values) / len(values)


@wrong
def full_batches_only(values, sizes):
    """You leave the short batch out. Its samples belong to the epoch too; they only count by their number."""
    full = [value for value, size in zip(values, sizes, strict=True) if size == sizes[0]]
    return sum(full) / len(full)


@wrong
def as_if_full(values, sizes):
    """The sum is right. You divide by the number of batches times the size of the first one, as if all were full.
    Divide by the samples that there are: the sum of the sizes."""
    return sum(value * size for value, size in zip(values, sizes, strict=True)) / (len(sizes) * sizes[0])


@wrong
def without_sizes(values, sizes):
    """You add up means and divide by the number of samples. A mean must be multiplied by its batch's size before it is
    added."""
    return sum(values) / sum(sizes)


@wrong
def not_divided(values, sizes):
    """This is the sum over all samples. Divide by their number, the sum of the sizes."""
    return sum(value * size for value, size in zip(values, sizes, strict=True))


def inputs(rng):
    yield "accuracies of batches of 256, 256 and 10", ([0.7, 0.8, 0.9], [256, 256, 10])
    yield "one batch", ([0.25], [20])
    yield "equal batches", ([1.0, 2.0, 6.0], [5, 5, 5])
    yield "one sample in the last batch, with a large loss", ([2.0, 2.0, 90.0], [100, 100, 1])
    yield "losses of an epoch of 23 batches", (rng.uniform(0, 3, size=23).tolist(), [64] * 22 + [17])
