import math

import numpy as np


def adam_step(p, g, m, v, step, lr, beta1, beta2, eps):
    """p, g, m, v of one shape, step 1, 2, … -> the new p, m, v."""
    m = beta1 * m
    m += (1 - beta1) * g
    v = beta2 * v
    v += (1 - beta2) * g * g
    c1, c2 = 1 - beta1**step, 1 - beta2**step
    change = np.sqrt(v)  # becomes the new p, in place: no array beside the three results is alive at the end
    change /= math.sqrt(c2)
    change += eps
    np.divide(m, change, out=change)
    change *= lr / c1
    np.subtract(p, change, out=change)
    return change, m, v


check("09.2", adam_step)
