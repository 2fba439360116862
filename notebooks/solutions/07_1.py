import numpy as np


def channel_statistics(x):
    """x (N, ..., C) -> mean (C,), var (C,), over all axes but the last."""
    axes = tuple(range(x.ndim - 1))
    mean = x.mean(axis=axes)
    deviations = x - mean
    np.square(deviations, out=deviations)  # no second array like x
    return mean, deviations.mean(axis=axes)


check("07.1", channel_statistics)
