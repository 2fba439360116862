def running_statistics(running_mean, running_var, mean, var, count, momentum):
    """Four arrays (C,), values a channel, share of the way -> the new running mean and variance, (C,) each."""
    unbiased = var * (count / (count - 1))  # var was measured around the batch's own mean: too small on average
    new_mean = running_mean + momentum * (mean - running_mean)
    new_var = running_var + momentum * (unbiased - running_var)
    return new_mean, new_var


check("07.3", running_statistics)
