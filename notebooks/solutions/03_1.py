def two_neurons_backward(x, t, w1, b1, w2, b2):
    """h = w1 x + b1, y = w2 h + b2, L = (y - t)² -> dw1, db1, dw2, db2."""
    h = w1 * x + b1
    y = w2 * h + b2
    dy = 2 * (y - t)
    dw2, db2 = dy * h, dy
    dh = dy * w2  # when h moves by a step, y moves by w2 times as much
    return dh * x, dh, dw2, db2
