def place(step, n, batch_size):
    """step 0, 1, 2, … of a training on n samples -> the epoch, where in its order the batch starts, how many it has."""
    epoch, number = divmod(step, -(-n // batch_size))  # rounded up: the short batch is one, too
    start = number * batch_size
    return epoch, start, min(batch_size, n - start)


check("10.4", place)
