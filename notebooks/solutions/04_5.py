import math

import numpy as np


def gelu_backward(dy, x):
    """dy, x any one shape -> dx, the same shape. dx = dy/2 (1 + t) (1 + x u' (1 - t)), since 1 - t² = (1 + t) (1 - t)."""
    s, c = math.sqrt(2 / math.pi), 0.044715
    dx = x * x
    t = c * dx
    t += 1
    t *= x
    t *= s
    np.tanh(t, out=t)
    dx *= 3 * c * s
    dx += s
    dx *= x  # x u'
    t -= 1
    dx *= t  # -x u' (1 - t)
    np.subtract(1, dx, out=dx)
    t += 2
    dx *= t
    dx *= 0.5
    dx *= dy
    return dx


check("04.5", gelu_backward)
