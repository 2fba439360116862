"""Exercises of notebook 06: their inputs, their hints, and what is said to each known mistake."""

from collections.abc import Iterator

import numpy as np

from dlcourse.exercises import nb06_answers as answers
from dlcourse.exercises.exercise import Exercise, Wrong

Inputs = Iterator[tuple[str, tuple]]


def _even_images(rng: np.random.Generator) -> Inputs:
    yield "one window, the largest comes last", (np.arange(4.0).reshape(1, 2, 2, 1),)
    yield "one window of four equal numbers", (np.full((1, 2, 2, 1), 3.0),)
    yield "one window of negative numbers", (np.array([-4.0, -2.0, -3.0, -1000.0]).reshape(1, 2, 2, 1),)
    yield "two channels, four windows", (rng.permutation(32.0 - np.arange(32)).reshape(1, 4, 4, 2),)
    yield "many ties", (rng.integers(0, 3, (2, 4, 6, 3)).astype(np.float32),)
    yield "three images, not square, float32", (rng.standard_normal((3, 6, 2, 2), dtype=np.float32),)


def _indices(rng: np.random.Generator) -> Inputs:
    yield "four indices", (np.array([1, 2, 3, 0], np.uint8),)
    yield "four times 3", (np.full(4, 3, np.uint8),)
    yield "one index", (np.array([2], np.uint8),)
    yield "seven indices", (np.array([3, 1, 0, 2, 1, 3, 2], np.uint8),)
    yield "no index", (np.zeros(0, np.uint8),)
    yield "1,001 indices", (rng.integers(0, 4, 1001, dtype=np.uint8),)


def _rows(rng: np.random.Generator) -> Inputs:
    yield "one window", (np.array([5.0]), np.array([1.0, 4.0, 2.0]), 3, 3)
    yield "a tie: .6, .6, .3", (np.array([1.0]), np.array([0.6, 0.6, 0.3]), 3, 3)
    yield "two windows that both have the middle number", (np.array([2.0, 3.0]), np.array([1.0, 9.0, 1.0]), 2, 1)
    yield "stride 2 and windows of 2: the last number is in none", (np.ones(2), np.arange(5.0), 2, 2)
    yield "all equal", (np.array([1.0, -2.0, 3.0]), np.zeros(5), 3, 1)
    yield "a stride that leaves gaps", (np.array([1.0, -1.0, 2.0]), rng.permutation(8.0 - np.arange(8)), 2, 3)
    yield "float32", (rng.standard_normal(17, dtype=np.float32), rng.standard_normal(20, dtype=np.float32), 4, 1)


def _averages(rng: np.random.Generator) -> Inputs:
    yield "one window, no padding", (np.full((1, 1, 1, 1), 8.0), (2, 2), 2, 2, 0)
    yield "one pixel, windows of 3 × 3, padding 1", (np.full((1, 1, 1, 1), 5.0), (1, 1), 3, 1, 1)
    yield "windows that overlap", (np.arange(1.0, 5).reshape(1, 2, 2, 1), (3, 3), 2, 1, 0)
    yield "a border of padding", (np.ones((1, 3, 3, 1)), (3, 3), 3, 1, 1)
    yield "a last row that no window reaches", (rng.standard_normal((2, 2, 2, 3)), (5, 4), 2, 2, 0)
    yield "float32, not square", (rng.standard_normal((3, 3, 2, 2), dtype=np.float32), (5, 4), 3, 2, 1)


def _gradients(rng: np.random.Generator) -> Inputs:
    yield "eight numbers, half of them dropped", (np.arange(1.0, 9).reshape(2, 4), 0.5, np.random.default_rng(1))
    yield "nothing is dropped", (np.ones((1, 3)), 0.0, np.random.default_rng(2))
    yield (
        "float32, a quarter dropped",
        (
            rng.standard_normal((5, 7), dtype=np.float32),
            0.25,
            np.random.default_rng((3, 1)),
        ),
    )
    later = np.random.default_rng(4)
    later.random(3, dtype=np.float32)
    yield (
        "images, nine of ten dropped; the generator has drawn before",
        (
            rng.standard_normal((2, 3, 3, 2), dtype=np.float32),
            0.9,
            later,
        ),
    )


