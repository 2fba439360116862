"""Threads that compute micro-batches, and the random numbers that each of them draws."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from functools import cache
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

ORDER, STEP, AUGMENT = range(3)  # the streams of random numbers that one seed gives


def stream(seed: int, *key: int) -> np.random.Generator:
    """A generator of its own for each key, such as (STEP, step, micro-batch): independent of who else has drawn."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def in_order(f: Callable[[int], T], count: int, workers: int) -> Iterator[T]:
    """Yield f(0), f(1), … f(count - 1), computed on `workers` threads. At most `workers` results exist at a time, those
    being computed included: a new one is begun when the caller asks for the next."""
    if workers == 1 or count == 1:
        yield from map(f, range(count))
        return
    with ThreadPoolExecutor(min(workers, count)) as pool:
        begun: deque = deque()
        for index in range(count):
            if len(begun) == workers:
                yield begun.popleft().result()
            begun.append(pool.submit(f, index))
        while begun:
            yield begun.popleft().result()


def one_blas_thread() -> AbstractContextManager:
    """Hold BLAS to one thread while the block runs. The threads here are ours, and the split of a product over BLAS's
    own threads would change the last bits of the result."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries once: milliseconds
