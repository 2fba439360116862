import math


def he_std(shape):
    """shape of W: (D_in, D_out) or (kh, kw, C_in, C_out) -> standard deviation of its numbers at the start."""
    fan_in = math.prod(shape[:-1])  # how many products are added up for one output
    return math.sqrt(2 / fan_in)


check("08.3", he_std)
