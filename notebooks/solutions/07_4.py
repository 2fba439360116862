import numpy as np


def fold(W, b, gamma, beta, mean, var, eps):
    """W (..., C) and the others (C,) -> W (..., C), b (C,) of one layer that does both."""
    scale = gamma / np.sqrt(var + eps)
    return W * scale, (b - mean) * scale + beta  # channels are the last axis of W


check("07.4", fold)
