def two_peaks(arrays, looks):
    """arrays: [(made, gone, bytes), …], looks: [second, …] -> what a sampler finds, and the true peak, in bytes."""

    def alive(second):
        return sum(size for made, gone, size in arrays if made <= second < gone)

    sampled = max([alive(second) for second in looks], default=0)
    true = max([alive(made) for made, _, _ in arrays], default=0)  # it rises only when something is made
    return sampled, true


check("02.2", two_peaks)
