"""Threads that compute micro-batches, and the random numbers that each of them draws."""

from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, nullcontext
from functools import cache
from typing import TypeVar

import numpy as np
from threadpoolctl import ThreadpoolController

T = TypeVar("T")

ORDER, STEP, AUGMENT = range(3)  # the streams of random numbers that one seed gives


def stream(seed: int, *key: int) -> np.random.Generator:
    """A generator of its own for each key, such as (STEP, step, micro-batch): independent of who else has drawn."""
    return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))


def threads(workers: int) -> AbstractContextManager[Executor | None]:
    """The threads of a training, for the block: None for one worker. Kept from step to step, since the allocator gives
    each new thread one of several heaps: with new threads in each step all of them grow, one after the other."""
    return ThreadPoolExecutor(workers) if workers > 1 else nullcontext()


def in_order(f: Callable[[int], T], count: int, workers: int, pool: Executor | None = None) -> Iterator[T]:
    """Yield f(0), f(1), … f(count - 1), computed on `workers` threads, those of `pool` where it is given. At most
    `workers` results exist at a time, those being computed included: a new one is begun when the caller asks for the
    next."""
    if workers == 1 or count == 1:
        yield from map(f, range(count))
        return
    with threads(min(workers, count)) if pool is None else nullcontext(pool) as running:
        assert running is not None
        begun: deque = deque()
        try:
            for index in range(count):
                if len(begun) == workers:
                    yield begun.popleft().result()
                begun.append(running.submit(f, index))
            while begun:
                yield begun.popleft().result()
        finally:  # where one failed or nobody asks on: none of the others runs on behind the caller's back
            wait(begun)


def one_blas_thread() -> AbstractContextManager:
    """Hold BLAS to one thread while the block runs. The threads here are ours, and the split of a product over BLAS's
    own threads would change the last bits of the result."""
    return _blas().limit(limits=1, user_api="blas")


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries once: milliseconds
