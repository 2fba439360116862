"""Exercises of notebook 11."""

from collections.abc import Callable, Iterator

import numpy as np

from dlcourse.exercises.exercise import Exercise, Wrong

Array = np.ndarray
Gradient = Callable[[Array, Array, int], Array]


def epoch_mean(values: list[float], sizes: list[int]) -> float:
    return sum(value * size for value, size in zip(values, sizes, strict=True)) / sum(sizes)


def _each_batch_alike(values: list[float], sizes: list[int]) -> float:
    return sum(values) / len(values)


def _full_batches_only(values: list[float], sizes: list[int]) -> float:
    full = [value for value, size in zip(values, sizes, strict=True) if size == sizes[0]]
    return sum(full) / len(full)


def _as_if_full(values: list[float], sizes: list[int]) -> float:
    return sum(value * size for value, size in zip(values, sizes, strict=True)) / (len(sizes) * sizes[0])


def _without_sizes(values: list[float], sizes: list[int]) -> float:
    return sum(values) / sum(sizes)


def _not_divided(values: list[float], sizes: list[int]) -> float:
    return sum(value * size for value, size in zip(values, sizes, strict=True))


def _epochs(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "accuracies of batches of 256, 256 and 10", ([0.7, 0.8, 0.9], [256, 256, 10])
    yield "one batch", ([0.25], [20])
    yield "equal batches", ([1.0, 2.0, 6.0], [5, 5, 5])
    yield "one sample in the last batch, with a large loss", ([2.0, 2.0, 90.0], [100, 100, 1])
    yield "losses of an epoch of 23 batches", (rng.uniform(0, 3, size=23).tolist(), [64] * 22 + [17])


def accumulated(gradient: Gradient, x: Array, y: Array, micro_batch: int) -> Array:
    total = gradient(x[:micro_batch], y[:micro_batch], len(x))
    for start in range(micro_batch, len(x), micro_batch):
        rows = slice(start, start + micro_batch)
        total += gradient(x[rows], y[rows], len(x))
    return total


def _pieces(x: Array, y: Array, micro_batch: int) -> list[tuple[Array, Array]]:
    starts = range(0, len(x), micro_batch)
    return [(x[start : start + micro_batch], y[start : start + micro_batch]) for start in starts]


def _sum_of_means(gradient: Gradient, x: Array, y: Array, micro_batch: int) -> Array:
    return sum(gradient(a, b, len(a)) for a, b in _pieces(x, y, micro_batch))  # type: ignore[return-value]


def _mean_of_means(gradient: Gradient, x: Array, y: Array, micro_batch: int) -> Array:
    return _sum_of_means(gradient, x, y, micro_batch) / len(_pieces(x, y, micro_batch))


def _by_micro_batch(gradient: Gradient, x: Array, y: Array, micro_batch: int) -> Array:
    return sum(gradient(a, b, micro_batch) for a, b in _pieces(x, y, micro_batch))  # type: ignore[return-value]


def _rest_forgotten(gradient: Gradient, x: Array, y: Array, micro_batch: int) -> Array:
    pieces = [pair for pair in _pieces(x, y, micro_batch) if len(pair[0]) == micro_batch]
    return sum(gradient(a, b, len(x)) for a, b in pieces)  # type: ignore[return-value]


def _divided_twice(gradient: Gradient, x: Array, y: Array, micro_batch: int) -> Array:
    return accumulated(gradient, x, y, micro_batch) / len(_pieces(x, y, micro_batch))


def _last_one(gradient: Gradient, x: Array, y: Array, micro_batch: int) -> Array:
    a, b = _pieces(x, y, micro_batch)[-1]
    return gradient(a, b, len(x))


def of_a_line(x: Array, y: Array, total: int) -> Array:
    """The gradient of ½ (x W − y)², summed over the samples and divided by `total`, at W = 0.
    x (n, D), y (n, U) -> (D, U)."""
    dW = x.T @ -y
    dW /= total
    return dW


def _batches(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def draw(n: int, dtype: type = np.float64) -> tuple[Gradient, Array, Array]:
        return of_a_line, rng.standard_normal((n, 3)).astype(dtype), rng.standard_normal((n, 2)).astype(dtype)

    yield "12 samples in micro-batches of 4", (*draw(12), 4)
    yield "10 samples in micro-batches of 4: the last has 2", (*draw(10), 4)
    yield "the whole batch is one micro-batch", (*draw(6), 6)
    yield "a micro-batch that is larger than the batch", (*draw(5), 8)
    yield "one sample at a time", (*draw(3), 1)
    yield "float32", (*draw(9, np.float32), 4)


def _batches_big(rng: np.random.Generator) -> tuple:
    x = rng.standard_normal((20, 768), dtype=np.float32)
    return of_a_line, x, rng.standard_normal((20, 512), dtype=np.float32), 2


def brighter(x: Array, rng: np.random.Generator, most: int) -> Array:
    shift = rng.integers(-most, most + 1, size=(len(x), 1, 1, 1))
    y = x.astype(np.int16)
    y += shift.astype(np.int16)
    np.clip(y, 0, 255, out=y)
    return y.astype(np.uint8)


def _starts_again(x: Array, rng: np.random.Generator, most: int) -> Array:
    shift = rng.integers(-most, most + 1, size=(len(x), 1, 1, 1))
    return (x + shift).astype(np.uint8)


def _wide(x: Array, rng: np.random.Generator, most: int) -> Array:
    shift = rng.integers(-most, most + 1, size=(len(x), 1, 1, 1))
    return np.clip(x + shift, 0, 255)


def _one_for_all(x: Array, rng: np.random.Generator, most: int) -> Array:
    return np.clip(x + rng.integers(-most, most + 1), 0, 255).astype(np.uint8)


def _one_for_each_byte(x: Array, rng: np.random.Generator, most: int) -> Array:
    return np.clip(x + rng.integers(-most, most + 1, size=x.shape), 0, 255).astype(np.uint8)


def _end_left_out(x: Array, rng: np.random.Generator, most: int) -> Array:
    return np.clip(x + rng.integers(-most, most, size=(len(x), 1, 1, 1)), 0, 255).astype(np.uint8)


def _black_to_256(x: Array, rng: np.random.Generator, most: int) -> Array:
    shift = rng.integers(-most, most + 1, size=(len(x), 1, 1, 1))
    return np.clip(x + shift, 0, 256).astype(np.uint8)


def _to_brighten(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def draw(*shape: int) -> Array:
        return rng.integers(0, 256, size=shape, dtype=np.uint8)

    yield "5 colour pictures of 4 × 3", (draw(5, 4, 3, 3), np.random.default_rng(1), 20)
    yield "one grey picture", (draw(1, 3, 3, 1), np.random.default_rng(2), 60)
    black_and_white = np.repeat(np.array([0, 255], np.uint8), 8).reshape(4, 2, 2, 1)
    yield "two black pictures and two white ones", (black_and_white, np.random.default_rng(3), 100)
    yield "by 0: nothing may change", (draw(2, 2, 2, 3), np.random.default_rng(4), 0)
    yield "far too much", (draw(6, 3, 3, 1), np.random.default_rng(5), 250)


def _to_brighten_big(rng: np.random.Generator) -> tuple:
    return rng.integers(0, 256, size=(100, 64, 64, 3), dtype=np.uint8), np.random.default_rng(0), 30


def confusion(labels: Array, said: Array, classes: int) -> Array:
    matrix = np.zeros((classes, classes), int)
    np.add.at(matrix, (labels, said), 1)
    return matrix


def _each_pair_once(labels: Array, said: Array, classes: int) -> Array:
    matrix = np.zeros((classes, classes), int)
    matrix[labels, said] += 1
    return matrix


def _turned(labels: Array, said: Array, classes: int) -> Array:
    return confusion(said, labels, classes)


def _classes_seen(labels: Array, said: Array, classes: int) -> Array:
    seen = 1 + max(labels.max(initial=-1), said.max(initial=-1))
    return confusion(labels, said, int(seen))


def _in_floats(labels: Array, said: Array, classes: int) -> Array:
    return confusion(labels, said, classes).astype(np.float64)


def _mistakes_only(labels: Array, said: Array, classes: int) -> Array:
    return confusion(labels[labels != said], said[labels != said], classes)


def _answers(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "5 answers, 3 classes; 2 taken for 0 twice", (np.array([0, 1, 2, 2, 2]), np.array([0, 1, 0, 0, 2]), 3)
    yield "everything right", (np.arange(4), np.arange(4), 4)
    yield "the last class never occurs", (np.array([0, 1, 1]), np.array([1, 1, 0]), 4)
    yield "no answer yet", (np.zeros(0, int), np.zeros(0, int), 2)
    yield "always the same answer", (np.array([0, 1, 2, 1]), np.array([1, 1, 1, 1]), 3)
    yield "300 answers drawn at random", (rng.integers(0, 10, size=300), rng.integers(0, 10, size=300), 10)


EXERCISES = [
    Exercise(
        id="11.1",
        title="The mean of an epoch",
        reference=epoch_mean,
        inputs=_epochs,
        hints=(
            "The value of a batch is a mean over its samples. What would you do if you had the values of all samples?",
            (
                "The sum over the samples of a batch is its value times its size. Add these sums, and divide by the number "
                "of all samples."
            ),
        ),
        wrong=(
            Wrong(
                _each_batch_alike,
                "Each batch counts the same here. But the last one has fewer samples, and each of these would count for "
                "many: weight every value by the size of its batch.",
            ),
            Wrong(
                _full_batches_only,
                "You leave the short batch out. Its samples belong to the epoch too; they only count by their number.",
            ),
            Wrong(
                _as_if_full,
                "The sum is right. You divide by the number of batches times the size of the first one, as if all were "
                "full. Divide by the samples that there are: the sum of the sizes.",
            ),
            Wrong(
                _without_sizes,
                "You add up means and divide by the number of samples. A mean must be multiplied by its batch's size "
                "before it is added.",
            ),
            Wrong(_not_divided, "This is the sum over all samples. Divide by their number, the sum of the sizes."),
        ),
    ),
    Exercise(
        id="11.2",
        title="Gradients of micro-batches, added up",
        reference=accumulated,
        inputs=_batches,
        hints=(
            (
                "The loss of the batch is a sum over its samples, divided by their number. Which number is that, if you "
                "look at a micro-batch only?"
            ),
            (
                "Every sample's part must be divided by the size of the *whole* batch. So call "
                "`gradient(…, …, len(x))` for each micro-batch, and add. Nothing is divided afterwards."
            ),
            (
                "Keep one array and add each new gradient to it in place (`total += …`). A slice may go past the end: "
                "`x[8:12]` of ten rows has two rows."
            ),
        ),
        wrong=(
            Wrong(
                _sum_of_means,
                "You divide by the size of the micro-batch and add. With four micro-batches the result is four times "
                "too large. `total` is the size of the whole batch.",
            ),
            Wrong(
                _mean_of_means,
                "You take the mean of the micro-batches' means. That is right where all have the same size; a shorter "
                "last one counts too much. Divide each by the size of the whole batch, and only add.",
            ),
            Wrong(
                _by_micro_batch,
                "`total` is the number that the loss of the whole batch is divided by: `len(x)`, not `micro_batch`.",
            ),
            Wrong(
                _rest_forgotten,
                "The last micro-batch is left out where it is not full. Its samples belong to the batch too.",
            ),
            Wrong(
                _divided_twice,
                "You divide by `len(x)`, and then once more by the number of micro-batches. The first is enough.",
            ),
            Wrong(
                _last_one,
                "This is the gradient of the last micro-batch alone. The earlier ones were written over: add to them.",
            ),
        ),
        big=_batches_big,
        costs=(
            (3.5, "all gradients are alive before they are added; add each one as soon as it is there"),
            (
                1.3,
                "a third array of the same size is alive: `total = total + …` makes one, and so does a name that keeps the gradient before",
            ),
        ),
    ),
    Exercise(
        id="11.3",
        title="Brighter or darker",
        reference=brighter,
        inputs=_to_brighten,
        hints=(
            "`uint8` begins again at 0 after 255. So the sum must be made in a dtype that can hold −250 and 505.",
            (
                "One shift for each picture: `rng.integers(-most, most + 1, size=(len(x), 1, 1, 1))` is spread over its "
                "pixels and colours."
            ),
            "`y = x.astype(np.int16)`, add the shift (as int16), `np.clip(y, 0, 255, out=y)`, and back to uint8.",
        ),
        wrong=(
            Wrong(
                _starts_again,
                "A white pixel becomes black where it gets brighter: 250 + 10 is 260, and a byte makes 4 of it. Limit "
                "the sum to 0 … 255 before you convert it to uint8.",
            ),
            Wrong(
                _wide,
                "The numbers are right, but the result is int64: eight times the bytes of the pictures. Convert back to "
                "uint8.",
            ),
            Wrong(
                _one_for_all,
                "All pictures get the same shift. Each picture of the micro-batch should get its own: draw `len(x)` numbers.",
            ),
            Wrong(
                _one_for_each_byte,
                "Each byte gets a shift of its own. That is noise. A picture that is brighter is brighter everywhere.",
            ),
            Wrong(
                _end_left_out,
                "`rng.integers(a, b)` never gives b. So the largest shift is missing: write `most + 1`.",
            ),
            Wrong(
                _black_to_256,
                "The largest number of a byte is 255. You limit to 256, and as a byte 256 is 0: white becomes black.",
            ),
        ),
        big=_to_brighten_big,
        costs=(
            (
                2.0,
                "the numbers of `rng.integers` are int64, and so is `x + shift`: 8 bytes a number, where int16 has 2",
            ),
        ),
    ),
    Exercise(
        id="11.4",
        title="The confusion matrix",
        reference=confusion,
        inputs=_answers,
        hints=(
            "Make a matrix of zeros, of whole numbers. Then go through the pairs, and add 1 at row label, column answer.",
            (
                "`matrix[labels, said] += 1` looks right and counts a pair that occurs five times only once. Why? Try it with "
                "three pairs."
            ),
            "`np.add.at(matrix, (labels, said), 1)` adds for each pair. A loop over `zip(labels, said)` is right too.",
        ),
        wrong=(
            Wrong(
                _each_pair_once,
                "A pair that occurs several times is counted once. `matrix[labels, said] += 1` reads all places first, "
                "adds 1, and writes them back: the same place is written several times with the same number. Use "
                "`np.add.at`, or a loop.",
            ),
            Wrong(
                _turned,
                "Rows and columns are exchanged. Here a row is a right class, and a column is what the network said.",
            ),
            Wrong(
                _classes_seen,
                "Your matrix is as large as the largest class that occurs. Its shape is (classes, classes), also where a "
                "class is never seen.",
            ),
            Wrong(
                _in_floats,
                "Counts are whole numbers, and your matrix is float64: `np.zeros` makes floats if no dtype is given. "
                "Write `dtype=int`.",
            ),
            Wrong(
                _mistakes_only,
                "The right answers are missing. They belong on the diagonal.",
            ),
        ),
    ),
]
