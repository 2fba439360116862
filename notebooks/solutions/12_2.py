def saved_bytes(widths, batch, dropout):
    """Affine layers from widths[0] to widths[1] to …, a ReLU between each two (and a dropout behind it) -> bytes kept."""
    numbers = batch * sum(widths[1:-1])  # outputs of the ReLUs; the pictures are data, the scores nobody keeps
    if not dropout:
        return 4 * numbers  # the next affine layer keeps the same array
    return (4 + 1 + 4) * numbers  # ReLU's output, dropout's mask, the affine layer's input


check("12.2", saved_bytes)
