def two_neurons_backward(x, t, w1, b1, w2, b2):
    """z = w1 x + b1, y = w2 z + b2, L = (y - t)² -> dw1, db1, dw2, db2."""
    z = w1 * x + b1
    y = w2 * z + b2
    dy = 2 * (y - t)
    dw2, db2 = dy * z, dy
    dz = dy * w2  # when z moves by a step, y moves by w2 times as much
    return dz * x, dz, dw2, db2


check("03.1", two_neurons_backward)
