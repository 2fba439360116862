"""Exercises of notebook 06."""

from collections.abc import Callable, Iterator

import numpy as np

from dlcourse.exercises.exercise import Exercise, Wrong

Array = np.ndarray
Inputs = Iterator[tuple[str, tuple]]


# 06.1 the winner of each window


def winners(x: Array) -> tuple[Array, Array]:
    y = x[:, ::2, ::2].copy()
    index = np.zeros(y.shape, np.uint8)
    for tap in (1, 2, 3):
        candidate = x[:, tap // 2 :: 2, tap % 2 :: 2]
        np.maximum(index, (candidate > y) * np.uint8(tap), out=index)
        np.maximum(y, candidate, out=y)
    return y, index


def _windows(x: Array) -> Array:
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // 2, w // 2, c, 4)


def _index_in_int64(x: Array) -> tuple[Array, Array]:
    w = _windows(x)
    return w.max(axis=-1), w.argmax(axis=-1)


def _last_of_equal(x: Array) -> tuple[Array, Array]:
    w = _windows(x)
    return w.max(axis=-1), (3 - w[..., ::-1].argmax(axis=-1)).astype(np.uint8)


def _down_the_columns(x: Array) -> tuple[Array, Array]:
    y, index = winners(x.transpose(0, 2, 1, 3))
    return np.ascontiguousarray(y.transpose(0, 2, 1, 3)), np.ascontiguousarray(index.transpose(0, 2, 1, 3))


def _began_at_zero(x: Array) -> tuple[Array, Array]:
    w = np.concatenate([np.zeros_like(_windows(x)[..., :1]), _windows(x)], axis=-1)
    return w.max(axis=-1), np.maximum(w.argmax(axis=-1) - 1, 0).astype(np.uint8)


def _over_the_channels(x: Array) -> tuple[Array, Array]:
    w = _windows(x).max(axis=-2, keepdims=True)
    like = np.zeros(_windows(x).shape[:-1])
    return (w.max(axis=-1) + like).astype(x.dtype), (w.argmax(axis=-1) + like).astype(np.uint8)


def _even_images(rng: np.random.Generator) -> Inputs:
    yield "one window, the largest comes last", (np.arange(4.0).reshape(1, 2, 2, 1),)
    yield "one window of four equal numbers", (np.full((1, 2, 2, 1), 3.0),)
    yield "one window of negative numbers", (np.array([-4.0, -2.0, -3.0, -1000.0]).reshape(1, 2, 2, 1),)
    yield "two channels, four windows", (rng.permutation(32.0 - np.arange(32)).reshape(1, 4, 4, 2),)
    yield "many ties", (rng.integers(0, 3, (2, 4, 6, 3)).astype(np.float32),)
    yield "three images, not square, float32", (rng.standard_normal((3, 6, 2, 2), dtype=np.float32),)


# 06.2 four indices in one byte


def packed(index: Array) -> Array:
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)
    room[: index.size] = index
    return room[0::4] | room[1::4] << 2 | room[2::4] << 4 | room[3::4] << 6


def _first_one_on_top(index: Array) -> Array:
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)
    room[: index.size] = index
    return room[0::4] << 6 | room[1::4] << 4 | room[2::4] << 2 | room[3::4]


