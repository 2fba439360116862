def freed_by_copies(arrays):
    """Bytes that become free when each array of the list is replaced by a copy -> int, negative if copies take more."""
    owners = {}
    for a in arrays:
        strip = a
        while strip.base is not None:
            strip = strip.base
        owners[id(strip)] = strip.nbytes  # several views of one array make one entry
    return sum(owners.values()) - sum(a.nbytes for a in arrays)


check("01.1", freed_by_copies)
