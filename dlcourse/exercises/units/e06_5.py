"""06.5  Draw the mask again."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- Call rng.random just as forward did: the same shape, the same dtype, the same comparison.
- Forward drew with dtype=np.float32 and kept where the draw was >= rate.
- What was kept was scaled by 1 / (1 - rate) in forward, so its gradient is scaled too.
"""
costs = (
    (3.0, "an array on the way is float64"),
    (1.15, "beside dx there is another array like dy: scale in place, dx *= 1 / (1 - rate)"),
)


@solution
def dropout_backward_drawn(dy, rate, rng):
    """dy, any shape; rng stands where forward began -> dx, the shape and dtype of dy."""
    keep = rng.random(dy.shape, dtype=np.float32) >= rate  # the same call as in forward, so the same numbers
    dx = dy * keep
    dx *= 1 / (1 - rate)  # a Python number: float32 stays float32
    return dx


def not_scaled(dy, rate, rng):
    return dy * (rng.random(dy.shape, dtype=np.float32) >= rate)


@wrong
def scaled_down(dy, rate, rng):
    """You multiply by 1 - rate. Forward divided by it: what stays is scaled up, so that the mean does not change."""
    return not_scaled(dy, rate, rng) * (1 - rate)


@wrong
def rate_kept(dy, rate, rng):
    """You keep where the draw is below rate. `rate` is the part that is dropped; in some books and libraries it is the
    part that is kept. Keep where the draw is >= rate."""
    return dy * (rng.random(dy.shape, dtype=np.float32) < rate) / (1 - rate)


@wrong
def drawn_in_float64(dy, rate, rng):
    """You draw in float64, NumPy's usual kind. Forward drew in float32, and the two use the generator differently:
    another mask comes out. Write dtype=np.float32."""
    return dy * (rng.random(dy.shape) >= rate).astype(dy.dtype) * float(1 / (1 - rate))


@wrong
def drawn_in_the_dtype_of_dy(dy, rate, rng):
    """You draw in the dtype of dy. Forward drew in float32, whatever the dtype of x was: with float64 another mask
    comes out. Write dtype=np.float32."""
    return dy * (rng.random(dy.shape, dtype=dy.dtype.type) >= rate) * float(1 / (1 - rate))


@wrong
def another_generator(dy, rate, rng):
    """You draw from a new generator. The one that is handed over stands where forward began; only it gives forward's
    mask."""
    return dropout_backward_drawn(dy, rate, np.random.default_rng(0))


@wrong
def one_mask_for_the_batch(dy, rate, rng):
    """You draw one mask for all samples. Forward drew each number of each sample by itself: the shape is that of dy,
    the batch included."""
    return dy * (rng.random(dy.shape[1:], dtype=np.float32) >= rate) * float(1 / (1 - rate))


also_wrong = (
    not_scaled,
    lambda dy, rate, rng: dy * ((rng.random(dy.shape, dtype=np.float32) >= rate) / np.float64(1 - rate)),
)


def inputs(rng):
    yield "eight numbers, half of them dropped", (np.arange(1.0, 9).reshape(2, 4), 0.5, np.random.default_rng(1))
    yield "nothing is dropped", (np.ones((1, 3)), 0.0, np.random.default_rng(2))
    part = rng.standard_normal((5, 7), dtype=np.float32)
    yield "float32, a quarter dropped", (part, 0.25, np.random.default_rng((3, 1)))
    later = np.random.default_rng(4)
    later.random(3, dtype=np.float32)
    images = rng.standard_normal((2, 3, 3, 2), dtype=np.float32)
    yield "images, nine of ten dropped; the generator has drawn before", (images, 0.9, later)


def large(rng):
    return (np.ones((1024, 1024), np.float32), 0.25, np.random.default_rng(0))
