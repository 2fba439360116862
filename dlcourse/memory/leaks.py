"""Leaks: array bytes that are still there after a step that should have left none, and the name of who holds them."""

import gc
import operator
import re
import types
import weakref
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from dlcourse.memory.holders import CONTAINERS, FRAMES, Walk, holder, line_of, made_at, roots, wide_roots
from dlcourse.memory.tables import Shown, Table
from dlcourse.memory.traced import array_traces, lock, name_of, refuse_unrun, traced_array_bytes, tracing
from dlcourse.units import binary

MAX_LINES = 12  # of the table
PLAIN = (*CONTAINERS, types.FunctionType, types.CellType, types.MethodType, types.FrameType, types.TracebackType, type)


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


@dataclass(frozen=True, repr=False)
class Leaks(Shown):
    """What `find_leak` found, the largest first; false where there is nothing. `growth` is the bytes a step by the exact
    ruler, `levels` the array bytes at the end of each step, from before the first one, beyond those of the warm-up."""

    leaks: list[Leak]
    growth: int
    levels: list[int]

    def __bool__(self) -> bool:
        return bool(self.leaks)

    def _table(self) -> Table:
        steps = len(self.levels) - 1
        if not self:
            return Table([[f"no leak: the same array bytes after each of {steps} steps"]], rule=False)
        lines = [["held by", "shape", "dtype", "copies", "a step"]]
        for leak in self.leaks[:MAX_LINES]:
            lines.append([leak.who, str(leak.shape), leak.dtype, str(leak.copies), binary(leak.growth)])
        more = [f"and {len(self.leaks) - MAX_LINES} more of these"] if len(self.leaks) > MAX_LINES else []
        return Table(lines, [*more, f"the array bytes grow by {binary(self.growth)} a step; seen over {steps} steps"])


def find_leak(step: Callable[[], Any], steps: int = 5, *, warm_up: int = 2) -> Leaks:
    """Call `step` again and again, and name who holds the arrays that stay. What `step` returns is let go.

    After `warm_up` calls the array bytes at the end of each call must be constant (NumPy's traced domain, exact). Where
    they grew over `steps` calls, `step` is called as often once or twice more: what grows again is a leak. The collector of
    reference cycles rests meanwhile, so a cycle that holds arrays is a leak too: it stays until the collector comes.

    Walks through all that can be reached from a name, only where something grew: about a second in a notebook. Raises
    ValueError for fewer than 2 steps; TypeError for a generator or coroutine function, whose work `step()` does not do;
    RuntimeError if the step ends the tracing or enables the collector. An error of `step` comes out as it is.
    """
    steps, warm_up = operator.index(steps), operator.index(warm_up)
    if steps < 2 or warm_up < 0:
        raise ValueError(
            f"steps must be at least 2, to tell what grows from what is made once, and warm_up not negative; "
            f"got {steps} and {warm_up}"
        )
    name = name_of(step)
    with tracing(FRAMES), _collector_rests():
        for _ in range(warm_up):
            refuse_unrun(step(), name)
        levels = _levels(step, steps)
        if levels[-1] <= levels[0]:
            return Leaks([], 0, levels)
        for where in (roots, wide_roots):
            before = _Found(Walk(where(step)))
            lines_before = _by_line()
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


class _Found:
    """What a walk had found, without holding it: the arrays and the ways to them, by id."""

    def __init__(self, walk: Walk) -> None:
        self.arrays = {}
        self.old: set[int] = set()  # all that leads to an array
        for array in walk.arrays:
            ids = [id(thing) for thing in walk.path(array)]
            self.arrays[id(array)] = weakref.ref(array), array.nbytes, _without_numbers(walk.names[ids[0]]), ids
            self.old.update(ids)

    def has(self, array: np.ndarray) -> bool:
        """Whether `array` is one of them; another one may have the id of one that is gone."""
        return id(array) in self.arrays and self.arrays[id(array)][0]() is array


class _Seen(list[tuple[str, np.ndarray]]):
    """Arrays of one kind at one place, each with its holder in words."""

    @property
    def size(self) -> int:
        return sum(array.nbytes for _, array in self)

    def leak(self, growth: int) -> Leak:
        who, array = self[0]
        return Leak(who, array.shape, str(array.dtype), len(self), growth, made_at(array))


