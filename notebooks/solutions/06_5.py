import numpy as np


def dropout_backward_drawn(dy, rate, rng):
    """dy, any shape; rng stands where forward began -> dx, the shape and dtype of dy."""
    keep = rng.random(dy.shape, dtype=np.float32) >= rate  # the same call as in forward, so the same numbers
    dx = dy * keep
    dx *= 1 / (1 - rate)  # a Python number: float32 stays float32
    return dx


check("06.5", dropout_backward_drawn)
