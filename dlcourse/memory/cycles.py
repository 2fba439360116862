"""Reference cycles: what only the collector frees, and through which attributes it goes round."""

import gc
import types
from collections import defaultdict, deque
from collections.abc import Iterator
from itertools import pairwise
from typing import Any

from dlcourse.memory.holders import CONTAINERS, Walk

PLAIN = (*CONTAINERS, types.FunctionType, types.CellType, types.MethodType, types.FrameType, types.TracebackType, type)


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
        self.things = gc.garbage[known:]
        del gc.garbage[known:]
        self._by_id = {id(thing): thing for thing in self.things}
        self._down = {
            key: [id(child) for child in gc.get_referents(thing) if id(child) in self._by_id]
            for key, thing in self._by_id.items()
        }
        self._up = defaultdict(list)
        for key, children in self._down.items():
            for child in children:
                self._up[child].append(key)

    def words(self, walk: Walk, path: list[Any]) -> str:
        """Such as "Trainer.columns, in a reference cycle through Trainer.callbacks": for a path of `walk` from one of these
        things to an array. Goes up from what holds the array, until something leads back to itself."""
        cycle = next((trip for start in _reached(id(path[0]), self._up) if (trip := self._round_trip(start))), [])
        things = [self._by_id[key] for key in cycle]
        through = ", ".join(dict.fromkeys(self._attributes(walk, things))) or "functions or containers without a name"
        owner = next((self._by_id[key] for key in self._up[id(path[0])] if _is_names(path[0], self._by_id[key])), None)
        holder = next(iter(self._attributes(walk, path if owner is None else [owner, *path])), "an array")
        return f"{holder}, in a reference cycle through {through}"

    def _round_trip(self, start: int) -> list[int]:
        """The shortest way from a thing to itself, the thing at both ends; [] where there is none."""
        came_from = dict.fromkeys(self._down[start], start)
        queue = deque(came_from)
        while queue:
            key = queue.popleft()
            if key == start:
                trip = [start, came_from[start]]
                while trip[-1] != start:
                    trip.append(came_from[trip[-1]])
                return trip[::-1]
            for child in self._down[key]:
                if child not in came_from:
                    came_from[child] = key
                    queue.append(child)
        return []

    def _attributes(self, walk: Walk, path: list[Any]) -> list[str]:
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


def _reached(start: int, edges: dict[int, list[int]]) -> Iterator[int]:
    """`start` and all that edges lead to from it, the nearest first."""
    seen, queue = {start}, deque([start])
    while queue:
        key = queue.popleft()
        yield key
        for other in edges[key]:
            if other not in seen:
                seen.add(other)
                queue.append(other)


def _is_names(names: Any, thing: Any) -> bool:
    """Whether `names` is the dict of the attributes of `thing`."""
    return isinstance(names, dict) and not isinstance(thing, PLAIN) and getattr(thing, "__dict__", None) is names
