"""06.4  The mean of the pixels that are there."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- First do it without padding: each of the k · k pixels of a window gets dy / (k · k). Windows may overlap.
- With padding, cut each window to the image: rows max(top, 0) to top + kernel, where top = row * stride - padding.
- A slice that goes past the end of the image is cut by NumPy itself. One that begins below 0 is not.
- The divisor is the number of rows times the number of columns of the cut window, for each window anew.
"""


@solution
def avg_backward(dy, in_hw, kernel, stride, padding):
    """dy (N, H', W', C) -> dx (N, *in_hw, C); each dy is shared by the pixels of its window, padding left out."""
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for a, b in np.ndindex(dy.shape[1:3]):
        top, left = stride * a - padding, stride * b - padding
        # A slice that ends behind the picture is cut by NumPy; one that begins before it is not.
        window = dx[:, max(top, 0) : top + kernel, max(left, 0) : left + kernel]
        pixels = window.shape[1] * window.shape[2]
        window += dy[:, a : a + 1, b : b + 1] / pixels  # added, since windows may overlap
    return dx


def shared(dy, in_hw, kernel, stride, padding, parts, write):
    """`parts`: what the dy of a window is divided by. `write`: (what dx has there, the share) -> what dx gets there."""
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for row, column in np.ndindex(dy.shape[1:3]):
        top, left = row * stride - padding, column * stride - padding
        window = dx[:, max(top, 0) : top + kernel, max(left, 0) : left + kernel]
        share = dy[:, row : row + 1, column : column + 1] / parts(window[0, :, :, 0])
        window[...] = write(window, share)
    return dx


@wrong
def padding_counted(dy, in_hw, kernel, stride, padding):
    """You divide by all places of the window, those on the padding too. Here a mean is over the pixels that are there:
    at an edge the divisor is smaller than k · k."""
    return shared(dy, in_hw, kernel, stride, padding, lambda window: kernel * kernel, np.add)


@wrong
def not_divided(dy, in_hw, kernel, stride, padding):
    """You pass on the whole dy to each pixel. The forward pass divides, so each pixel has only its share of the mean:
    divide by the number of pixels in the window."""
    return shared(dy, in_hw, kernel, stride, padding, lambda window: 1, np.add)


@wrong
def share_written_over(dy, in_hw, kernel, stride, padding):
    """Where windows overlap, a pixel is in several means. You write over what it had from the window before. Add."""
    return shared(dy, in_hw, kernel, stride, padding, np.size, lambda old, new: np.broadcast_to(new, old.shape))


@wrong
def begun_below_zero(dy, in_hw, kernel, stride, padding):
    """Where a window begins on the padding, its first row or column is below 0, and NumPy counts such a number from the
    end: the slice is empty or in another place. Begin it at max(top, 0) and max(left, 0)."""
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for row, column in np.ndindex(dy.shape[1:3]):
        top, left = row * stride - padding, column * stride - padding
        window = dx[:, top : top + kernel, left : left + kernel]  # a number below 0 counts from the end
        window += dy[:, row : row + 1, column : column + 1] / max(window[0, :, :, 0].size, 1)
    return dx


@wrong
def moved_inside(dy, in_hw, kernel, stride, padding):
    """You move the windows that begin on the padding into the picture: they keep all their rows and columns. Cut them:
    from max(top, 0) to top + kernel, with the top that may be below 0."""
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for row, column in np.ndindex(dy.shape[1:3]):
        top, left = max(row * stride - padding, 0), max(column * stride - padding, 0)
        window = dx[:, top : top + kernel, left : left + kernel]
        window += dy[:, row : row + 1, column : column + 1] / window[0, :, :, 0].size
    return dx


@wrong
def samples_as_columns(dy, in_hw, kernel, stride, padding):
    """dy[:, a, b] has the shape (N, C), and beside a window (N, rows, columns, C) NumPy takes its samples for columns.
    dy[:, a : a + 1, b : b + 1] keeps all four axes."""
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]), dy.dtype)
    for row, column in np.ndindex(dy.shape[1:3]):
        top, left = row * stride - padding, column * stride - padding
        window = dx[:, max(top, 0) : top + kernel, max(left, 0) : left + kernel]
        window += dy[:, row, column] / window[0, :, :, 0].size  # (N, C) broadcasts to (columns, C)
    return dx


also_wrong = (
    lambda dy, hw, k, s, p: np.pad(avg_backward(dy, hw, k, s, p), ((0, 0), (p, p), (p, p), (0, 0))),
    lambda dy, hw, k, s, p: shared(dy, hw, k, s, p, lambda window: k, np.add),
)


def inputs(rng):
    yield "one window, no padding", (np.full((1, 1, 1, 1), 8.0), (2, 2), 2, 2, 0)
    yield "one pixel, windows of 3 × 3, padding 1", (np.full((1, 1, 1, 1), 5.0), (1, 1), 3, 1, 1)
    yield "windows that overlap", (np.arange(1.0, 5).reshape(1, 2, 2, 1), (3, 3), 2, 1, 0)
    yield "a border of padding", (np.ones((1, 3, 3, 1)), (3, 3), 3, 1, 1)
    yield "a last row that no window reaches", (rng.standard_normal((2, 2, 2, 3)), (5, 4), 2, 2, 0)
    yield "float32, not square", (rng.standard_normal((3, 3, 2, 2), dtype=np.float32), (5, 4), 3, 2, 1)
