def usage_percent(heap, used, holes, mapped):
    """Four numbers of bytes from the allocator -> the share in use of all that it took from the system, in per cent."""
    taken = heap + mapped
    if taken == 0:
        return 100.0  # nothing taken, nothing wasted
    return 100 * (used + mapped) / taken  # a mapping belongs to one array, so all of it is in use


check("02.3", usage_percent)
