"""Bytes as people read and write them."""

import operator
import re
from typing import SupportsIndex

SIZES = {"B": 1, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30}
LIMIT = 2**60  # bytes, more than any machine has


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


def parse(size: SupportsIndex | str) -> int:
    """The bytes that a text names: "200 MiB", "200MiB", "1.5 GiB". An int is returned as it is.

    Raises ValueError for another text, for less than one byte and for more than any machine has, TypeError for another
    type. Decimal units (MB) are refused with the binary size that they mean: everything here is shown in binary ones.
    """
    if isinstance(size, bool) or not isinstance(size, SupportsIndex | str):
        raise TypeError(f'a size is a number of bytes or a text such as "200 MiB", got {size!r}')
    count = _read(size) if isinstance(size, str) else operator.index(size)  # NumPy's numbers too
    if not 1 <= count < LIMIT:
        raise ValueError(f"a size must be at least one byte and less than {binary(LIMIT)}, got {str(size)[:40]!r}")
    return count


def _read(text: str) -> int:
    found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-z]*)\s*", text, re.IGNORECASE)
    factors = {unit.lower(): factor for unit, factor in SIZES.items()}
    decimal = {"kb": 10**3, "mb": 10**6, "gb": 10**9}
    unit = found[2].lower() if found else ""
    if found and unit in factors:
        return int(min(float(found[1]) * factors[unit], LIMIT))
    hint = ""
    if found and unit in decimal:
        hint = f"; that would be {binary(float(found[1]) * decimal[unit])}"
    elif found and not unit:
        hint = f"; write {found[1]}B for bytes"
    raise ValueError(f'expected a size such as "200 MiB" (units B, KiB, MiB, GiB), got {text[:40]!r}{hint}')
