"""A sum over many rows that keeps its digits."""

from dlcourse.kernels.checks import Array

ROWS = 16  # added one after the other; then these sums
BLOCK_BYTES = 1 << 16  # of rows at a time: they fit a core's cache


def sum_rows(x: Array) -> Array:
    """Σ over all axes but the last.  x (…, C) -> (C,).  Allocates it, and a 16th of a block of 64 KiB.

    `sum` adds row after row: in float32 a large total takes up less and less of each, and 2**20 rows of 0.1 come to 105,892.
    Here 16 rows are added, then 16 of these sums, and so on: the error grows with the logarithm of the rows (Higham 1993).
    """
    rows = x.reshape(-1, x.shape[-1])
    if len(rows) <= ROWS:
        return rows.sum(axis=0)
    if rows.nbytes > BLOCK_BYTES:
        part = max(len(rows) // ROWS, BLOCK_BYTES // rows[0].nbytes, ROWS)
        total = sum_rows(rows[:part])
        for start in range(part, len(rows), part):
            total += sum_rows(rows[start : start + part])
        return total
    whole = len(rows) // ROWS * ROWS
    total = sum_rows(rows[:whole].reshape(ROWS, -1, rows.shape[1]).sum(axis=0))
    if whole < len(rows):
        total += rows[whole:].sum(axis=0)
    return total
