import numpy as np


def winners(x):
    """x (N, H, W, C), H and W even -> y, index (N, H/2, W/2, C); index is uint8, 0 to 3."""
    y = x[:, 0::2, 0::2].copy()  # the first place of each window is the best so far
    index = np.zeros(y.shape, np.uint8)
    for place in (1, 2, 3):
        candidate = x[:, place // 2 :: 2, place % 2 :: 2]  # a view: nothing is copied
        index[candidate > y] = place  # strictly larger, so the first of equal ones stays
        np.maximum(y, candidate, out=y)
    return y, index


check("06.1", winners)
