import math


def places(shapes, itemsize, align):
    """shapes: a list of tuples -> a list of offsets, the bytes of the block."""
    offsets, end = [], 0
    for shape in shapes:
        offsets.append(end)
        end += math.prod(shape) * itemsize
        end = -(-end // align) * align  # up to the next multiple, which is where the next array begins
    return offsets, end


check("16.3", places)