def _name(walk: Walk, before: _Found, steps: int) -> list[Leak]:
    """The leaks by their holders: those that a name leads to, then those that a cycle holds."""
    leaks = _by_holder(walk, before, steps)
    garbage, known = Garbage(), len(walk.arrays)
    walk.extend(("", thing) for thing in garbage.things.values())
    kinds: dict[Any, _Seen] = defaultdict(_Seen)
    for array in walk.arrays[known:]:
        who = garbage.words(walk, walk.path(array))
        kinds[who, array.shape, array.dtype].append((who, array))
    return leaks + [seen.leak(seen.size // steps) for seen in kinds.values()]


def _by_holder(walk: Walk, before: _Found, steps: int) -> list[Leak]:
    """New arrays, grouped by the last thing on the way to them that was there before, less those gone from there."""
    groups: dict[Any, dict[Any, _Seen]] = defaultdict(lambda: defaultdict(_Seen))
    gone: dict[Any, int] = defaultdict(int)
    for array in walk.arrays:
        if before.has(array):
            continue
        path = walk.path(array)
        words = walk.words(path)
        # The array itself is new: one that is gone may have had its id.
        split = next((i for i in range(len(path) - 1, 0, -1) if id(path[i - 1]) in before.old), 0)
        owner = id(path[split - 1]) if split else _without_numbers(words[0])
        what, who = holder(words, min(split + 1, len(words)))
        if len(path) > 1 and isinstance(path[-2], np.ndarray) and path[-2].nbytes < array.nbytes:
            who = f"{who}, a view of a {array.shape} array"
        groups[owner][what, _without_numbers(who), array.shape, array.dtype].append((who, array))
    for key, (reference, size, name, way) in before.arrays.items():
        if reference() is None:
            gone[next((i for i in reversed(way) if i in walk.found and i != key), name)] += size
    leaks = []
    for owner, kinds in groups.items():
        total = sum(seen.size for seen in kinds.values())
        if total > gone[owner]:  # a state that is replaced in each step is none
            leaks += [seen.leak(seen.size * (total - gone[owner]) // total // steps) for seen in kinds.values()]
    return leaks


def _unseen(before: tuple[Counter, Counter], growth: int, steps: int) -> Leak:
    """What no walk leads to is named by the line that made it."""
    sizes, counts = _by_line()
    sizes.subtract(before[0])
    line = sizes.most_common(1)[0][0]
    return Leak(f"what no name leads to; made at {line}", (), "", counts[line] - before[1][line], growth, line)


def _by_line() -> tuple[Counter, Counter]:
    """The bytes of the arrays that are alive, and their number, by "file:line" of where they were made."""
    sizes, counts = Counter[str](), Counter[str]()
    for calls in array_traces().statistics("traceback"):
        line = line_of(calls.traceback)
        sizes[line] += calls.size
        counts[line] += calls.count
    return sizes, counts


def _without_numbers(words: str) -> str:
    return re.sub(r"\d+", "#", words)


_resting = 0  # blocks in which the collector rests
_enabled = True  # before the first of them


@contextmanager
def _collector_rests() -> Iterator[None]:
    """No automatic collection meanwhile; after the last such block as it was before the first."""
    global _resting, _enabled
    with lock:
        if _resting == 0:
            _enabled = gc.isenabled()
            gc.disable()
        _resting += 1
    try:
        yield
        if gc.isenabled():
            raise RuntimeError("could not measure: the step enabled the collector, which frees cycles that would stay")
    finally:
        with lock:
            _resting -= 1
            if _resting == 0 and _enabled:
                gc.enable()


# Reference cycles: what only the collector frees, and through which attributes it goes round.


class Garbage:
    """What a collection would free now, kept for a look: it is garbage again once this is let go. As in every
    collection, finalizers have been called and weak references to these objects are dead."""

    def __init__(self) -> None:
        flags, known = gc.get_debug(), len(gc.garbage)
        gc.set_debug(flags | gc.DEBUG_SAVEALL)
        try:
            gc.collect()
        finally:
            gc.set_debug(flags)
        self.things = {id(thing): thing for thing in gc.garbage[known:]}
        del gc.garbage[known:]
        self._up: dict[int, list[int]] = defaultdict(list)  # from each to those that refer to it
        for key, thing in self.things.items():
            for child in gc.get_referents(thing):
                if id(child) in self.things:
                    self._up[id(child)].append(key)

    def words(self, walk: Walk, path: list[Any]) -> str:
        """Such as "Trainer.columns, in a reference cycle through Trainer.callbacks": for a path of `walk` from one of these
        things to an array. Goes up from what holds the array, until something leads back to itself."""
        cycle = next((trip for start in self._above(id(path[0])) if (trip := self._round_trip(start))), [])
        through = ", ".join(dict.fromkeys(_attributes(walk, cycle))) or "functions or containers without a name"
        owners = (self.things[key] for key in self._up[id(path[0])])
        owner = [thing for thing in owners if _is_names(path[0], thing)][:1]
        holder = next(iter(_attributes(walk, [*owner, *path])), "an array")
        return f"{holder}, in a reference cycle through {through}"

    def _above(self, start: int) -> dict[int, int | None]:
        """{what leads to `start`, the nearest first: the next on the way}; `start` itself is the first, with None."""
        way: dict[int, int | None] = {start: None}
        queue = [start]
        for key in queue:  # grows on the way
            new = [other for other in dict.fromkeys(self._up[key]) if other not in way]
            way |= dict.fromkeys(new, key)
            queue += new
        return way

    def _round_trip(self, start: int) -> list[Any]:
        """The shortest way from a thing to itself, the thing at both ends; [] if there is none."""
        way = self._above(start)
        key = next((key for key in way if start in self._up[key]), None)
        trip = [] if key is None else [self.things[start]]
        while key is not None:
            trip.append(self.things[key])
            key = way[key]
        return trip


def _attributes(walk: Walk, path: list[Any]) -> list[str]:
    """As "Type.attribute", for each object on a path; those that hold containers first, since there a thing was added."""
    found = []
    for i, (thing, child) in enumerate(pairwise(path)):
        if isinstance(thing, PLAIN):
            continue
        if _is_names(child, thing) and i + 2 < len(path):
            word, child = walk.word(thing, child, path[i + 2]), path[i + 2]
        else:
            word = walk.word(None, thing, child)
        found.append((not isinstance(child, CONTAINERS), f"{type(thing).__name__}{word}"))
    return [words for _, words in sorted(found, key=lambda pair: pair[0])]


def _is_names(names: Any, thing: Any) -> bool:
    """Whether `names` is the dict of the attributes of `thing`."""
    return isinstance(names, dict) and not isinstance(thing, PLAIN) and getattr(thing, "__dict__", None) is names
