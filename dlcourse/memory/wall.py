"""The wall: a block that may take so many bytes more and then gets a MemoryError, in a process that lives on."""

import ctypes
import mmap
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import numpy as np
from threadpoolctl import threadpool_info

from dlcourse.memory.rulers import proc_status
from dlcourse.units import parse

MIB = 2**20
RESERVE = 4 * MIB  # let go first where the wall is hit: the error itself needs some memory
CALLERS = max(8, os.cpu_count() or 1)


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
    """Let BLAS start its threads, and have a buffer for each of `CALLERS` Python threads that may call it at once.
    Takes milliseconds, and 32 MiB of address space a buffer, resident only as they are touched."""
    a = np.ones((128, 128))
    a @ a  # starts BLAS's own threads
    # A caller gets the first buffer that nobody has, so only calls at the same time need several. Instead of hoping that
    # products meet, take the buffers from OpenBLAS by the function that its products use, and give them back.
    for library in threadpool_info():
        if library["internal_api"] == "openblas":
            openblas = ctypes.CDLL(library["filepath"])
            with suppress(AttributeError):  # a build that does not show them
                take, give_back = openblas.blas_memory_alloc, openblas.blas_memory_free
                take.restype, give_back.argtypes = ctypes.c_void_p, [ctypes.c_void_p]
                for buffer in [take(0) for _ in range(CALLERS)]:
                    give_back(buffer)


def _fits(size: int) -> bool:
    """Whether the system would give `size` bytes now: asks for them and hands them back, untouched."""
    try:
        mmap.mmap(-1, size, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS).close()
    except (OSError, MemoryError):
        return False
    return True
