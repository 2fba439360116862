"""06.1  The winner of each window."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

parts = "y", "index"
hints = """
- The four numbers at one place of all windows are a slice: x[:, 0::2, 1::2] is the upper right one of each.
- Begin with y = x[:, 0::2, 0::2].copy() and index 0. Then let the other three places challenge it, in order.
- better = candidate > y tells where place k wins. There index becomes k, and y becomes the candidate.
- index[better] = k, then np.maximum(y, candidate, out=y). Strictly larger, so that of equal ones the first stays.
"""
costs = (
    (2.5, "a copy of all windows, or an int64 index for a time"),
    (1.4, "one more temporary"),
)


@solution
def winners(x):
    """x (N, H, W, C), H and W even -> y, index (N, H/2, W/2, C); index is uint8, 0 to 3."""
    y = x[:, 0::2, 0::2].copy()  # the first place of each window is the best so far
    index = np.zeros(y.shape, np.uint8)
    for place in (1, 2, 3):
        candidate = x[:, place // 2 :: 2, place % 2 :: 2]  # a view: nothing is copied
        index[candidate > y] = place  # strictly larger, so the first of equal ones stays
        np.maximum(y, candidate, out=y)
    return y, index


def windows(x):
    n, h, w, c = x.shape
    return x.reshape(n, h // 2, 2, w // 2, 2, c).transpose(0, 1, 3, 5, 2, 4).reshape(n, h // 2, w // 2, c, 4)


@wrong
def last_of_equal(x):
    """Of equal numbers you take the last place. The first one is asked for, as argmax does: let a later place win only
    where it is strictly larger."""
    w = windows(x)
    return w.max(axis=-1), (3 - w[..., ::-1].argmax(axis=-1)).astype(np.uint8)


@wrong
def down_the_columns(x):
    """Your index counts down the columns: the upper right place is 1 and the lower left is 2. The places of a window
    are counted row by row."""
    y, index = winners(x.transpose(0, 2, 1, 3))
    return np.ascontiguousarray(y.transpose(0, 2, 1, 3)), np.ascontiguousarray(index.transpose(0, 2, 1, 3))


@wrong
def began_at_zero(x):
    """Windows that hold only negative numbers give 0, which is in none of them. The best so far has to begin with the
    first number of the window, or with -∞."""
    w = np.concatenate([np.zeros_like(windows(x)[..., :1]), windows(x)], axis=-1)
    return w.max(axis=-1), np.maximum(w.argmax(axis=-1) - 1, 0).astype(np.uint8)


@wrong
def over_the_channels(x):
    """You take the largest over the channels too. Each channel is pooled by itself: the window lies in rows and columns
    only."""
    w = windows(x).max(axis=-2, keepdims=True)
    like = np.zeros(windows(x).shape[:-1])
    return (w.max(axis=-1) + like).astype(x.dtype), (w.argmax(axis=-1) + like).astype(np.uint8)


also_wrong = (lambda x: ((both := winners(x))[0], both[1].astype(np.int64)),)


def inputs(rng):
    yield "one window, the largest comes last", (np.arange(4.0).reshape(1, 2, 2, 1),)
    yield "one window of four equal numbers", (np.full((1, 2, 2, 1), 3.0),)
    yield "one window of negative numbers", (np.array([-4.0, -2.0, -3.0, -1000.0]).reshape(1, 2, 2, 1),)
    yield "two channels, four windows", (rng.permutation(32.0 - np.arange(32)).reshape(1, 4, 4, 2),)
    yield "many ties", (rng.integers(0, 3, (2, 4, 6, 3)).astype(np.float32),)
    yield "three images, not square, float32", (rng.standard_normal((3, 6, 2, 2), dtype=np.float32),)


def large(rng):
    return (rng.standard_normal((50, 32, 32, 32), dtype=np.float32),)
