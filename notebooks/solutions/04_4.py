import numpy as np


def relu_backward_from_bits(dy, bits):
    """dy any shape, bits = np.packbits(y > 0) -> dx, dy's shape and dtype."""
    mask = np.unpackbits(bits, count=dy.size).reshape(dy.shape)  # bytes, 0 or 1; count cuts the last byte's rest off
    return dy * mask


check("04.4", relu_backward_from_bits)
