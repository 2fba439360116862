"""What the allocator took from the system, and how much of it is in use: glibc's `mallinfo2`."""

import ctypes
import functools
from dataclasses import dataclass
from typing import Any, ClassVar


@dataclass(frozen=True)
class Allocator:
    """Bytes of glibc's malloc in this process. `allocated`: taken from the system, its arenas and its memory maps.
    `used`: handed out and not freed. What is freed stays allocated where something in use lies behind it."""

    allocated: int
    used: int

    @property
    def usage(self) -> float:
        """The share in use, 0 to 1, as Erlang's recon_alloc shows it: far below 1 means fragmentation."""
        return self.used / self.allocated if self.allocated else 1.0


def allocator() -> Allocator | None:
    """The allocator now. None where it cannot be asked: it needs glibc 2.33 or newer (2021)."""
    function = _function("mallinfo2")
    if function is None:
        return None
    info = function()
    return Allocator(info.arena + info.hblkhd, info.uordblks + info.hblkhd)


def trim() -> bool:
    """Give back to the system what the allocator does not use (glibc's malloc_trim). Whether something was given back;
    False too where there is no such function."""
    function = _function("malloc_trim")
    return function is not None and bool(function(0))


class _MallInfo2(ctypes.Structure):
    _fields_: ClassVar = [
        (name, ctypes.c_size_t)
        for name in (
            *("arena", "ordblks", "smblks", "hblks", "hblkhd"),
            *("usmblks", "fsmblks", "uordblks", "fordblks", "keepcost"),
        )
    ]


@functools.cache
def _function(name: str) -> Any:
    """A function of the C library of this process, None where it has no such one (macOS, Windows, musl, old glibc)."""
    try:
        function = getattr(ctypes.CDLL(None), name)
    except (AttributeError, OSError, TypeError):
        return None
    if name == "mallinfo2":
        function.restype, function.argtypes = _MallInfo2, ()
    else:
        function.restype, function.argtypes = ctypes.c_int, (ctypes.c_size_t,)
    return function
