import numpy as np


def read_arrays(block, table):
    """block (B,) uint8; table: [(name, offset, shape, dtype), …] -> {name: array}, whether all are views of block."""
    # an array over memory that is there already: nothing is copied
    arrays = {name: np.ndarray(shape, dtype, block, offset) for name, offset, shape, dtype in table}
    return arrays, all(np.shares_memory(array, block) for array in arrays.values())


check("16.4", read_arrays)
