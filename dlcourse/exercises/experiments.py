"""Small experiments with memory that belongs to a process: what malloc keeps, and what two processes share.

Notebook 02 runs them. What comes out of the first two depends on all that a process made and freed before. So they are run
in an empty one, `isolated(freed_blocks, start="spawn")`, which has to import them: so they stand in a module.
"""

import os
from dataclasses import dataclass

import numpy as np

from dlcourse.memory import Sizes, allocator, process_sizes, resident_now, trim

MIB = 2**20
LARGE = 25 * MIB  # freed once, an array of this size moves glibc's limit: smaller ones then come from the heap


@dataclass(frozen=True)
class Held:
    """Bytes at one moment. requested: of the arrays that are alive. resident: of the process, beyond what it had before
    the first array. usage: the allocator's share in use, 0 to 1; None where it cannot be asked."""

    requested: int
    resident: int
    usage: float | None


def freed_blocks(
    order: str = "scattered", *, blocks: int = 100, size: int = MIB, large_before: bool = True, give_back: bool = False
) -> list[Held]:
    """Make and write `blocks` arrays of `size` bytes, then free one after the other.
    -> blocks + 1 moments, the first of them with all arrays alive.

    order: see `free_order`.
    large_before: make and free one array of 25 MiB first, as most programs have done.
    give_back: let the allocator give back what it can after each free (`trim`).
    """
    if large_before:
        np.ones(LARGE, np.uint8)
    # What Python makes meanwhile, tracemalloc's notes above all, shall find room in holes of 100 KiB. A note of 50 bytes
    # that comes to lie behind the last array would keep the heap as long as it is.
    pieces = [np.ones(100 * 1024, np.uint8) for _ in range(32)]
    del pieces[::2]
    before = resident_now().total
    arrays = {number: np.ones(size, np.uint8) for number in range(blocks)}
    moments = [_held(arrays, before)]
    for number in free_order(order, blocks):
        del arrays[number]
        if give_back:
            trim()
        moments.append(_held(arrays, before))
    return moments


def free_order(order: str, blocks: int) -> list[int]:
    """The numbers of blocks in the order in which they are freed. "scattered": each second one, then the others, so that
    what is free lies between what is in use. "last first": from the end. ValueError for another order."""
    if order == "scattered":
        return [*range(0, blocks, 2), *range(1, blocks, 2)]
    if order == "last first":
        return list(range(blocks))[::-1]
    raise ValueError(f"order must be 'scattered' or 'last first', got {order!r}")


def made_again(times: int = 3, *, blocks: int = 16, size: int = MIB) -> list[int]:
    """Make and write `blocks` arrays of `size` bytes and free them all, `times` times.
    -> by how many bytes the resident size of the process rose each time. What is freed is used
    again, so only the first time counts in full."""
    np.ones(LARGE, np.uint8)
    rises = []
    for _ in range(times):
        before = resident_now().total
        arrays = [np.ones(size, np.uint8) for _ in range(blocks)]
        rises.append(resident_now().total - before)
        del arrays
    return rises


def read_and_write(array: np.ndarray, rows: int) -> tuple[Sizes, Sizes]:
    """Read all of `array` and write its first `rows` -> the sizes of this process and of its parent.

    For `isolated(read_and_write, array, rows)`: a forked process has the parent's pages, and a copy of those that it
    writes; a process that was started empty has been sent a copy of the whole array.
    """
    array.sum()
    array[:rows] = 0
    return process_sizes(), process_sizes(os.getppid())


def _held(arrays: dict[int, np.ndarray], before: int) -> Held:
    heap = allocator()
    requested = sum(array.nbytes for array in arrays.values())
    return Held(requested, resident_now().total - before, None if heap is None else heap.usage)
