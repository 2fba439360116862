import numpy as np


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


check("06.4", avg_backward)
