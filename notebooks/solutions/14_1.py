def growth(levels):
    """levels: array bytes before the first step, and after each -> by how many bytes the highest level of the second half
    is above the highest of the first half, 0 if it is not above. The level in the middle belongs to the second half."""
    half = len(levels) // 2
    # Highest against highest: where a level comes and goes, the ends say nothing.
    return max(0, max(levels[half:]) - max(levels[:half]))


check("14.1", growth)
