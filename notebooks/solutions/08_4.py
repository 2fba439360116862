def saved_bytes(widths, batch, itemsize):
    """widths (D_0, D_1, …, D_L) of affine layers with a ReLU between each two -> bytes kept for backward."""
    kept = widths[:-1]  # x, and the output of each ReLU, which is the input of the next affine layer: one array
    return batch * itemsize * sum(kept)


check("08.4", saved_bytes)
