def count_parameters(shape, layers):
    """shape: (height, width, channels) of a picture -> [numbers that each layer learns, …], 0 for pooling."""
    height, width, channels = shape
    inputs = None  # of the next affine layer; None before the first one
    counts = []
    for kind, *sizes in layers:
        if kind == "conv":
            filters, k = sizes
            counts.append((k * k * channels + 1) * filters)
            channels = filters  # padding keeps height and width
        elif kind == "pool":
            height, width = height // 2, width // 2
            counts.append(0)
        else:
            (units,) = sizes
            inputs = height * width * channels if inputs is None else inputs
            counts.append((inputs + 1) * units)
            inputs = units
    return counts


check("12.1", count_parameters)
