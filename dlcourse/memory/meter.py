"""Measure a block by both rulers, and say what the difference between them is made of."""

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from dlcourse.memory.allocator import Allocator, allocator
from dlcourse.memory.rulers import Grown, Traced, resident_peak, traced_peak
from dlcourse.units import binary

MIB = 2**20
BLOCK = 512  # bytes: the largest of Python's small objects, which it keeps in arenas of its own and not in malloc's


@dataclass(eq=False)
class Reading:
    """What `meter` measured, in bytes beyond the beginning of the block; zeros until the block has ended.

    requested: the traced peak, arrays and Python's own objects; kept: what was still there at the end. Both are exact.
    resident: the peak of what the system saw, read from `ruler`; a `lower_bound` where the system cannot tell.
    why: what the difference is made of, in words.
    """

    requested: int = 0
    kept: int = 0
    resident: int = 0
    ruler: str = ""
    lower_bound: bool = False
    why: str = ""

    @property
    def exact(self) -> str:
        """The line of the exact ruler, the same in every run of code that works on arrays of a MiB or more. What code
        leaves that runs for the first time, and other threads, are some hundred bytes: they are not shown."""
        return f"requested   peak {_figure(self.requested)}, at the end {_figure(self.kept)}"

    def __str__(self) -> str:
        bound = ", a lower bound" if self.lower_bound else ""
        return f"{self.exact}\nsystem saw  peak {binary(self.resident)} ({self.ruler}{bound})\ndifference  {self.why}"


@contextmanager
def meter() -> Iterator[Reading]:
    """`with meter() as m: …` measures the block by both rulers; `print(m)` afterwards shows them and their difference.

    Both rulers see the whole process, all its threads. Blocks may stand inside one another. Where the block fails, the
    reading is filled in all the same. Loops in Python run slower inside, since each allocation is traced.
    """
    reading = Reading()
    gc.collect()
    malloc, blocks = allocator(), sys.getallocatedblocks()
    try:
        with resident_peak() as seen, traced_peak(collect=False) as counted:
            yield reading
    finally:
        reading.requested, reading.kept = counted.peak, counted.kept
        reading.resident, reading.ruler, reading.lower_bound = seen.peak, seen.ruler, seen.lower_bound
        reading.why = _why(counted, seen, malloc, allocator(), sys.getallocatedblocks() - blocks)


def _figure(size: int) -> str:
    return binary(size) if abs(size) >= 1024 else "under 1 KiB"


def _why(traced: Traced, grown: Grown, before: Allocator | None, after: Allocator | None, blocks: int) -> str:
    """The parts of the difference that can be told, from what grew between the ends of the block."""
    if grown.lower_bound:
        return f"cannot be told: the process had more before, and {sys.platform} keeps one peak for its whole life"
    mapped = anonymous = 0
    if grown.before.mapped is not None and grown.after.mapped is not None:
        mapped = grown.after.mapped - grown.before.mapped
    if grown.before.anonymous is not None and grown.after.anonymous is not None:
        anonymous = grown.after.anonymous - grown.before.anonymous
    others = 0  # resident, and neither from malloc nor one of Python's small objects
    if before is not None and after is not None:
        others = anonymous - max(after.allocated - before.allocated, 0) - max(blocks, 0) * BLOCK
    held = None if before is None else before.allocated - before.used
    return explain(traced.peak, grown.peak, mapped=mapped, others=others, notes=traced.notes, held=held)


def explain(requested: int, resident: int, *, mapped: int, others: int, notes: int, held: int | None) -> str:
    """Why `resident` is not `requested`, in words. Parts under 1 MiB and under 5 % of the larger are left out.

    What the system saw and nobody requested: pages of files `mapped` in the block, memory that `others` than Python and
    malloc mapped, the `notes` of tracemalloc. `held`: free memory in the allocator's hands before; None: not known.
    """
    least = max(MIB, max(requested, resident) // 20)
    if abs(resident - requested) < least:
        return "less than 1 MiB or 5 %"
    parts = [
        (mapped, "more are pages of mapped files (a library that was loaded, a memory map)"),
        (others, "more come from outside of Python and malloc, such as BLAS's buffers (the first product makes them)"),
        (notes, "more are tracemalloc's own notes about many small objects"),
    ]
    said = [f"{binary(size)} {what}" for size, what in parts if size >= least]
    missing = requested - resident + sum(size for size, _ in parts if size >= least)
    if missing >= least:
        said.append(_less(missing, held, least))
    elif -missing >= least:
        said.append(f"{binary(-missing)} more for a time: pages of mapped files, or what code in C took for itself")
    return "; ".join(said)


def _less(missing: int, held: int | None, least: int) -> str:
    lazy = "never written: the system gives a page when it is first touched"
    if held is None:
        return f"{binary(missing)} found room in memory that the allocator held free, or were {lazy}"
    if held < least:
        return f"{binary(missing)} were {lazy}"
    if missing - held < least:
        return f"{binary(missing)} found room in the {binary(held)} that the allocator held free, or were {lazy}"
    return f"{binary(missing - held)} or more were {lazy}; the allocator held {binary(held)} free, to be used again"
