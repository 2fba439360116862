def accumulated(gradient, x, y, micro_batch):
    """gradient(x, y, total) -> array.  x (N, …), y (N, …) -> the gradient of the whole batch, by micro-batches."""
    total = gradient(x[:micro_batch], y[:micro_batch], len(x))  # divided by N of the whole batch
    for start in range(micro_batch, len(x), micro_batch):
        end = start + micro_batch  # may lie behind the last row: the slice then ends there
        total += gradient(x[start:end], y[start:end], len(x))  # in place: two arrays at a time, never three
    return total


check("11.2", accumulated)
