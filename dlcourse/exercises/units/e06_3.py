"""06.3  Where the gradient of a maximum goes."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- A loop over dy is fine. Window i is x[i * stride : i * stride + kernel].
- argmax of the window gives the first of its largest numbers, counted from the window's beginning.
- Two windows can have the same winner. Then it gets both: add, do not assign.
- dx[i * stride + window.argmax()] += dy[i], with dx = np.zeros_like(x).
"""


@solution
def max_backward(dy, x, kernel, stride):
    """dy (D',), x (D,), window i is x[i * stride : i * stride + kernel] -> dx (D,)."""
    dx = np.zeros_like(x)
    for i in range(len(dy)):
        start = i * stride
        winner = x[start : start + kernel].argmax()  # the first of equal ones
        dx[start + winner] += dy[i]  # added, since a number can win several windows
    return dx


def row(give, dy, x, kernel, stride):
    """dx, zeros at first, into which `give` puts each window's dy."""
    dx = np.zeros_like(x)
    for i, step in enumerate(dy):
        give(dx, x[i * stride : i * stride + kernel], i * stride, step)
    return dx


@wrong
def to_each_tie(dy, x, kernel, stride):
    """With two equal maxima you give the whole dy to both, so the gradient of one window adds up to 2·dy. A window has
    dy to give once: give it to the first. argmax finds it, == does not."""

    def give(dx, window, place, step):
        dx[place : place + kernel] += (window == window.max()) * step

    return row(give, dy, x, kernel, stride)


@wrong
def shared_by_ties(dy, x, kernel, stride):
    """You share dy among equal maxima. That is a valid choice, and its sum is right. This course gives all of it to the
    first, as argmax does: then one index a window is all that backward needs."""

    def give(dx, window, place, step):
        best = window == window.max()
        dx[place : place + kernel] += best * step / best.sum()

    return row(give, dy, x, kernel, stride)


@wrong
def to_the_last_tie(dy, x, kernel, stride):
    """Of equal maxima you take the last one. That is a valid choice too, but forward keeps the first, and both have to
    agree: let a later number win only where it is strictly larger."""

    def give(dx, window, place, step):
        dx[place + kernel - 1 - window[::-1].argmax()] += step

    return row(give, dy, x, kernel, stride)


@wrong
def written_over(dy, x, kernel, stride):
    """Where windows overlap, one number can win several of them. You write its gradient each time, so only the last
    window counts. Add with += in a loop. With lists of places += counts once too: take np.add.at."""

    def give(dx, window, place, step):
        dx[place + window.argmax()] = step

    return row(give, dy, x, kernel, stride)


@wrong
def place_in_the_window(dy, x, kernel, stride):
    """argmax of a window counts from the window's beginning. You use it as a place in x. Add i * stride."""
    return row(lambda dx, window, place, step: np.add.at(dx, window.argmax(), step), dy, x, kernel, stride)


@wrong
def to_all(dy, x, kernel, stride):
    """You give each number of the window an equal share. That is the gradient of a mean. Here only the winner can move
    the output."""

    def give(dx, window, place, step):
        dx[place : place + kernel] += step / kernel

    return row(give, dy, x, kernel, stride)


def inputs(rng):
    yield "one window", (np.array([5.0]), np.array([1.0, 4.0, 2.0]), 3, 3)
    yield "a tie: .6, .6, .3", (np.array([1.0]), np.array([0.6, 0.6, 0.3]), 3, 3)
    yield "two windows that both have the middle number", (np.array([2.0, 3.0]), np.array([1.0, 9.0, 1.0]), 2, 1)
    yield "stride 2 and windows of 2: the last number is in none", (np.ones(2), np.arange(5.0), 2, 2)
    yield "all equal", (np.array([1.0, -2.0, 3.0]), np.zeros(5), 3, 1)
    yield "a stride that leaves gaps", (np.array([1.0, -1.0, 2.0]), rng.permutation(8.0 - np.arange(8)), 2, 3)
    yield "float32", (rng.standard_normal(17, dtype=np.float32), rng.standard_normal(20, dtype=np.float32), 4, 1)
    yield "dy in float64, x in float32: dx is like x", (np.array([1.0, 2.0]), np.arange(4, dtype=np.float32), 2, 2)