EXERCISES = [
    Exercise(
        id="06.1",
        title="The winner of each window",
        reference=answers.winners,
        inputs=_even_images,
        hints=(
            "The four numbers at one place of all windows are a slice: x[:, 0::2, 1::2] is the upper right one of each.",
            "Begin with y = x[:, 0::2, 0::2].copy() and index 0. Then let the other three places challenge it, in order.",
            "better = candidate > y tells where place k wins. There index becomes k, and y becomes the candidate.",
            "index[better] = k, then np.maximum(y, candidate, out=y). Strictly larger, so that of equal ones the first stays.",
        ),
        wrong=(
            Wrong(
                answers.index_in_int64,
                "The values are right, but index has 8 bytes for each number: that is what argmax gives. The four places "
                "of a window need 0 to 3 only. Make index np.uint8.",
            ),
            Wrong(
                answers.last_of_equal,
                "Of equal numbers you take the last place. The first one is asked for, as argmax does: let a later place "
                "win only where it is strictly larger.",
            ),
            Wrong(
                answers.down_the_columns,
                "Your index counts down the columns: the upper right place is 1 and the lower left is 2. The places of a "
                "window are counted row by row.",
            ),
            Wrong(
                answers.began_at_zero,
                "Windows that hold only negative numbers give 0, which is in none of them. The best so far has to begin "
                "with the first number of the window, or with -∞.",
            ),
            Wrong(
                answers.over_the_channels,
                "You take the largest over the channels too. Each channel is pooled by itself: the window lies in rows "
                "and columns only.",
            ),
        ),
        big=lambda rng: (rng.standard_normal((50, 32, 32, 32), dtype=np.float32),),
        costs=((2.5, "you copied all windows, and an int64 index is there for a time"), (1.4, "one more temporary")),
        parts=("y", "index"),
    ),
    Exercise(
        id="06.2",
        title="Four indices in one byte",
        reference=answers.packed,
        inputs=_indices,
        hints=(
            "index[0::4] is the first index of each group of four, index[1::4] the second, and so on.",
            "a << 2 moves the bits of a by two places to the left; a | b puts together bits that do not meet.",
            "Where 4 does not divide the length, first copy the indices into zeros: -(-index.size // 4) * 4 of them.",
            "If room is that array: room[0::4] | room[1::4] << 2 | room[2::4] << 4 | room[3::4] << 6, all in np.uint8.",
        ),
        wrong=(
            Wrong(
                answers.first_one_on_top,
                "Your first index stands in the highest two bits. It is asked for in the lowest two, so that "
                "byte & 3 reads it.",
            ),
            Wrong(
                answers.rest_left_out,
                "The last one, two or three indices are lost where the length is no multiple of 4. Their byte is missing: "
                "round the number of bytes up.",
            ),
            Wrong(
                answers.shifted_by_one,
                "You move each index by one bit more than the one before. An index of 0 to 3 has two bits, so neighbours "
                "write over each other. Move by 0, 2, 4 and 6.",
            ),
            Wrong(
                answers.too_wide,
                "The numbers are right, but the result is int64: 8 bytes for what fits into one. Four indices then take "
                "as much as one index of argmax. Give np.uint8.",
            ),
            Wrong(
                answers.one_byte_too_many,
                "Where the length is a multiple of 4 you have one byte too many. Rounding up is -(-n // 4), and not "
                "n // 4 + 1.",
            ),
        ),
        big=lambda rng: (rng.integers(0, 4, 8 * 2**20, dtype=np.uint8),),
        costs=((3.0, "an array on the way is wider than a byte"), (1.3, "one more temporary")),
    ),
    Exercise(
        id="06.3",
        title="Where the gradient of a maximum goes",
        reference=answers.max_backward,
        inputs=_rows,
        hints=(
            "A loop over dy is fine. Window i is x[i * stride : i * stride + kernel].",
            "argmax of the window gives the first of its largest numbers, counted from the window's beginning.",
            "Two windows can have the same winner. Then it gets both: add, do not assign.",
            "dx[i * stride + window.argmax()] += dy[i], with dx = np.zeros_like(x).",
        ),
        wrong=(
            Wrong(
                answers.to_each_tie,
                "With two equal maxima you give the whole dy to both, so the gradient of one window adds up to 2·dy. "
                "A window has dy to give once: give it to the first. argmax finds it, == does not.",
            ),
            Wrong(
                answers.shared_by_ties,
                "You share dy among equal maxima. That is a valid choice, and its sum is right. This course gives all of it "
                "to the first, as argmax does: then one index a window is all that backward needs.",
            ),
            Wrong(
                answers.to_the_last_tie,
                "Of equal maxima you take the last one. That is a valid choice too, but forward keeps the first, and both "
                "have to agree: let a later number win only where it is strictly larger.",
            ),
            Wrong(
                answers.written_over,
                "Where windows overlap, one number can win several of them. You write its gradient each time, so only the "
                "last window counts. Add with += in a loop. With lists of places += counts once too: take np.add.at.",
            ),
            Wrong(
                answers.place_in_the_window,
                "argmax of a window counts from the window's beginning. You use it as a place in x. Add i * stride.",
            ),
            Wrong(
                answers.to_all,
                "You give each number of the window an equal share. That is the gradient of a mean. Here only the winner "
                "can move the output.",
            ),
        ),
    ),
    Exercise(
        id="06.4",
        title="The mean of the pixels that are there",
        reference=answers.avg_backward,
        inputs=_averages,
        hints=(
            "First do it without padding: each of the k · k pixels of a window gets dy / (k · k). Windows may overlap.",
            "With padding, cut each window to the image: rows max(top, 0) to top + kernel, where top = row * stride - padding.",
            "A slice that goes past the end of the image is cut by NumPy itself. One that begins below 0 is not.",
            "The divisor is the number of rows times the number of columns of the cut window, for each window anew.",
        ),
        wrong=(
            Wrong(
                answers.padding_counted,
                "You divide by all places of the window, those on the padding too. Here a mean is over the pixels that are "
                "there: at an edge the divisor is smaller than k · k.",
            ),
            Wrong(
                answers.not_divided,
                "You pass on the whole dy to each pixel. The forward pass divides, so each pixel has only its share of the "
                "mean: divide by the number of pixels in the window.",
            ),
            Wrong(
                answers.share_written_over,
                "Where windows overlap, a pixel is in several means. You write over what it had from the window before. "
                "Add.",
            ),
            Wrong(
                answers.padding_kept,
                "The numbers are right, but the border of padding is still around them. dx has the shape of the image: "
                "(N, *in_hw, C).",
            ),
            Wrong(
                answers.begun_below_zero,
                "Where a window begins on the padding, its first row or column is below 0, and NumPy counts such a number "
                "from the end: the slice is empty or in another place. Begin it at max(top, 0) and max(left, 0).",
            ),
            Wrong(
                answers.moved_inside,
                "You move the windows that begin on the padding into the picture: they keep all their rows and columns. "
                "Cut them: from max(top, 0) to top + kernel, with the top that may be below 0.",
            ),
            Wrong(
                answers.samples_as_columns,
                "dy[:, a, b] has the shape (N, C), and beside a window (N, rows, columns, C) NumPy takes its samples for "
                "columns. dy[:, a : a + 1, b : b + 1] keeps all four axes.",
            ),
            Wrong(
                answers.divided_by_kernel,
                "You divide by the side of the window. A window has kernel · kernel places, fewer at an edge.",
            ),
        ),
    ),
    Exercise(
        id="06.5",
        title="Draw the mask again",
        reference=answers.dropout_backward_drawn,
        inputs=_gradients,
        hints=(
            "Call rng.random just as forward did: the same shape, the same dtype, the same comparison.",
            "Forward drew with dtype=np.float32 and kept where the draw was >= rate.",
            "What was kept was scaled by 1 / (1 - rate) in forward, so its gradient is scaled too.",
        ),
        wrong=(
            Wrong(
                answers.not_scaled,
                "The mask is right, but the scale is missing. Forward multiplied what it kept by 1 / (1 - rate), so the "
                "slope is that factor and not 1.",
            ),
            Wrong(
                answers.scaled_down,
                "You multiply by 1 - rate. Forward divided by it: what stays is scaled up, so that the mean does not change.",
            ),
            Wrong(
                answers.rate_kept,
                "You keep where the draw is below rate. `rate` is the part that is dropped; in some books and libraries it "
                "is the part that is kept. Keep where the draw is >= rate.",
            ),
            Wrong(
                answers.drawn_in_float64,
                "You draw in float64, NumPy's usual kind. Forward drew in float32, and the two use the generator "
                "differently: another mask comes out. Write dtype=np.float32.",
            ),
            Wrong(
                answers.drawn_in_the_dtype_of_dy,
                "You draw in the dtype of dy. Forward drew in float32, whatever the dtype of x was: with float64 another "
                "mask comes out. Write dtype=np.float32.",
            ),
            Wrong(
                answers.wide_mask,
                "The numbers are right, but float32 became float64 on the way: a mask that is divided by a number is "
                "float64. First dx = dy * keep, then dx *= 1 / (1 - rate).",
            ),
            Wrong(
                answers.another_generator,
                "You draw from a new generator. The one that is handed over stands where forward began; only it gives "
                "forward's mask.",
            ),
            Wrong(
                answers.one_mask_for_the_batch,
                "You draw one mask for all samples. Forward drew each number of each sample by itself: the shape is that "
                "of dy, the batch included.",
            ),
        ),
        big=lambda rng: (np.ones((1024, 1024), np.float32), 0.25, np.random.default_rng(0)),
        costs=(
            (3.0, "an array on the way is float64"),
            (1.15, "beside dx there is another array like dy: scale in place, dx *= 1 / (1 - rate)"),
        ),
    ),
]
