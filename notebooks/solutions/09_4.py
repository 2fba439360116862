import math

import numpy as np


def clipped(grads, max_norm):
    """grads: a list of arrays -> a list of arrays, whose norm, taken over all together, is at most max_norm."""
    # one norm for all arrays together; vdot multiplies and adds in one go, so no array of squares is made
    norm = math.sqrt(sum(float(np.vdot(g, g)) for g in grads))
    return [g * (max_norm / norm) if norm > max_norm else g for g in grads]


check("09.4", clipped)
