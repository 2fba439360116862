def momentum_step(p, g, velocity, lr, momentum):
    """p, g, velocity of one shape -> the new p, the new velocity."""
    velocity = momentum * velocity + g  # fades, and takes in the whole gradient
    return p - lr * velocity, velocity


check("09.1", momentum_step)
