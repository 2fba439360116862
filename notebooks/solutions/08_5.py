import math


def count_all(layers, in_shape):
    """layers {name: layer}, in_shape without the batch -> {name: how many numbers the layer learns}, 0 for none."""
    counts, shape = {}, in_shape  # the shape goes along: each layer sees what the one before it gives
    for name, layer in layers.items():
        if hasattr(layer, "filters"):
            counts[name] = (math.prod(layer.kernel_size) * shape[-1] + 1) * layer.filters
        elif hasattr(layer, "units"):
            counts[name] = (shape[-1] + 1) * layer.units
        else:
            counts[name] = 0
        shape = layer.out_shape(shape)
    return counts


check("08.5", count_all)
