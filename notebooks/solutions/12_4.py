def fixed_bytes(numbers, optimizer, itemsize, micro_batches):
    """-> bytes of the parameters, of the gradients (and their sum), and of the optimizer's slots."""
    params = numbers * itemsize
    sets = 1 if micro_batches == 1 else 2  # those being made, and the sum of the earlier ones
    remembered = {"SGD": 0, "Momentum": 1, "Adam": 2}[optimizer]
    return params, sets * params, remembered * params


check("12.4", fixed_bytes)
