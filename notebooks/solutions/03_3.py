import numpy as np


def passes(f, backward, x, dy):
    """Is backward(dy, x) the gradient of (dy * f(x)).sum()? In float64, to 1e-6. -> True or False"""
    x, dy = x.astype(np.float64), dy.astype(np.float64)
    by_steps = np.empty_like(x)
    for place in np.ndindex(x.shape):
        up, down = x.copy(), x.copy()
        up[place] += 1e-5
        down[place] -= 1e-5
        by_steps[place] = (dy * (f(up) - f(down))).sum() / 2e-5
    claimed = backward(dy, x)
    size = np.maximum(abs(claimed), abs(by_steps))
    error = abs(claimed - by_steps) / np.maximum(size, 0.001 * max(1, size.max()))
    return bool(error.max() < 1e-6)  # False for NaN


check("03.3", passes)
