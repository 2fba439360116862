"""Answers to the exercises of notebook 06: each reference, and the mistakes that people make."""

from collections.abc import Callable

import numpy as np

Array = np.ndarray

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


def index_in_int64(x: Array) -> tuple[Array, Array]:
    w = _windows(x)
    return w.max(axis=-1), w.argmax(axis=-1)


def last_of_equal(x: Array) -> tuple[Array, Array]:
    w = _windows(x)
    return w.max(axis=-1), (3 - w[..., ::-1].argmax(axis=-1)).astype(np.uint8)


def down_the_columns(x: Array) -> tuple[Array, Array]:
    y, index = winners(x.transpose(0, 2, 1, 3))
    return np.ascontiguousarray(y.transpose(0, 2, 1, 3)), np.ascontiguousarray(index.transpose(0, 2, 1, 3))


def began_at_zero(x: Array) -> tuple[Array, Array]:
    w = np.concatenate([np.zeros_like(_windows(x)[..., :1]), _windows(x)], axis=-1)
    return w.max(axis=-1), np.maximum(w.argmax(axis=-1) - 1, 0).astype(np.uint8)


def over_the_channels(x: Array) -> tuple[Array, Array]:
    w = _windows(x).max(axis=-2, keepdims=True)
    like = np.zeros(_windows(x).shape[:-1])
    return (w.max(axis=-1) + like).astype(x.dtype), (w.argmax(axis=-1) + like).astype(np.uint8)


# 06.2 four indices in one byte


def packed(index: Array) -> Array:
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)
    room[: index.size] = index
    return room[0::4] | room[1::4] << 2 | room[2::4] << 4 | room[3::4] << 6


def first_one_on_top(index: Array) -> Array:
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)
    room[: index.size] = index
    return room[0::4] << 6 | room[1::4] << 4 | room[2::4] << 2 | room[3::4]


def rest_left_out(index: Array) -> Array:
    return packed(index[: index.size // 4 * 4])


def shifted_by_one(index: Array) -> Array:
    room = np.zeros(-(-index.size // 4) * 4, np.uint8)
    room[: index.size] = index
    return room[0::4] | room[1::4] << 1 | room[2::4] << 2 | room[3::4] << 3


def too_wide(index: Array) -> Array:
    return packed(index).astype(np.int64)


def one_byte_too_many(index: Array) -> Array:
    return np.append(packed(index), np.uint8(0)) if index.size % 4 == 0 else packed(index)


# 06.3 a row of numbers: windows that overlap, and ties


def max_backward(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    return _row(lambda dx, window, place, step: np.add.at(dx, place + window.argmax(), step), dy, x, kernel, stride)


def _row(give: Callable[[Array, Array, int, float], None], dy: Array, x: Array, kernel: int, stride: int) -> Array:
    """dx, zeros at first, into which `give` puts each window's dy."""
    dx = np.zeros_like(x)
    for i, step in enumerate(dy):
        give(dx, x[i * stride : i * stride + kernel], i * stride, step)
    return dx


def to_each_tie(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        dx[place : place + kernel] += (window == window.max()) * step

    return _row(give, dy, x, kernel, stride)


def shared_by_ties(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        best = window == window.max()
        dx[place : place + kernel] += best * step / best.sum()

    return _row(give, dy, x, kernel, stride)


def to_the_last_tie(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        dx[place + kernel - 1 - window[::-1].argmax()] += step

    return _row(give, dy, x, kernel, stride)


def written_over(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        dx[place + window.argmax()] = step

    return _row(give, dy, x, kernel, stride)


def place_in_the_window(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    return _row(lambda dx, window, place, step: np.add.at(dx, window.argmax(), step), dy, x, kernel, stride)


def to_all(dy: Array, x: Array, kernel: int, stride: int) -> Array:
    def give(dx: Array, window: Array, place: int, step: float) -> None:
        dx[place : place + kernel] += step / kernel

    return _row(give, dy, x, kernel, stride)


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


def padding_counted(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(dy, in_hw, kernel, stride, padding, lambda window: kernel * kernel, np.add)


def not_divided(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(dy, in_hw, kernel, stride, padding, lambda window: 1, np.add)


def share_written_over(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(
        dy, in_hw, kernel, stride, padding, lambda w: w.size, lambda old, new: np.broadcast_to(new, old.shape)
    )


def padding_kept(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return np.pad(avg_backward(dy, in_hw, kernel, stride, padding), ((0, 0), (padding,) * 2, (padding,) * 2, (0, 0)))


def begun_below_zero(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for row, column in np.ndindex(dy.shape[1:3]):
        top, left = row * stride - padding, column * stride - padding
        window = dx[:, top : top + kernel, left : left + kernel]  # a number below 0 counts from the end
        window += dy[:, row : row + 1, column : column + 1] / max(window[0, :, :, 0].size, 1)
    return dx


def moved_inside(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for row, column in np.ndindex(dy.shape[1:3]):
        top, left = max(row * stride - padding, 0), max(column * stride - padding, 0)
        window = dx[:, top : top + kernel, left : left + kernel]
        window += dy[:, row : row + 1, column : column + 1] / window[0, :, :, 0].size
    return dx


def samples_as_columns(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for row, column in np.ndindex(dy.shape[1:3]):
        top, left = row * stride - padding, column * stride - padding
        window = dx[:, max(top, 0) : top + kernel, max(left, 0) : left + kernel]
        window += dy[:, row, column] / window[0, :, :, 0].size  # (N, C) broadcasts to (columns, C)
    return dx


def divided_by_kernel(dy: Array, in_hw: tuple[int, int], kernel: int, stride: int, padding: int) -> Array:
    return _shared(dy, in_hw, kernel, stride, padding, lambda window: kernel, np.add)


# 06.5 draw the mask again


def dropout_backward_drawn(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    keep = rng.random(dy.shape, dtype=np.float32) >= rate
    dx = dy * keep
    dx *= 1 / (1 - rate)
    return dx


def not_scaled(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape, dtype=np.float32) >= rate)


def scaled_down(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return not_scaled(dy, rate, rng) * (1 - rate)


def rate_kept(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape, dtype=np.float32) < rate) / (1 - rate)


def drawn_in_float64(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape) >= rate).astype(dy.dtype) * float(1 / (1 - rate))


def drawn_in_the_dtype_of_dy(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape, dtype=dy.dtype.type) >= rate) * float(1 / (1 - rate))


def wide_mask(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * ((rng.random(dy.shape, dtype=np.float32) >= rate) / np.float64(1 - rate))


def another_generator(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dropout_backward_drawn(dy, rate, np.random.default_rng(0))


def one_mask_for_the_batch(dy: Array, rate: float, rng: np.random.Generator) -> Array:
    return dy * (rng.random(dy.shape[1:], dtype=np.float32) >= rate) * float(1 / (1 - rate))
