import numpy as np


def tanh_backward(dy, y):
    """dy, y any one shape, y = tanh(x) -> dx, the same shape."""
    dx = y * y
    np.subtract(1, dx, out=dx)  # 1 - y², the slope
    dx *= dy
    return dx


check("04.1", tanh_backward)