def _rest_left_out(index: Array) -> Array:
    return packed(index[: index.size // 4 * 4])


def _shifted_by_one(index: Array) -> Array:
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)
    room[: index.size] = index
    return room[0::4] | room[1::4] << 1 | room[2::4] << 2 | room[3::4] << 3


def _too_wide(index: Array) -> Array:
    return packed(index).astype(np.int64)


def _one_byte_too_many(index: Array) -> Array:
    return np.append(packed(index), np.uint8(0)) if index.size % 4 == 0 else packed(index)


def _indices(rng: np.random.Generator) -> Inputs:
    yield "four indices", (np.array([1, 2, 3, 0], np.uint8),)
    yield "four times 3", (np.full(4, 3, np.uint8),)
    yield "one index", (np.array([2], np.uint8),)
    yield "seven indices", (np.array([3, 1, 0, 2, 1, 3, 2], np.uint8),)
    yield "no index", (np.zeros(0, np.uint8),)
    yield "1,001 indices", (rng.integers(0, 4, 1001, dtype=np.uint8),)


# 06.3 a row of numbers: windows that overlap, and ties


def max_backward(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    return _row(lambda dx, window, place, step: np.add.at(dx, place + window.argmax(), step), dy, x, kernel, stride)


def _row(give: Callable[[Array, Array, int, float], None], dy: Array, x: Array, kernel: int, stride: int) -> Array:
    """dx, zeros at first, into which `give` puts each window's dy."""
    dx = np.zeros_like(x)
    for i, step in enumerate(dy):
        give(dx, x[i * stride : i * stride + kernel], i * stride, step)
    return dx


def _to_each_tie(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        dx[place : place + kernel] += (window == window.max()) * step

    return _row(give, dy, x, kernel, stride)


def _shared_by_ties(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        best = window == window.max()
        dx[place : place + kernel] += best * step / best.sum()

    return _row(give, dy, x, kernel, stride)


def _to_the_last_tie(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        dx[place + kernel - 1 - window[::-1].argmax()] += step

    return _row(give, dy, x, kernel, stride)


def _written_over(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        dx[place + window.argmax()] = step

    return _row(give, dy, x, kernel, stride)


def _place_in_the_window(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    return _row(lambda dx, window, place, step: np.add.at(dx, window.argmax(), step), dy, x, kernel, stride)


def _to_all(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        dx[place : place + kernel] += step / kernel

    return _row(give, dy, x, kernel, stride)


def _rows(rng: np.random.Generator) -> Inputs:
    yield "one window", (np.array([5.0]), np.array([1.0, 4.0, 2.0]), 3, 3)
    yield "a tie: .6, .6, .3", (np.array([1.0]), np.array([0.6, 0.6, 0.3]), 3, 3)
    yield "two windows that both have the middle number", (np.array([2.0, 3.0]), np.array([1.0, 9.0, 1.0]), 2, 1)
    yield "stride 2 and windows of 2: the last number is in none", (np.ones(2), np.arange(5.0), 2, 2)
    yield "all equal", (np.array([1.0, -2.0, 3.0]), np.zeros(5), 3, 1)
    yield "a stride that leaves gaps", (np.array([1.0, -1.0, 2.0]), rng.permutation(8.0 - np.arange(8)), 2, 3)
    yield "float32", (rng.standard_normal(17, dtype=np.float32), rng.standard_normal(20, dtype=np.float32), 4, 1)


# 06.4 the mean of the pixels that are there


def avg_backward(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(dy, in_hw, kernel, stride, padding, lambda window: window.size, np.add)


def _shared(
    dy: Array,
    in_hw: tuple[int, int],
    kernel: int,
    stride: int,
    padding: int,
    parts: Callable[[Array], int],
    write: Callable[[Array, Array], Array],
) -> Array:
    """`parts`: what the dy of a window is divided by. `write`: (what dx has there, the share) -> what dx gets there."""
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for row, column in np.ndindex(dy.shape[1:3]):
        top, left = row * stride - padding, column * stride - padding
        window = dx[:, max(top, 0) : top + kernel, max(left, 0) : left + kernel]
        share = dy[:, row : row + 1, column : column + 1] / parts(window[0, :, :, 0])
        window[...] = write(window, share)
    return dx


def _padding_counted(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(dy, in_hw, kernel, stride, padding, lambda window: kernel * kernel, np.add)


def _not_divided(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(dy, in_hw, kernel, stride, padding, lambda window: 1, np.add)


def _share_written_over(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(
        dy, in_hw, kernel, stride, padding, lambda w: w.size, lambda old, new: np.broadcast_to(new, old.shape)
    )


def _padding_kept(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return np.pad(avg_backward(dy, in_hw, kernel, stride, padding), ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)))


def _divided_by_kernel(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(dy, in_hw, kernel, stride, padding, lambda window: kernel, np.add)


def _averages(rng: np.random.Generator) -> Inputs:
    yield "one window, no padding", (np.full((1, 1, 1, 1), 8.0), (2, 2), 2, 2, 0)
    yield "one pixel, windows of 3 × 3, padding 1", (np.full((1, 1, 1, 1), 5.0), (1, 1), 3, 1, 1)
    yield "windows that overlap", (np.arange(1.0, 5).reshape(1, 2, 2, 1), (3, 3), 2, 1, 0)
    yield "a border of padding", (np.ones((1, 3, 3, 1)), (3, 3), 3, 1, 1)
    yield "a last row that no window reaches", (rng.standard_normal((2, 2, 2, 3)), (5, 4), 2, 2, 0)
    yield "float32, not square", (rng.standard_normal((3, 3, 2, 2), dtype=np.float32), (5, 4), 3, 2, 1)


# 06.5 draw the mask again


def dropout_backward_drawn(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    keep = rng.random(dy.shape, dtype=np.float32) >= rate
    dx = dy * keep
    dx *= 1 / (1 - rate)
    return dx


def _not_scaled(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape, dtype=np.float32) >= rate)


def _scaled_down(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return _not_scaled(dy, rate, rng) * (1 - rate)


def _rate_kept(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape, dtype=np.float32) < rate) / (1 - rate)


def _drawn_in_float64(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape) >= rate).astype(dy.dtype) * float(1 / (1 - rate))


def _wide_mask(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * ((rng.random(dy.shape, dtype=np.float32) >= rate) / np.float64(1 - rate))


def _another_generator(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dropout_backward_drawn(dy, rate, np.random.default_rng(0))


def _one_mask_for_the_batch(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape[1:], dtype=np.float32) >= rate) * float(1 / (1 - rate))


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
        reference=winners,
        inputs=_even_images,
        hints=(
            "The four numbers at one place of all windows are a slice: x[:, 0::2, 1::2] is the upper right one of each.",
            "Begin with y = x[:, 0::2, 0::2] (a copy) and index 0. Then let the other three places challenge it, in order.",
            "better = candidate > y tells where place k wins. There index becomes k, and y becomes the candidate.",
            "index[better] = k, then np.maximum(y, candidate, out=y). Strictly larger, so that of equal ones the first stays.",
        ),
        wrong=(
            Wrong(
                _index_in_int64,
                "The values are right, but index has 8 bytes for each number: that is what argmax gives. The four places "
                "of a window need 0 to 3 only. Make index np.uint8.",
            ),
            Wrong(
                _last_of_equal,
                "Of equal numbers you take the last place. The first one is asked for, as argmax does: let a later place "
                "win only where it is strictly larger.",
            ),
            Wrong(
                _down_the_columns,
                "Your index counts down the columns: the upper right place is 1 and the lower left is 2. The places of a "
                "window are counted row by row.",
            ),
            Wrong(
                _began_at_zero,
                "Windows that hold only negative numbers give 0, which is in none of them. The best so far has to begin "
                "with the first number of the window, or with -∞.",
            ),
            Wrong(
                _over_the_channels,
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
        reference=packed,
        inputs=_indices,
        hints=(
            "index[0::4] is the first index of each group of four, index[1::4] the second, and so on.",
            "a << 2 moves the bits of a by two places to the left; a | b puts together bits that do not meet.",
            "Where the length is no multiple of 4, first copy the indices into zeros of the next multiple: "
            "-(-index.size // 4) * 4.",
            "room[0::4] | room[1::4] << 2 | room[2::4] << 4 | room[3::4] << 6, all in np.uint8.",
        ),
        wrong=(
            Wrong(
                _first_one_on_top,
                "Your first index stands in the highest two bits. It is asked for in the lowest two, so that "
                "byte & 3 reads it.",
            ),
            Wrong(
                _rest_left_out,
                "The last one, two or three indices are lost where the length is no multiple of 4. Their byte is missing: "
                "round the number of bytes up.",
            ),
            Wrong(
                _shifted_by_one,
                "You move each index by one bit more than the one before. An index of 0 to 3 has two bits, so neighbours "
                "write over each other. Move by 0, 2, 4 and 6.",
            ),
            Wrong(
                _too_wide,
                "The numbers are right, but the result is int64: 8 bytes for what fits into one. Four indices then take "
                "as much as one index of argmax. Give np.uint8.",
            ),
            Wrong(
                _one_byte_too_many,
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
        reference=max_backward,
        inputs=_rows,
        hints=(
            "A loop over dy is fine. Window i is x[i * stride : i * stride + kernel].",
            "argmax of the window gives the first of its largest numbers, counted from the window's beginning.",
            "Two windows can have the same winner. Then it gets both: add, do not assign.",
            "dx[i * stride + window.argmax()] += dy[i], with dx = np.zeros_like(x).",
        ),
        wrong=(
            Wrong(
                _to_each_tie,
                "With two equal maxima you give the whole dy to both, so the gradient of one window adds up to 2·dy. "
                "A window has dy to give once: give it to the first. argmax finds it, == does not.",
            ),
            Wrong(
                _shared_by_ties,
                "You share dy among equal maxima. That is a fair choice, and its sum is right. But then you must keep the "
                "number of ties, so this course gives all of it to the first, as argmax does.",
            ),
            Wrong(
                _to_the_last_tie,
                "Of equal maxima you take the last one. That is a valid choice too, but forward keeps the first, and both "
                "have to agree: let a later number win only where it is strictly larger.",
            ),
            Wrong(
                _written_over,
                "Where windows overlap, one number can win several of them. You write its gradient each time, so only the "
                "last window counts. Add with +=.",
            ),
            Wrong(
                _place_in_the_window,
                "argmax of a window counts from the window's beginning. You use it as a place in x. Add i * stride.",
            ),
            Wrong(
                _to_all,
                "You give each number of the window an equal share. That is the gradient of a mean. Here only the winner "
                "can move the output.",
            ),
        ),
    ),
    Exercise(
        id="06.4",
        title="The mean of the pixels that are there",
        reference=avg_backward,
        inputs=_averages,
        hints=(
            "First do it without padding: each of the k · k pixels of a window gets dy / (k · k). Windows may overlap.",
            "With padding, cut each window to the image: rows max(top, 0) to top + kernel, where top = row * stride - padding.",
            "A slice that goes past the end of the image is cut by NumPy itself. One that begins below 0 is not.",
            "The divisor is the number of rows times the number of columns of the cut window, for each window anew.",
        ),
        wrong=(
            Wrong(
                _padding_counted,
                "You divide by all places of the window, those on the padding too. Here a mean is over the pixels that are "
                "there: at an edge the divisor is smaller than k · k.",
            ),
            Wrong(
                _not_divided,
                "You pass on the whole dy to each pixel. The forward pass divides, so each pixel has only its share of the "
                "mean: divide by the number of pixels in the window.",
            ),
            Wrong(
                _share_written_over,
                "Where windows overlap, a pixel is in several means. You write over what it had from the window before. "
                "Add.",
            ),
            Wrong(
                _padding_kept,
                "The numbers are right, but the border of padding is still around them. dx has the shape of the image: "
                "(N, *in_hw, C).",
            ),
            Wrong(
                _divided_by_kernel,
                "You divide by the side of the window. A window has kernel · kernel places, fewer at an edge.",
            ),
        ),
    ),
    Exercise(
        id="06.5",
        title="Draw the mask again",
        reference=dropout_backward_drawn,
        inputs=_gradients,
        hints=(
            "Call rng.random just as forward did: the same shape, the same dtype, the same comparison.",
            "Forward drew with dtype=np.float32 and kept where the draw was >= rate.",
            "What was kept was scaled by 1 / (1 - rate) in forward, so its gradient is scaled too.",
        ),
        wrong=(
            Wrong(
                _not_scaled,
                "The mask is right, but the scale is missing. Forward multiplied what it kept by 1 / (1 - rate), so the "
                "slope is that factor and not 1.",
            ),
            Wrong(
                _scaled_down,
                "You multiply by 1 - rate. Forward divided by it: what stays is scaled up, so that the mean does not change.",
            ),
            Wrong(
                _rate_kept,
                "You keep where the draw is below rate. `rate` is the part that is dropped; in some books and libraries it "
                "is the part that is kept. Keep where the draw is >= rate.",
            ),
            Wrong(
                _drawn_in_float64,
                "You draw in float64, NumPy's usual kind. Forward drew in float32, and the two use the generator "
                "differently: another mask comes out. Write dtype=np.float32.",
            ),
            Wrong(
                _wide_mask,
                "The numbers are right, but float32 became float64 on the way: a mask divided by a NumPy number is "
                "float64. Multiply by a Python number, dx *= 1 / (1 - rate).",
            ),
            Wrong(
                _another_generator,
                "You draw from a new generator. The one that is handed over stands where forward began; only it gives "
                "forward's mask.",
            ),
            Wrong(
                _one_mask_for_the_batch,
                "You draw one mask for all samples. Forward drew each number of each sample by itself: the shape is that "
                "of dy, the batch included.",
            ),
        ),
        big=lambda rng: (np.ones((1024, 1024), np.float32), 0.25, np.random.default_rng(0)),
        costs=((1.8, "an array on the way is float64"), (1.15, "one more temporary")),
    ),
]
