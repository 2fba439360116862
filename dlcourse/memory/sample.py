"""One look at the memory of this process and its children."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import psutil

from dlcourse import tree
from dlcourse.memory.allocator import allocator

Source = tree.Tree | Callable[[], tree.Tree]


@dataclass(frozen=True)
class Sample:
    """One look: bytes, None where the system does not tell; USS and PSS also where they were not asked for.

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


class Processes:
    """This process and its children, as they were when `find` was called last."""

    def __init__(self) -> None:
        self.find()

    def find(self) -> None:
        this = psutil.Process()
        self.all = [this, *this.children(recursive=True)]

    def look(self, kinds: dict[str, int], seconds: float, *, whole: bool) -> Sample:
        """A sample now, with what is known already. `whole` finds the children anew and asks for USS and PSS, for which
        the system looks at every page: milliseconds, and more for a large process."""
        if whole:
            self.find()
        rss = count = 0
        apart: dict[str, int | None] = {"uss": 0 if whole else None, "pss": 0 if whole else None}
        for process in self.all:
            try:
                info = _info(process, whole)
            except psutil.Error:  # it ended meanwhile
                continue
            rss, count = rss + info.rss, count + 1
            for name, so_far in apart.items():
                size = getattr(info, name, None)
                apart[name] = None if so_far is None or size is None else so_far + size
        heap = allocator()
        allocated, used = (None, None) if heap is None else (heap.allocated, heap.used)
        return Sample(seconds, kinds, rss, apart["uss"], apart["pss"], allocated, used, count)


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


def _info(process: psutil.Process, whole: bool) -> Any:
    try:
        return process.memory_full_info() if whole else process.memory_info()
    except psutil.AccessDenied:
        return process.memory_info()
