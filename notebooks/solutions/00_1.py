import math

import numpy as np


def array_bytes(shape, dtype):
    """How many bytes does an array take?  shape: a tuple, dtype: a name such as "float32" -> int."""
    return math.prod(shape) * np.dtype(dtype).itemsize  # the product of () is 1: a single number


check("00.1", array_bytes)
