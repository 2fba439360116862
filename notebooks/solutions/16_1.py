def runs(steps, leak, room):
    """-> [(first, end), …]: steps first … end - 1 run in one process."""
    # a leak of 0 never fills the room; a leak larger than it still has to run, one step a process
    each = max(1, room // leak) if leak else max(1, steps)
    return [(first, min(first + each, steps)) for first in range(0, steps, each)]


check("16.1", runs)
