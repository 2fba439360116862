"""04.1  The backward pass of tanh."""

import numpy as np

from dlcourse.exercises.unit import solution, wrong

hints = """
- The slope of tanh is 1 − tanh(x)². You do not have x. Which part of the formula do you have?
- The slope is 1 − y². The chain rule multiplies it with what comes in from above.
- dx = dy · (1 − y · y). Begin with dx = y * y and change it in place: then there is no other array.
"""
costs = ((1.5, "a second array beside dx; y * y can become dx, changed in place"),)


@solution
def tanh_backward(dy, y):
    """dy, y any one shape, y = tanh(x) -> dx, the same shape."""
    dx = y * y
    np.subtract(1, dx, out=dx)  # 1 - y², the slope
    dx *= dy
    return dx


@wrong
def slope_at_y(dy, y):
    """You take tanh of y. But y is tanh(x) already, so the slope is 1 − y²."""
    return dy * (1 - np.tanh(y) ** 2)


@wrong
def slope_alone(dy, y):
    """You return the slope alone. Backward multiplies it with dy."""
    return 1 - y * y


@wrong
def not_squared(dy, y):
    """Your slope is 1 − y; the square is missing. At y = −1 tanh is flat, so there the slope has to be 0."""
    return dy * (1 - y)


@wrong
def of_sigmoid(dy, y):
    """y (1 − y) is the slope of the sigmoid. tanh goes from −1 to 1 and has the slope 1 − y²."""
    return dy * y * (1 - y)


def inputs(rng):
    yield "one number, y = 0.5", (np.array([2.0]), np.array([0.5]))
    yield "(3, 2), float64", (rng.standard_normal((3, 2)), np.tanh(rng.standard_normal((3, 2))))
    yield "y at -1, 0 and 1", (np.array([3.0, 3.0, 3.0]), np.array([-1.0, 0.0, 1.0]))
    dy, x = rng.standard_normal((2, 2, 3, 5), dtype=np.float32)
    yield "(2, 3, 5), float32", (dy, np.tanh(x))
    yield "no sample, (0, 4)", (np.zeros((0, 4)), np.zeros((0, 4)))


def large(rng):
    return tuple(np.tanh(rng.standard_normal((2, 1024, 512), dtype=np.float32)))
