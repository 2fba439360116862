"""Exercises of notebook 01."""

from collections.abc import Iterator
from typing import Any

import numpy as np

from dlcourse.exercises.exercise import Exercise, Wrong

Array = np.ndarray


class Views(list):
    """A list of arrays whose copy holds the same arrays: a copied view would own its memory."""

    def __deepcopy__(self, memo: dict) -> "Views":
        return Views(self)


def _owner(a: Array) -> Array:
    while isinstance(a.base, np.ndarray):
        a = a.base
    return a


def freed_by_copies(arrays: list[Array]) -> int:
    owners = {id(_owner(a)): _owner(a) for a in arrays}
    return sum(a.nbytes for a in owners.values()) - sum(a.nbytes for a in arrays)


def _owner_for_each_view(arrays: list[Array]) -> int:
    return sum(_owner(a).nbytes - a.nbytes for a in arrays)


def _copies_are_free(arrays: list[Array]) -> int:
    owners = {id(_owner(a)): _owner(a) for a in arrays}
    return sum(a.nbytes for a in owners.values())


def _never_negative(arrays: list[Array]) -> int:
    return max(0, freed_by_copies(arrays))


def _set_of_sizes(arrays: list[Array]) -> int:
    return sum({_owner(a).nbytes for a in arrays}) - sum(a.nbytes for a in arrays)


def _sign_turned(arrays: list[Array]) -> int:
    return -freed_by_copies(arrays)


