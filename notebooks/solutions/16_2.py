def highest_moment(state, work, how):
    """how: "one process", "pickle" or "shared" -> bytes of parent and child together, at the highest moment."""
    if how == "pickle":
        # during the epoch; then work is gone, and the new state arrives beside the old one
        return max(2 * state + work, 3 * state)
    return state + work


check("16.2", highest_moment)
