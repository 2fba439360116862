def join_statistics(mean_a, var_a, count_a, mean_b, var_b, count_b):
    """Means and variances (C,) of two parts and their numbers of values -> mean (C,), var (C,) of all values."""
    a = count_a / (count_a + count_b)
    b = count_b / (count_a + count_b)
    mean = a * mean_a + b * mean_b
    inside = a * var_a + b * var_b
    between = a * b * (mean_a - mean_b) ** 2  # how far the two means lie apart is spread too
    return mean, inside + between


check("07.5", join_statistics)
