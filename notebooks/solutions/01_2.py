import numpy as np


def normalized(x):
    """(x − mean of x) / standard deviation of x.  x of any shape, float32 or float64 -> the same shape and dtype."""
    y = x - x.mean()  # the only array of the size of x
    flat = y.reshape(-1)  # y was just made and is in one piece, so this is a view
    y /= np.sqrt(np.dot(flat, flat) / y.size).astype(y.dtype)
    return y


check("01.2", normalized)
