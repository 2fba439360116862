"""Two rooms of the leak museum, notebook 14: trainings that somebody wrote, each cut down to its step. Both leak.

Find out what they hold by running them, before you read on: a step is made by `room_7()` or `room_8()`.
"""

import gc
import itertools
from collections.abc import Callable
from typing import Any

import numpy as np

from dlcourse.inputs import as_input
from dlcourse.memory.traced import traced_array_bytes, tracing
from dlcourse.units import binary

Step = Callable[[], None]
SHAPE, BATCH, UNITS = (32, 32, 3), 32, 256
WATCHED: dict[str, Any] = {}


def pick(x: np.ndarray, losses: np.ndarray, rows: np.ndarray) -> Any:
    """x (N, H, W, C), losses (N,), rows (N,) their places in the data -> what is noted: the picture with the largest
    loss, (H, W, C)."""
    return x[losses.argmax()]


def room_7(pick: Callable[[np.ndarray, np.ndarray, np.ndarray], Any] = pick) -> Step:
    """-> a step that notes the hardest picture of its batch for a report."""
    rng = np.random.default_rng(7)
    pictures = rng.integers(0, 256, (2 * BATCH, *SHAPE), dtype=np.uint8)
    hardest: list[Any] = []

    def step() -> None:
        rows = rng.permutation(len(pictures))[:BATCH]
        x = as_input(pictures[rows])
        hardest.append(pick(x, np.square(x).mean(axis=(1, 2, 3)), rows))

    return step


def watch(registry: dict[str, Any], number: int, y: np.ndarray) -> None:
    """Note the output y (N, units) of step `number`, to be looked at later."""
    registry[f"step {number}"] = y


def room_8(watch: Callable[[dict[str, Any], int, np.ndarray], Any] = watch) -> Step:
    """-> a step that sends a batch through one layer, whose output is watched."""
    rng, numbers = np.random.default_rng(8), itertools.count(1)
    x, W = (rng.standard_normal(shape, dtype=np.float32) for shape in ((BATCH, UNITS), (UNITS, UNITS)))
    WATCHED.clear()  # another training begins

    def step() -> None:
        watch(WATCHED, next(numbers), np.maximum(x @ W, 0))

    return step


# What follows measures a room with a part of your own in place of the one above.


def levels(step: Step, steps: int = 50) -> list[int]:
    """The array bytes before the first of `steps` steps and at the end of each, beyond those at the beginning, by the
    exact ruler; after two steps that are not counted. The collector of cycles rests meanwhile."""
    enabled = gc.isenabled()
    with tracing():
        gc.collect()
        gc.disable()
        try:
            step()
            step()
            found = [traced_array_bytes()]
            for _ in range(steps):
                step()
                found.append(traced_array_bytes())
        finally:
            if enabled:
                gc.enable()
    return [level - found[0] for level in found]


def try_on(room: int, part: Any) -> None:
    """Print by how much room 7 with `part` as its `pick`, or room 8 with `part` as its `watch`, grows in 50 steps, or that
    the part does not do its work any more. ValueError for another room."""
    if room not in (7, 8):
        raise ValueError(f"your part fits in room 7 or 8, got {room!r}")
    if trouble := _trouble(room, part):
        print(f"room {room}: {trouble}")
        return
    grown = levels((room_7 if room == 7 else room_8)(part))[-1]
    WATCHED.clear()
    print(f"room {room}: 50 steps leave {binary(grown)}. {'It still leaks.' if grown else 'Mended.'}")


def _trouble(room: int, part: Any) -> str:
    """What is wrong with a part, "" if nothing is."""
    not_yet = "not yet. Write the function in place of ..., and run this cell again."
    x, registry = np.arange(24, dtype=np.float32).reshape(2, 2, 2, 3), dict[str, Any]()
    if room == 8:
        part(registry, 1, x[0, 0])
        return "" if registry else not_yet
    result = part(x, np.array([1.0, 2.0]), np.array([30, 40]))
    if result is None or result is ...:
        return not_yet
    if np.array_equal(result, x[1]) or np.array_equal(result, 40):
        return ""
    return "what it returns is neither the picture with the largest loss nor its place in the data."
