"""Leaks: array bytes that are still there after a step that should have left none, and the name of who holds them."""

import gc
import re
import tracemalloc
import weakref
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse.memory.cycles import Garbage
from dlcourse.memory.holders import Walk, holder, line_of, made_at, traced_lines
from dlcourse.memory.roots import roots, wide_roots
from dlcourse.memory.rulers import traced_array_bytes, traced_peak
from dlcourse.memory.tables import Table
from dlcourse.units import binary

SHOWN = 12  # lines of the table


@dataclass(frozen=True)
class Leak:
    """Arrays of one kind that stay: `copies` of them came with `steps` steps, `growth` bytes a step.

    who: the holder in words, such as "conv2d_1.saved via history[3]". shape, dtype: of the array that owns the memory.
    made_at: "file:line" where the last of them was made.
    """

    who: str
    shape: tuple[int, ...]
    dtype: str
    copies: int
    growth: int
    made_at: str = ""


@dataclass(frozen=True)
class Leaks:
    """What `find_leak` found, the largest first; false where there is nothing. `growth` is the bytes a step by the exact
    ruler, `levels` the array bytes at the end of each step, from before the first one, beyond those of the warm-up."""

    leaks: list[Leak]
    growth: int
    levels: list[int]

    def __bool__(self) -> bool:
        return bool(self.leaks)

    def _lines(self) -> list[list[str]]:
        rows = [
            [leak.who, str(leak.shape), leak.dtype, str(leak.copies), binary(leak.growth)]
            for leak in self.leaks[:SHOWN]
        ]
        return [["held by", "shape", "dtype", "copies", "a step"], *rows]

    def _notes(self) -> list[str]:
        steps = len(self.levels) - 1
        if not self:
            return [f"no leak: the same array bytes after each of {steps} steps"]
        more = [f"and {len(self.leaks) - SHOWN} more of these"] if len(self.leaks) > SHOWN else []
        return [*more, f"the array bytes grow by {binary(self.growth)} a step; seen over {steps} steps"]

    def __str__(self) -> str:
        return str(Table(self._lines(), self._notes())) if self else self._notes()[0]

    def _repr_html_(self) -> str:
        return Table(self._lines(), self._notes())._repr_html_() if self else f"<p>{self._notes()[0]}</p>"

    __repr__ = __str__


def find_leak(step: Callable[[], Any], steps: int = 5, *, warm_up: int = 2) -> Leaks:
    """Call `step` again and again, and name who holds the arrays that stay. What `step` returns is let go.

    After `warm_up` calls the array bytes at the end of each call must be constant (NumPy's traced domain, exact). Where
    they grew over `steps` calls, `step` is called as often once or twice more: what grows again is a leak. The collector of
    reference cycles rests meanwhile, so a cycle that holds arrays is a leak too: it stays until the collector comes.

    Walks through all that can be reached from a name, only where something grew: about a second in a notebook. Raises
    ValueError for fewer than 2 steps; an error of `step` comes out as it is.
    """
    if steps < 2:
        raise ValueError(f"steps must be at least 2, to tell what grows from what is made once; got {steps}")
    with traced_lines(), traced_peak(), _collector_rests():
        for _ in range(warm_up):
            step()
        levels = _levels(step, steps)
        if levels[-1] <= levels[0]:
            return Leaks([], 0, levels)
        for where in (roots, wide_roots):
            before = _Before(Walk(where(step)))
            lines_before = _bytes_by_line()
            again = _levels(step, steps)
            levels += [levels[-1] + level for level in again[1:]]
            growth = again[-1] // steps
            found = _name(Walk(where(step)), before, steps) if growth > 0 else []
            unseen = growth - sum(leak.growth for leak in found)
            if unseen <= growth // 100:
                break
        else:
            found.append(_unseen(lines_before, unseen, steps))
        return Leaks(sorted(found, key=lambda leak: -leak.growth), max(0, growth), levels)


def _levels(step: Callable[[], Any], steps: int) -> list[int]:
    """The array bytes at the end of each step, from before the first one on, beyond those at that time."""
    gc.collect()
    levels = [traced_array_bytes()]
    for _ in range(steps):
        step()
        levels.append(traced_array_bytes())
    return [level - levels[0] for level in levels]