def _lists_of_arrays(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    big = np.ones((256, 1024), np.float32)
    yield "one array that is no view", (Views([np.ones(100)]),)
    yield "ten numbers of an array of 1 MiB", (Views([np.ones((256, 1024), np.float32)[0, :10]]),)
    yield "two rows of the same array", (Views([big[0], big[1]]),)
    yield "a view of a view of a view", (Views([big[10:][:5].T[3:]]),)
    yield "an array and its transpose: copies would take more", (Views([big, big.T]),)
    yield "a row from each of two arrays of the same size", (Views([np.ones((8, 8))[0], np.ones((8, 8))[0]]),)
    yield "a bias that is spread to 1,000 rows", (Views([np.broadcast_to(np.ones(4), (1000, 4))]),)


def normalized(x: Array) -> Array:
    y = x - x.mean()
    y /= np.sqrt(np.dot(y.reshape(-1), y.reshape(-1)) / y.size).astype(y.dtype)
    return y


def _by_variance(x: Array) -> Array:
    return (x - x.mean()) / x.var()


def _one_less(x: Array) -> Array:
    return (x - x.mean()) / x.std(ddof=1)


def _each_column(x: Array) -> Array:
    return (x - x.mean(axis=0)) / x.std(axis=0)


def _in_float64(x: Array) -> Array:
    wide = x.astype(np.float64)
    return (wide - wide.mean()) / wide.std()


def _to_normalize(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    yield "four numbers in float32", (np.array([1, 2, 3, 6], np.float32),)
    yield (
        "(5, 3) in float32, each column on a level of its own",
        ((rng.standard_normal((5, 3)) + np.array([0, 10, 20])).astype(np.float32),),
    )
    yield "(2, 3, 4) in float64", (rng.standard_normal((2, 3, 4)),)
    yield "a transposed array, so that its rows are not in one piece", (rng.standard_normal((4, 6)).T,)
    yield "large numbers, both signs", (1000 * rng.standard_normal((7, 2)).astype(np.float32),)


def _to_normalize_big(rng: np.random.Generator) -> tuple:
    return (rng.standard_normal((1024, 2048), dtype=np.float32),)


def scale_backward(dy: Array, x: Array, b: Array) -> tuple[Array, Array]:
    return dy * b, _sum_back(dy * x, b.shape)


def _sum_back(dy: Array, shape: tuple[int, ...]) -> Array:
    lengths = (1,) * (dy.ndim - len(shape)) + shape
    axes = tuple([axis for axis in range(dy.ndim) if lengths[axis] == 1])
    return dy.sum(axis=axes).reshape(shape)


def _not_summed(dy: Array, x: Array, b: Array) -> tuple[Array, Array]:
    return dy * b, dy * x


def _as_for_a_sum(dy: Array, x: Array, b: Array) -> tuple[Array, Array]:
    return dy.copy(), _sum_back(dy, b.shape)


def _first_axis_only(dy: Array, x: Array, b: Array) -> tuple[Array, Array]:
    return dy * b, (dy * x).sum(axis=0)


def _mean_back(dy: Array, x: Array, b: Array) -> tuple[Array, Array]:
    return dy * b, _sum_back(dy * x, b.shape) * (b.size / dy.size)


def _summed_too_early(dy: Array, x: Array, b: Array) -> tuple[Array, Array]:
    return dy * b, _sum_back(dy, b.shape) * _sum_back(x, b.shape)


def _exchanged(dy: Array, x: Array, b: Array) -> tuple[Array, Array]:
    return dy * x, _sum_back(dy * b, b.shape)


def _to_scale(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def draw(shape: tuple[int, ...], of_b: tuple[int, ...], dtype: Any = np.float64) -> tuple:
        dy, x = rng.standard_normal((2, *shape)).astype(dtype)
        return dy, x, rng.standard_normal(of_b).astype(dtype)

    yield "x (3, 2), b (2,): one number for each column", draw((3, 2), (2,))
    yield "x (3, 2), b (3, 1): one number for each row", draw((3, 2), (3, 1))
    yield "a batch of one: x (1, 4), b (4,)", draw((1, 4), (4,))
    yield "pictures (2, 3, 4, 5), b (5,)", draw((2, 3, 4, 5), (5,))
    yield "b (1, 3, 1, 5) between them", draw((2, 3, 4, 5), (1, 3, 1, 5))
    yield "b is one number for all, of the shape ()", draw((4, 3), ())
    yield "b (4, 3) is not spread at all", draw((4, 3), (4, 3))
    yield "float32", draw((6, 3), (3,), np.float32)


def standardized(pictures: Array, mean: Array, std: Array) -> Array:
    y = pictures.astype(np.float32)
    y /= 255
    y -= mean.astype(np.float32)
    y /= std.astype(np.float32)
    return y


def _float64_comes_out(pictures: Array, mean: Array, std: Array) -> Array:
    return (pictures / 255 - mean) / std


def _not_divided(pictures: Array, mean: Array, std: Array) -> Array:
    return ((pictures.astype(np.float32) - mean) / std).astype(np.float32)


def _mean_after_std(pictures: Array, mean: Array, std: Array) -> Array:
    return (pictures / 255 / std - mean).astype(np.float32)


def _own_mean(pictures: Array, mean: Array, std: Array) -> Array:
    x = pictures / 255
    return ((x - x.mean(axis=(0, 1, 2))) / x.std(axis=(0, 1, 2))).astype(np.float32)


def _divided_as_bytes(pictures: Array, mean: Array, std: Array) -> Array:
    return ((pictures // 255 - mean) / std).astype(np.float32)


def _pictures(rng: np.random.Generator) -> Iterator[tuple[str, tuple]]:
    def draw(*shape: int) -> tuple:
        channels = shape[-1]
        pictures = rng.integers(0, 256, size=shape, dtype=np.uint8)
        return pictures, rng.uniform(0.4, 0.6, channels), rng.uniform(0.2, 0.3, channels)

    yield "2 colour pictures of 3 × 4", draw(2, 3, 4, 3)
    yield "one grey picture", draw(1, 5, 5, 1)
    yield "3 pictures of 3 × 3 with 3 channels", draw(3, 3, 3, 3)
    black_and_white = np.array([0, 255, 255, 0], np.uint8).reshape(1, 2, 2, 1)
    yield "black and white only: bytes 0 and 255", (black_and_white, np.array([0.5]), np.array([0.25]))


def _pictures_big(rng: np.random.Generator) -> tuple:
    pictures = rng.integers(0, 256, size=(300, 32, 32, 3), dtype=np.uint8)
    return pictures, np.array([0.49, 0.48, 0.45]), np.array([0.25, 0.24, 0.26])


EXERCISES = [
    Exercise(
        id="01.1",
        title="What a copy would set free",
        reference=freed_by_copies,
        inputs=_lists_of_arrays,
        hints=(
            (
                "There are two states to compare. Before: which arrays stay alive because of this list? After: what do the "
                "copies take?"
            ),
            (
                "Before are the owners, each once, even where several views look into it. `held` of this section counts "
                "them."
            ),
            (
                "After, each array has memory of its own, of `a.nbytes` bytes. So it is `held(arrays)` minus the sum of "
                "`nbytes`, and this can be negative."
            ),
        ),
        wrong=(
            Wrong(
                _owner_for_each_view,
                "You count an owner once for each of its views. It is one strip of memory, and it becomes free once. "
                "Collect the owners by `id` first.",
            ),
            Wrong(
                _copies_are_free,
                "This is what becomes free, but the copies are there now, and they take memory too. Subtract their "
                "`nbytes`.",
            ),
            Wrong(
                _never_negative,
                "Right, where something becomes free. Where views overlap, or an array is spread, the copies take more "
                "than the one owner did. Then the answer is negative, and worth knowing.",
            ),
            Wrong(
                _set_of_sizes,
                "You collect sizes in a set, so two different owners of the same size count as one. Two objects are "
                "the same if their `id` is the same, not if their sizes are.",
            ),
            Wrong(
                _sign_turned,
                "The number is right, its sign is not. What becomes free is *before* minus *after*: owners minus copies.",
            ),
        ),
    ),
    Exercise(
        id="01.2",
        title="Normalize with one new array",
        reference=normalized,
        inputs=_to_normalize,
        hints=(
            (
                "Write it first in the way that is easy to read. Then count: which arrays of the size of `x` are alive at "
                "the highest moment? `x.std()` makes one too, inside."
            ),
            (
                "The result has to be made, so one array is the least. Make it by the subtraction, and do the division in "
                "place."
            ),
            (
                "The mean of `y` is 0 now, so its standard deviation is the root of the mean of its squares. "
                "`np.dot(v, v)` of `v = y.reshape(-1)` gives the sum of squares, without an array of squares."
            ),
            "`y = x - x.mean()`, then `v = y.reshape(-1)`, then `y /= np.sqrt(np.dot(v, v) / y.size).astype(y.dtype)`.",
        ),
        wrong=(
            Wrong(
                _by_variance,
                "You divide by the variance. It is the mean of the squared distances; the standard deviation is its "
                "square root.",
            ),
            Wrong(
                _one_less,
                "You divide the sum of squares by n − 1 (`ddof=1`), as in statistics for a sample. Here it is the mean "
                "of the squares, divided by n: NumPy's own `std`.",
            ),
            Wrong(
                _each_column,
                "You normalize each column by itself. Asked is one mean and one standard deviation for the whole array: "
                "leave out `axis`.",
            ),
            Wrong(
                _in_float64,
                "The numbers are right, but the result of a float32 array is float64: twice the bytes. Look for the "
                "place where float64 comes in: an `astype`, or a NumPy number in float64.",
            ),
        ),
        big=_to_normalize_big,
        costs=(
            (
                2.7,
                "three arrays of the size of x are alive at one moment; give a result the name of the array before it",
            ),
            (
                1.7,
                (
                    "two arrays of the size of x are alive at one moment: `x.std()` makes one, and so does a division "
                    "that is not in place"
                ),
            ),
        ),
    ),
    Exercise(
        id="01.3",
        title="The backward pass of a product that is spread",
        reference=scale_backward,
        inputs=_to_scale,
        hints=(
            (
                "Move one number of x by h: by how much does its y move? By h times its b. Move one number of b by h: "
                "every y that used it moves by h times its x."
            ),
            (
                "So `dx` is `dy * b`, where b is spread as in the forward pass. And `dy * x` holds what each place says "
                "about b. Several places speak about the same number of b."
            ),
            "What was spread is summed back: `db = sum_back(dy * x, b.shape)`, with the function of this section.",
        ),
        wrong=(
            Wrong(
                _not_summed,
                "Your db has the shape of dy. Each number of b was used at several places: sum what they say, over the "
                "axes along which b was spread.",
            ),
            Wrong(
                _as_for_a_sum,
                "This is the backward pass of x + b. In a product, a step of b moves y by the step times x, and a step "
                "of x moves y by the step times b.",
            ),
            Wrong(
                _first_axis_only,
                "You sum over the first axis only. That is right for a b of the shape (D,) and samples in rows. The "
                "axes depend on the shape of b: `spread_axes` finds them.",
            ),
            Wrong(
                _mean_back,
                "Your db is a mean over the places that used b. The reverse of spreading is a sum. If a mean is wanted, "
                "the loss has divided already, and dy holds that.",
            ),
            Wrong(
                _summed_too_early,
                "You sum dy and x one by one and multiply the sums. Each place has its own product dy · x: multiply "
                "first, then sum.",
            ),
            Wrong(
                _exchanged,
                "x and b are exchanged. The slope of a product by one factor is the other one: dx has b in it, and db "
                "has x.",
            ),
        ),
        parts=("dx", "db"),
    ),
    Exercise(
        id="01.4",
        title="From bytes to numbers around 0",
        reference=standardized,
        inputs=_pictures,
        hints=(
            (
                "`pictures / 255` is float64. And `mean` and `std` are float64 arrays: where they meet a float32 array, the "
                "result is float64, unless it is written in place."
            ),
            "The result in float32 has to be made. Make it by `astype`, and do all three steps in place.",
            "`y = pictures.astype(np.float32)`, `y /= 255`, `y -= mean.astype(np.float32)`, and the same for `std`.",
        ),
        wrong=(
            Wrong(
                _float64_comes_out,
                "The numbers are right, but they are float64: twice the bytes, here and in every layer that follows. "
                "Convert to float32 first, then work in place.",
            ),
            Wrong(
                _not_divided,
                "The bytes were not divided by 255. `mean` and `std` speak of numbers between 0 and 1.",
            ),
            Wrong(
                _mean_after_std,
                "You divide by std first and subtract the mean then. The mean is one of the numbers before that "
                "division: subtract it first.",
            ),
            Wrong(
                _own_mean,
                "You compute mean and std from these pictures. They are arguments: they come from the training set, and "
                "test pictures must be treated by the same numbers.",
            ),
            Wrong(
                _divided_as_bytes,
                "`//` divides whole numbers and throws away what is behind the point: every byte below 255 becomes 0.",
            ),
        ),
        big=_pictures_big,
        costs=(
            (2.7, "float64 was there on the way: `pictures / 255` alone takes twice the result"),
            (1.7, "two arrays of the size of the result are alive at one moment; work in place after `astype`"),
        ),
    ),
]
