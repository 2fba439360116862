"""Threads that compute micro-batches, and the random numbers that each of them draws."""

import threading
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, ThreadPoolExecutor, wait
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import cache
from typing import Any, TypeVar

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
    """Yield f(0), f(1), … f(count - 1), computed on `workers` threads, those of `pool` if it is given. At most
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
        finally:  # on an error or an early stop, wait for the calls still running
            wait(begun)


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Hold BLAS to one thread while the block runs: a product that BLAS splits over its own threads would have other last
    bits. The setting is the whole process's: the first block of any thread makes it, the last one to end takes it back.
    """
    global _open, _limit
    with _lock:
        if _open == 0:
            _let_any_thread_set()
            _limit = _blas().limit(limits=1, user_api="blas")
        _open += 1
    try:
        yield
    finally:
        with _lock:
            _open -= 1
            if _open == 0:
                _let_any_thread_set()
                _limit.restore_original_limits()
                _let_any_thread_set()


_lock, _open = threading.Lock(), 0  # the blocks of `one_blas_thread` that are open now
_limit: Any = None


def _let_any_thread_set() -> None:
    # Newer versions of threadpoolctl let one thread alone set, and pass over the others in silence.
    for library in _blas().lib_controllers:
        if clear := getattr(library, "clear_controlling_thread", None):
            clear(force=True)


@cache
def _blas() -> ThreadpoolController:
    return ThreadpoolController()  # looks through the loaded libraries once: milliseconds
