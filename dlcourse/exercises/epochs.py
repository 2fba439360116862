"""Epochs in processes of their own: what stays behind in a process, and state in a shared block of memory.

Notebook 16 runs these functions in child processes, empty ones too, so they stand in a module.
"""

import contextlib
import gc
import math
from collections.abc import Iterator
from dataclasses import dataclass
from multiprocessing.shared_memory import SharedMemory
from typing import Any

import numpy as np

from dlcourse import datasets, losses, models, optim, tree
from dlcourse.gradients import gradients
from dlcourse.memory import isolated, resident_now

MIB = 2**20
BATCH, SEED = 50, 0
KEPT: list = []  # a registry of the whole process: what is in here stays


# What stays behind.


def burden(kind: str) -> np.ndarray | None:
    """Leaves something of 32 MiB or more in the process that runs it; "a live set" returns it as its result."""
    if kind == "a leak":
        KEPT.append(np.ones(32 * MIB, np.uint8))
    elif kind == "holes":
        np.ones(25 * MIB, np.uint8)  # freed: from now on glibc serves arrays of a MiB from the heap
        blocks = [np.ones(MIB, np.uint8) for _ in range(64)]
        KEPT.append(blocks[-1])  # at the end of the heap; all that lies below it is free, and stays
    elif kind == "a live set":
        return np.ones(32 * MIB, np.uint8)
    else:
        raise ValueError(f"kind must be 'a leak', 'holes' or 'a live set', got {kind!r}")
    return None


def left_behind(kind: str, start: Any = None) -> int:
    """Bytes by which the resident size of this process is larger after `burden(kind)`, run here, or in a child that is
    started by `start`. A result is held meanwhile."""
    gc.collect()
    before = resident_now().total
    result = burden(kind) if start is None else isolated(burden, kind, start=start).value
    gc.collect()
    grown = resident_now().total - before
    del result
    return grown


def nothing() -> None:
    """What a process costs that has nothing to do."""


def halved(array: np.ndarray) -> np.ndarray:
    return array * 0.5


# State in a shared block.


@dataclass(frozen=True)
class Block:
    """The name of a shared block, and where each array lies in it: {path: (offset, shape, dtype)}."""

    name: str
    places: dict[str, tuple[int, tuple[int, ...], str]]


@contextlib.contextmanager
def shared(arrays: dict[str, np.ndarray]) -> Iterator[tuple[Block, dict[str, np.ndarray]]]:
    """A shared block with a copy of `arrays` -> Block, views. It is gone at the end, whatever happens: read before that.

    The system chooses a name that nobody has. Allocates the arrays' bytes once, each at a multiple of 64.
    """
    places, end = {}, 0
    for path, array in arrays.items():
        places[path] = end, array.shape, array.dtype.str
        end += -(-array.nbytes // 64) * 64
    memory = SharedMemory(create=True, size=max(end, 1))
    views = views_of(memory, places)
    try:
        for path, array in arrays.items():
            views[path][...] = array
        yield Block(memory.name, places), views
    finally:
        views.clear()
        memory.unlink()  # the name first: it goes even if a view is still in use and the memory cannot be closed
        with contextlib.suppress(BufferError):
            memory.close()


def views_of(memory: SharedMemory, places: dict[str, tuple[int, tuple[int, ...], str]]) -> dict[str, np.ndarray]:
    """Arrays over the block. As long as one is in use the memory stays mapped; np.ndarray(…, buffer) would not see to that."""
    found, block = {}, memoryview(memory.buf or b"")
    for path, (at, shape, dtype) in places.items():
        found[path] = np.frombuffer(block, dtype, math.prod(shape), at).reshape(shape)
    return found


def first_state() -> tuple[dict[str, Any], dict[str, Any]]:
    """-> params and slots of Adam for the digits' network."""
    params = models.mlp().init((8, 8, 1), np.random.default_rng(SEED))
    return params, optim.Adam(lr=0.003).init(params)


def epoch(params: dict[str, Any], slots: dict[str, Any], number: int) -> float:
    """Train epoch `number`, 0, 1, …, in place -> its mean loss. All that is random follows from the number."""
    split, model, optimizer = datasets.digits().train, models.mlp(), optim.Adam(lr=0.003)
    order = np.random.default_rng([SEED, number]).permutation(len(split.x))
    starts = range(0, len(order), BATCH)
    slots["step"], total = number * len(starts), 0.0
    for first in starts:
        rows = order[first : first + BATCH]
        x, y = split.x[rows], split.y[rows]
        loss, grads = gradients(model, params, x, y, loss=losses.softmax_cross_entropy, seed=SEED, step=slots["step"])
        optimizer.update(params, grads, slots)
        total += loss * len(rows)
    return total / len(order)


def flat_state(params: dict[str, Any], slots: dict[str, Any]) -> dict[str, np.ndarray]:
    """All arrays of params and slots, by path."""
    whole = {"params": params} | {name: slot for name, slot in slots.items() if name != "step"}
    return {f"{kind}|{path}": array for kind, one in whole.items() for path, array in tree.flatten(one).items()}


def epoch_in_block(block: Block, number: int) -> float:
    """The same on the state in a shared block, which is changed in place: nothing but the loss has to go back."""
    memory = SharedMemory(block.name)
    try:
        views = views_of(memory, block.places)
        params, slots = first_state()  # for its form; the numbers are those of the block
        kinds = {"params": params} | {name: slot for name, slot in slots.items() if name != "step"}
        state: dict[str, Any] = {}
        for kind, like in kinds.items():
            mine = {path.split("|", 1)[1]: view for path, view in views.items() if path.startswith(f"{kind}|")}
            state[kind] = tree.unflatten(mine, like=like)
        loss = epoch(state["params"], {name: state[name] for name in state if name != "params"}, number)
        del views, state, mine
        return loss
    finally:
        with contextlib.suppress(BufferError):
            memory.close()
