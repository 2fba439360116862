import numpy as np


def batches(n, batch_size, seed, epoch):
    """n samples -> a list of arrays of indices: every sample once, in an order drawn from (seed, epoch)."""
    order = np.random.default_rng([seed, epoch]).permutation(n)
    # a slice that reaches over the end is shorter: the last batch
    return [order[start : start + batch_size] for start in range(0, n, batch_size)]


check("10.1", batches)
