import numpy as np


def max_backward(dy, x, kernel, stride):
    """dy (D',), x (D,), window i is x[i * stride : i * stride + kernel] -> dx (D,)."""
    dx = np.zeros_like(x)
    for i in range(len(dy)):
        start = i * stride
        winner = x[start : start + kernel].argmax()  # the first of equal ones
        dx[start + winner] += dy[i]  # added, since a number can win several windows
    return dx


check("06.3", max_backward)
