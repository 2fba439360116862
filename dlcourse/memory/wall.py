"""The wall: a block that may take so many bytes more and then gets a MemoryError, in a process that lives on."""

import mmap
import os
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import numpy as np

from dlcourse.memory.allocator import trim
from dlcourse.memory.rulers import proc_status
from dlcourse.units import parse
from dlcourse.workers import one_blas_thread

MIB = 2**20
RESERVE = 4 * MIB  # let go first where the wall is hit: the error itself needs some memory
CALLERS = max(4, os.cpu_count() or 1)


@contextmanager
def wall(budget: int | str) -> Iterator[None]:
    """`with wall("200 MiB"): …` lets the process take `budget` bytes more than it has, then raises MemoryError.

    Zeros that are not yet written count, as they do for the exact ruler; memory that the allocator holds free does not.
    A new thread takes 8 MiB for its stack. The wall is lifted at the end of the block, whatever happens there. A wall
    inside another never reaches beyond it.

    In a notebook's kernel use it around large arrays only: under the wall every allocation of the process can fail,
    also the small ones of other threads. `isolated(f, wall="200 MiB")` is the usual way. BLAS is warmed up on every
    thread before, since a first matrix product that gets no buffer ends the process.

    Works on Linux, by a soft RLIMIT_DATA; raises OSError elsewhere and where the system does not hold the limit.
    """
    size = parse(budget)
    if sys.platform != "linux":
        raise OSError(f"wall({budget!r}): {sys.platform} has no limit on data that raises MemoryError; Linux has one")
    import resource

    before = soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    if soft == resource.RLIM_INFINITY:  # not under another wall, where a thread could fail to start
        warm_up_blas()
    trim()  # free memory at the end of the heap would stretch the budget
    reserve = [bytearray(RESERVE)]
    limit = proc_status()["VmData"] + size
    resource.setrlimit(resource.RLIMIT_DATA, (limit if soft == resource.RLIM_INFINITY else min(limit, soft), hard))
    try:
        if _fits(size + 16 * MIB):
            raise OSError(f"wall({budget!r}): this system does not hold RLIMIT_DATA (Linux does, from 4.7 on)")
        yield
    finally:
        reserve.clear()
        resource.setrlimit(resource.RLIMIT_DATA, before)


def warm_up_blas() -> None:
    """Let BLAS start its threads, and take a buffer for each of `CALLERS` Python threads that may call it at once.
    Takes some tens of milliseconds, and for OpenBLAS 32 MiB of address space a buffer, resident only as touched."""
    a = np.ones((768, 768), np.float32)
    a @ a  # starts BLAS's own threads
    # A caller gets the first buffer that nobody has. So all must be inside at once: each product takes several of the
    # slices of time that the system gives to a thread, and nobody is done before the last has begun.
    results = [np.empty_like(a) for _ in range(CALLERS)]
    together = threading.Barrier(CALLERS)

    def product(result: np.ndarray) -> None:
        together.wait()
        np.matmul(a, a, out=result)

    with one_blas_thread(), ThreadPoolExecutor(CALLERS) as pool:
        list(pool.map(product, results))


def _fits(size: int) -> bool:
    """Whether the system would give `size` bytes now: asks for them and hands them back, untouched."""
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True
