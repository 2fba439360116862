"""Bytes as people read and write them."""

import re

SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}


def binary(count: float) -> str:
    """A number of bytes in B, KiB, MiB or GiB with three significant digits: 9437184 -> "9.00 MiB"."""
    sign, size = ("-" if count < 0 else ""), abs(float(count))
    for unit in SIZES:
        if size < 999.5 or unit == "GiB":
            break
        size /= 1024
    if unit == "B":
        return f"{sign}{size:.0f} B"
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{sign}{size:.{digits}f} {unit}"


def parse(size: int | str) -> int:
    """The bytes that a text names: "200 MiB", "200MiB", "1.5 GiB", "4096". An int is returned as it is.

    Raises ValueError for another text and for less than one byte, TypeError for another type. Decimal units (MB) are
    refused: everything here is shown in binary ones.
    """
    if isinstance(size, bool) or not isinstance(size, int | str):
        raise TypeError(f'a size is a number of bytes or a text such as "200 MiB", got {size!r}')
    if isinstance(size, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*(|B|KiB|MiB|GiB)\s*", size, re.IGNORECASE)
        if found is None:
            raise ValueError(f'expected a size such as "200 MiB" (units B, KiB, MiB, GiB), got {size!r}')
        unit = next(unit for unit in SIZES if unit.lower() == (found[2] or "B").lower())
        count = int(float(found[1]) * SIZES[unit])
    else:
        count = size
    if count < 1:
        raise ValueError(f"a size must be at least one byte, got {size!r}")
    return count
