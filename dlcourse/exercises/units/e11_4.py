"""11.4  The confusion matrix."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- Make a matrix of zeros, of whole numbers. Then go through the pairs, and add 1 at row label, column answer.
- `matrix[labels, said] += 1` looks right and counts a pair that occurs five times only once. Why? Try it with three
  pairs.
- `np.add.at(matrix, (labels, said), 1)` adds for each pair. A loop over `zip(labels, said)` is right too.
"""


@solution
def confusion(labels, said, classes):
    """labels (N,), said (N,) -> (classes, classes): how often the right class (row) was named as (column)."""
    counts = np.zeros((classes, classes), dtype=int)
    np.add.at(counts, (labels, said), 1)  # adds for each pair, also where a pair occurs again
    return counts


@wrong
def each_pair_once(labels, said, classes):
    """A pair that occurs several times is counted once. `matrix[labels, said] += 1` reads all places first, adds 1, and
    writes them back: the same place is written several times with the same number. Use `np.add.at`, or a loop."""
    matrix = np.zeros((classes, classes), int)
    matrix[labels, said] += 1
    return matrix


@wrong
def classes_seen(labels, said, classes):
    """Your matrix is as large as the largest class that occurs. Its shape is (classes, classes), also where a class is
    never seen."""
    seen = 1 + max(labels.max(initial=-1), said.max(initial=-1))
    return confusion(labels, said, int(seen))


@wrong
def mistakes_only(labels, said, classes):
    """The right answers are missing. They belong on the diagonal."""
    return confusion(labels[labels != said], said[labels != said], classes)


@wrong
def shares(labels, said, classes):
    """You divide by the number of answers. Counts are asked: whole numbers, also where a share would be clearer."""
    return confusion(labels, said, classes) / max(1, len(labels))


also_wrong = (
    lambda labels, said, classes: confusion(said, labels, classes),
    lambda labels, said, classes: confusion(labels, said, classes).astype(np.float64),
)


def inputs(rng):
    yield "5 answers, 3 classes; 2 taken for 0 twice", (np.array([0, 1, 2, 2, 2]), np.array([0, 1, 0, 0, 2]), 3)
    yield "everything right", (np.arange(4), np.arange(4), 4)
    yield "the last class never occurs", (np.array([0, 1, 1]), np.array([1, 1, 0]), 4)
    yield "no answer yet", (np.zeros(0, int), np.zeros(0, int), 2)
    yield "always the same answer", (np.array([0, 1, 2, 1]), np.array([1, 1, 1, 1]), 3)
    yield "300 answers drawn at random", (rng.integers(0, 10, size=300), rng.integers(0, 10, size=300), 10)
