def epoch_mean(values, sizes):
    """values: the mean of each batch, sizes: how many samples it had -> the mean over all samples of the epoch."""
    total = sum(value * size for value, size in zip(values, sizes, strict=True))  # back to sums
    return total / sum(sizes)


check("11.1", epoch_mean)
