"""One look at the memory of this process and its children."""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import psutil

from dlcourse import tree
from dlcourse.memory.allocator import allocator

Source = tree.Tree | Callable[[], tree.Tree]


@dataclass(frozen=True)
class Sample:
    """One look: bytes, None where the system does not tell.

    seconds: since the monitor began. kinds: bytes of each registered tree. rss, uss, pss: of this process and its
    children; pages that they share count in each one's rss, once in pss, not in uss. allocated, used: what this
    process's allocator took from the system, and what of it is in use.
    """

    seconds: float
    kinds: dict[str, int]
    rss: int
    uss: int | None
    pss: int | None
    allocated: int | None
    used: int | None
    processes: int

    @property
    def usage(self) -> float | None:
        """used / allocated, 0 to 1; None where the allocator cannot be asked."""
        return self.used / self.allocated if self.used is not None and self.allocated else None


def look(kinds: dict[str, int], seconds: float) -> Sample:
    """A sample now, with what is known already."""
    rss, uss, pss, processes = _processes()
    heap = allocator()
    allocated, used = (None, None) if heap is None else (heap.allocated, heap.used)
    return Sample(seconds, kinds, rss, uss, pss, allocated, used, processes)


def owners(source: Source) -> dict[int, np.ndarray]:
    """{id: array} of the arrays that own the memory of a tree; numbers in it, such as a step count, are passed over.
    The thread that trains may change a dict meanwhile: then once more."""
    for attempt in range(4):
        try:
            value = source() if callable(source) else source
            return tree.owners([leaf for leaf in tree.leaves(value) if isinstance(leaf, np.ndarray)])
        except RuntimeError:  # a dict changed its size
            if attempt == 3:
                raise
    raise AssertionError


def _processes() -> tuple[int, int | None, int | None, int]:
    """RSS, USS, PSS of this process and its children, and how many they are. A child that ends meanwhile is left out."""
    this = psutil.Process()
    rss = count = 0
    unique: dict[str, int | None] = {"uss": 0, "pss": 0}
    for process in [this, *this.children(recursive=True)]:
        try:
            try:
                info = process.memory_full_info()
            except psutil.AccessDenied:
                info = process.memory_info()
        except psutil.Error:
            continue
        rss, count = rss + info.rss, count + 1
        for name, so_far in unique.items():
            size = getattr(info, name, None)
            unique[name] = None if so_far is None or size is None else so_far + size
    return rss, unique["uss"], unique["pss"], count
