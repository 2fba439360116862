"""Bytes as people read them."""


def binary(count: float) -> str:
    """A number of bytes in B, KiB, MiB or GiB with three significant digits: 9437184 -> "9.00 MiB"."""
    sign, size = ("-" if count < 0 else ""), abs(float(count))
    for unit in ("B", "KiB", "MiB", "GiB"):
        if size < 999.5 or unit == "GiB":
            break
        size /= 1024
    if unit == "B":
        return f"{sign}{size:.0f} B"
    digits = 2 if size < 9.995 else 1 if size < 99.95 else 0
    return f"{sign}{size:.{digits}f} {unit}"
