import numpy as np


def confusion(labels, said, classes):
    """labels (N,), said (N,) -> (classes, classes): how often the right class (row) was named as (column)."""
    counts = np.zeros((classes, classes), dtype=int)
    np.add.at(counts, (labels, said), 1)  # adds for each pair, also where a pair occurs again
    return counts


check("11.4", confusion)
