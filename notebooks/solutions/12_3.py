def peak_of_step(before, moments):
    """moments: [(name, {array: bytes made}, workspace, [arrays freed after it]), …] -> name and bytes of the highest."""
    alive = {}
    highest = "", -1
    for name, made, workspace, freed in moments:
        alive |= made
        total = before + sum(alive.values()) + workspace
        if total > highest[1]:
            highest = name, total
        for array in freed:  # only now: the moment still used them
            del alive[array]
    return highest


check("12.3", peak_of_step)
