import numpy as np


def epoch_mean(losses, sizes):
    """losses: the mean loss of each batch, sizes: its number of samples -> the mean over all samples."""
    return float(np.dot(losses, sizes) / np.sum(sizes))  # sum over all samples, by how many there are


check("10.2", epoch_mean)
