"""How fast this machine is right now: the time of a fixed piece of work, about a second of Python and of NumPy.

A limit of time is divided by it, so that it means the same on every machine, and on a busy one too: what else runs
there stretches this work as it stretches a notebook.
"""

import time
from typing import NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

SECONDS = 1.0  # on a quiet core of the machine that the limits of time were made on


class Speed(NamedTuple):
    """How many times slower than that machine: by the clock, and in processor time."""

    clock: float
    used: float


def measure() -> Speed:
    """Do the work once, on one core: threads that wait for each other would make it erratic where others are at work."""
    with threadpool_limits(1):
        begun, used = time.perf_counter(), time.process_time()
        work()
    return Speed((time.perf_counter() - begun) / SECONDS, (time.process_time() - used) / SECONDS)


def work() -> None:
    """Like a notebook: products, passes over arrays larger than a cache, and plain Python."""
    rng = np.random.default_rng(0)
    a = rng.standard_normal((768, 768), dtype=np.float32)
    large = rng.standard_normal(2**21, dtype=np.float32)
    for _ in range(45):
        a = a @ a
        a /= np.abs(a).max()
        large = np.maximum(large * 0.5 + 0.25, 0.0)
    counts: dict[int, int] = {}
    for number in range(3_700_000):
        counts[number % 1000] = counts.get(number % 1000, 0) + number


if __name__ == "__main__":
    speeds = [measure() for _ in range(10)]
    print(f"{min(speeds).clock:.2f} times the clock, {min(one.used for one in speeds):.2f} times the processor time")
