import math


def factor(step, warmup, steps):
    """step 0, 1, 2, …; the first `warmup` of `steps` steps rise -> the factor of the learning rate, from 0 to 1."""
    if step < warmup:
        return (step + 1) / warmup
    # how much of the time after the warm-up is over; at most all of it
    done = min(1.0, (step - warmup) / (steps - warmup))
    return (1 + math.cos(math.pi * done)) / 2


check("09.3", factor)
