"""11.3  Brighter or darker."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- `uint8` begins again at 0 after 255. So the sum must be made in a dtype that can hold −250 and 505.
- One shift for each picture: `rng.integers(-most, most + 1, size=(len(x), 1, 1, 1))` is spread over its pixels and
  colours.
- `y = x.astype(np.int16)`, add the shift (as int16), `np.clip(y, 0, 255, out=y)`, and back to uint8.
"""
costs = ((2.0, "int64, as `rng.integers` and `x + shift` are: 8 bytes a number, where int16 has 2"),)


@solution
def brighter(x, rng, most):
    """Shift each picture's bytes by one random number in −most … most, limited to 0 … 255.  x (N, H, W, C) uint8."""
    shift = rng.integers(-most, most + 1, size=(len(x), 1, 1, 1))
    y = x.astype(np.int16)  # holds −250 and 505, and takes a quarter of int64
    y += shift.astype(np.int16)
    np.clip(y, 0, 255, out=y)
    return y.astype(np.uint8)


@wrong
def starts_again(x, rng, most):
    """A white pixel becomes black where it gets brighter: 250 + 10 is 260, and a byte makes 4 of it. Limit the sum to 0
    … 255 before you convert it to uint8."""
    shift = rng.integers(-most, most + 1, size=(len(x), 1, 1, 1))
    return (x + shift).astype(np.uint8)


@wrong
def one_for_all(x, rng, most):
    """All pictures get the same shift. Each picture of the micro-batch should get its own: draw `len(x)` numbers."""
    return np.clip(x + rng.integers(-most, most + 1), 0, 255).astype(np.uint8)


@wrong
def one_for_each_byte(x, rng, most):
    """Each byte gets a shift of its own. That is noise. A picture that is brighter is brighter everywhere."""
    return np.clip(x + rng.integers(-most, most + 1, size=x.shape), 0, 255).astype(np.uint8)


@wrong
def end_left_out(x, rng, most):
    """`rng.integers(a, b)` never gives b. So the largest shift is missing: write `most + 1`."""
    return np.clip(x + rng.integers(-most, most, size=(len(x), 1, 1, 1)), 0, 255).astype(np.uint8)


@wrong
def only_brighter(x, rng, most):
    """Your shifts are never negative. A picture may get darker too: from −most to most."""
    shift = rng.integers(0, most + 1, size=(len(x), 1, 1, 1))
    return np.clip(x + shift, 0, 255).astype(np.uint8)


@wrong
def each_channel(x, rng, most):
    """Each channel gets a shift of its own, so the colours change. Draw one number a picture: (N, 1, 1, 1)."""
    shift = rng.integers(-most, most + 1, size=(len(x), 1, 1, x.shape[3]))
    return np.clip(x + shift, 0, 255).astype(np.uint8)


also_wrong = (
    lambda x, rng, most: np.clip(x + rng.integers(-most, most + 1, size=(len(x), 1, 1, 1)), 0, 255),
    lambda x, rng, most: np.clip(x + rng.integers(-most, most + 1, (len(x), 1, 1, 1)), 0, 256).astype("u1"),
    lambda x, rng, most: np.clip(x + rng.integers(-most, most + 1, size=len(x)), 0, 255).astype(np.uint8),
    lambda x, rng, most: brighter(x, np.random.default_rng(0), most),
)


def inputs(rng):
    def draw(*shape):
        return rng.integers(0, 256, size=shape, dtype=np.uint8)

    yield "5 colour pictures of 4 × 3", (draw(5, 4, 3, 3), np.random.default_rng(1), 20)
    yield "one grey picture", (draw(1, 3, 3, 1), np.random.default_rng(2), 60)
    black_and_white = np.repeat(np.array([0, 255], np.uint8), 8).reshape(4, 2, 2, 1)
    yield "two black pictures and two white ones", (black_and_white, np.random.default_rng(3), 100)
    yield "by 0: nothing may change", (draw(2, 2, 2, 3), np.random.default_rng(4), 0)
    yield "far too much", (draw(6, 3, 3, 1), np.random.default_rng(5), 250)


def large(rng):
    return rng.integers(0, 256, size=(100, 64, 64, 3), dtype=np.uint8), np.random.default_rng(0), 30