class _Before:
    """What a walk had found, without holding it: the arrays and the ways to them, by id."""

    def __init__(self, walk: Walk) -> None:
        self.arrays = {}
        self.old: set[int] = set()  # all that leads to an array
        for array in walk.arrays:
            path = walk.path(array)
            ids = [id(thing) for thing in path]
            self.arrays[id(array)] = weakref.ref(array), array.nbytes, _without_numbers(walk.names[ids[0]]), ids
            self.old.update(ids)

    def has(self, array: np.ndarray) -> bool:
        """Whether `array` is one of them; another one may have the id of one that is gone."""
        return id(array) in self.arrays and self.arrays[id(array)][0]() is array


def _name(walk: Walk, before: _Before, steps: int) -> list[Leak]:
    """The leaks by their holders: those that a name leads to, then those that a cycle holds."""
    leaks = _by_holder(walk, before, steps)
    garbage, known = Garbage(), len(walk.arrays)
    walk.extend(("", thing) for thing in garbage.things)
    kinds: dict[Any, _Seen] = defaultdict(_Seen)
    for array in walk.arrays[known:]:
        who = garbage.words(walk, walk.path(array))
        kinds[who, array.shape, array.dtype].add(who, array)
    return leaks + [seen.leak(seen.size // steps) for seen in kinds.values()]


@dataclass
class _Seen:
    """Arrays of one kind at one place: one of them, how many, and their bytes."""

    who: str = ""
    array: Any = None
    copies: int = 0
    size: int = 0

    def add(self, who: str, array: np.ndarray) -> None:
        if not self.copies:
            self.who, self.array = who, array
        self.copies, self.size = self.copies + 1, self.size + array.nbytes

    def leak(self, growth: int) -> Leak:
        return Leak(self.who, self.array.shape, str(self.array.dtype), self.copies, growth, made_at(self.array))


def _by_holder(walk: Walk, before: _Before, steps: int) -> list[Leak]:
    """New arrays, grouped by the last thing on the way to them that was there before, less those gone from there."""
    groups: dict[Any, dict[Any, _Seen]] = defaultdict(lambda: defaultdict(_Seen))
    net: dict[Any, int] = defaultdict(int)
    for array in walk.arrays:
        if before.has(array):
            continue
        path = walk.path(array)
        words = walk.words(path)
        split = next((i for i in range(len(path), 0, -1) if id(path[i - 1]) in before.old), 0)
        owner = id(path[split - 1]) if split else _without_numbers(words[0])
        what, who = holder(words, min(split + 1, len(words)))
        if len(path) > 1 and isinstance(path[-2], np.ndarray) and path[-2].nbytes < array.nbytes:
            who = f"{who}, a view of a {array.shape} array"
        groups[owner][what, _without_numbers(who), array.shape, array.dtype].add(who, array)
        net[owner] += array.nbytes
    for key, (reference, size, name, way) in before.arrays.items():
        if reference() is None:
            net[next((i for i in reversed(way) if i in walk.found and i != key), name)] -= size
    leaks = []
    for owner, kinds in groups.items():
        total = sum(seen.size for seen in kinds.values())
        if net[owner] > 0:  # a state that is replaced in each step is none
            leaks += [seen.leak(seen.size * net[owner] // total // steps) for seen in kinds.values()]
    return leaks


def _unseen(before: dict[str, tuple[int, int]], growth: int, steps: int) -> Leak:
    """What no walk leads to is named by the line that made it."""
    after = _bytes_by_line()
    line = max(after, key=lambda line: after[line][0] - before.get(line, (0, 0))[0])
    copies = after[line][1] - before.get(line, (0, 0))[1]
    return Leak(f"what no name leads to; made at {line}", (), "", copies, growth, line)


def _bytes_by_line() -> dict[str, tuple[int, int]]:
    """{"file:line": (bytes, count)} of the arrays that are alive, by where they were made."""
    arrays = tracemalloc.DomainFilter(inclusive=True, domain=np.lib.tracemalloc_domain)
    lines: dict[str, tuple[int, int]] = {}
    for calls in tracemalloc.take_snapshot().filter_traces([arrays]).statistics("traceback"):
        size, count = lines.get(line := line_of(calls.traceback), (0, 0))
        lines[line] = size + calls.size, count + calls.count
    return lines


def _without_numbers(words: str) -> str:
    return re.sub(r"\d+", "#", words)


@contextmanager
def _collector_rests() -> Iterator[None]:
    """No automatic collection meanwhile; afterwards as it was."""
    was, frozen = gc.isenabled(), gc.get_freeze_count()
    gc.disable()
    if not frozen:
        gc.freeze()  # what is there already is not looked through again in each collection
    try:
        yield
    finally:
        if not frozen:
            gc.unfreeze()
        if was:
            gc.enable()
