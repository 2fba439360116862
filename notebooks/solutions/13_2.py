def step_at_wall(start, each, moment, wall):
    """Bytes, integers -> the number of the step, 1, 2, …; None if it never comes."""
    room = wall - start - moment
    if room < 0:
        return 1
    # room // each steps more fit after the first, and the next one does not
    return room // each + 2 if each > 0 else None


check("13.2", step_at_wall)
