"""11.2  Gradients of micro-batches, added up."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- The loss of the batch is a sum over its samples, divided by their number. Which number is that, if you look at a
  micro-batch only?
- Every sample's part must be divided by the size of the *whole* batch. So call `gradient(…, …, len(x))` for each
  micro-batch, and add. Nothing is divided afterwards.
- Keep one array and add each new gradient to it in place (`total += …`). A slice may go past the end: `x[8:12]` of ten
  rows has two rows.
"""
costs = (
    (3.5, "all gradients alive before they are added; add each one as soon as it is there"),
    (1.3, "a third array: `total = total + …` makes one, and so does a name that keeps the gradient before"),
)


@solution
def accumulated(gradient, x, y, micro_batch):
    """gradient(x, y, total) -> array.  x (N, …), y (N, …) -> the gradient of the whole batch, by micro-batches."""
    total = gradient(x[:micro_batch], y[:micro_batch], len(x))  # divided by N of the whole batch
    for start in range(micro_batch, len(x), micro_batch):
        end = start + micro_batch  # may lie behind the last row: the slice then ends there
        total += gradient(x[start:end], y[start:end], len(x))  # in place: two arrays at a time, never three
    return total


def _pieces(x, y, micro_batch):
    starts = range(0, len(x), micro_batch)
    return [(x[start : start + micro_batch], y[start : start + micro_batch]) for start in starts]


def of_a_line(most):
    """A function that gives the gradient of ½ (x W − y)², summed over the samples and divided by `total`, at W = 0, of
    no more than `most` rows at a time."""

    def gradient(x, y, total):
        if len(x) > most:
            raise ValueError(f"gradient got {len(x)} rows at a time, and micro_batch is {most}")
        dW = x.T @ -y  # x (n, D), y (n, U) -> (D, U)
        dW /= total
        return dW

    return gradient


@wrong
def sum_of_means(gradient, x, y, micro_batch):
    """You divide by the size of the micro-batch and add. With four micro-batches the result is four times too large.
    `total` is the size of the whole batch."""
    return sum(gradient(a, b, len(a)) for a, b in _pieces(x, y, micro_batch))


@wrong
def mean_of_means(gradient, x, y, micro_batch):
    """You take the mean of the micro-batches' means. That is right where all have the same size; a shorter last one
    counts too much. Divide each by the size of the whole batch, and only add."""
    return sum_of_means(gradient, x, y, micro_batch) / len(_pieces(x, y, micro_batch))


@wrong
def by_micro_batch(gradient, x, y, micro_batch):
    """`total` is the number that the loss of the whole batch is divided by: `len(x)`, not `micro_batch`."""
    return sum(gradient(a, b, micro_batch) for a, b in _pieces(x, y, micro_batch))


@wrong
def rest_forgotten(gradient, x, y, micro_batch):
    """The last micro-batch is left out where it is not full. Its samples belong to the batch too."""
    pieces = [pair for pair in _pieces(x, y, micro_batch) if len(pair[0]) == micro_batch]
    return sum(gradient(a, b, len(x)) for a, b in pieces)


@wrong
def all_at_once(gradient, x, y, micro_batch):
    """You give `gradient` all rows at once. The result is right, and the memory of one large batch is what this was to
    avoid: never more than `micro_batch` rows at a time."""
    return gradient(x, y, len(x))


@wrong
def number_of_pieces(gradient, x, y, micro_batch):
    """You cut the batch into `micro_batch` pieces. `micro_batch` is how many rows a piece has, not how many pieces there
    are: step through the rows with range(0, len(x), micro_batch)."""
    pieces = zip(np.array_split(x, micro_batch), np.array_split(y, micro_batch), strict=True)
    return sum(gradient(a, b, len(x)) for a, b in pieces if len(a))


also_wrong = (
    lambda gradient, x, y, micro_batch: accumulated(gradient, x, y, micro_batch) / len(_pieces(x, y, micro_batch)),
    lambda gradient, x, y, micro_batch: gradient(*_pieces(x, y, micro_batch)[-1], len(x)),
)


def inputs(rng):
    def draw(n, most, dtype=np.float64):
        x, y = rng.standard_normal((n, 3)).astype(dtype), rng.standard_normal((n, 2)).astype(dtype)
        return of_a_line(most), x, y, most

    yield "12 samples in micro-batches of 4", draw(12, 4)
    yield "10 samples in micro-batches of 4: the last has 2", draw(10, 4)
    yield "the whole batch is one micro-batch", draw(6, 6)
    yield "a micro-batch that is larger than the batch", draw(5, 8)
    yield "one sample at a time", draw(3, 1)
    yield "float32", draw(9, 4, np.float32)


def large(rng):
    x = rng.standard_normal((20, 768), dtype=np.float32)
    return of_a_line(2), x, rng.standard_normal((20, 512), dtype=np.float32), 2
