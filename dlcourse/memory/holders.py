"""Who holds an array: a walk down from the names that a reader knows.

The collector does not track arrays, nor a tuple or dict that holds nothing but arrays: nobody can be asked who refers to
them. But everything can be asked what it refers to. So the walk starts at names and goes down, level by level, and each
thing is known by the shortest way that leads to it.
"""

import contextlib
import gc
import os
import re
import sys
import tracemalloc
import types
from collections import deque
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from dlcourse.memory.roots import LAST, Root, default_name, local_names, shell

ATOMS = {str, bytes, int, float, complex, bool, type(None), types.CodeType, types.BuiltinFunctionType, types.ModuleType}
CONTAINERS = (dict, list, tuple, set, frozenset, deque)
LAYER = re.compile(r"\['([a-z]\w*_\d+)'\]")
NUMPY = os.path.dirname(np.__file__)
FRAMES = 2  # each more makes every allocation slower
PARAMETERS = ("W", "b", "gamma", "beta", "buffers")


class Walk:
    """Everything that `roots`, (name, object) each, lead to. It holds what it found: let it go soon."""

    def __init__(self, roots: Iterable[Root]) -> None:
        self.names: dict[int, str] = {}
        self.found: dict[int, Any] = {}  # id: the object
        self.parents: dict[int, Any] = {}  # id: what led to it
        self.arrays: list[np.ndarray] = []  # those that own their memory
        self._places: dict[int, dict[int, Any]] = {}
        # The globals of a module stand at their names already.
        self._namespaces = {id(vars(module)) for module in list(sys.modules.values()) if hasattr(module, "__dict__")}
        self.extend(roots)

    def extend(self, roots: Iterable[Root]) -> None:
        """Go on from these too, to what was not found before."""
        queue: deque = deque()
        found, hidden = self.found, self._namespaces

        def see(thing: Any, parent: Any) -> None:
            key = id(thing)
            if key not in found and key not in hidden:
                found[key], self.parents[key] = thing, parent
                queue.append(thing)
                if isinstance(thing, np.ndarray) and not isinstance(thing.base, np.ndarray):
                    self.arrays.append(thing)

        for name, thing in roots:
            if type(thing) not in ATOMS:
                see(thing, None)
                self.names.setdefault(id(thing), name)
        while queue:
            thing = queue.popleft()
            for child in _children(thing):
                if type(child) not in ATOMS:
                    see(child, thing)

    def path(self, thing: Any) -> list[Any]:
        """From the root to `thing`, both included."""
        path = [thing]
        while (parent := self.parents[id(path[-1])]) is not None:
            path.append(parent)
        return path[::-1]

    def words(self, path: list[Any]) -> list[str]:
        """A piece of text for each part of a path: the name of its root, then each way down, such as "[3]" or ".saved"
        ("" where a reader would not see a step)."""
        before: list[Any] = [None, *path]
        return [self.names[id(path[0])], *(self.word(*three) for three in zip(before, path, path[1:], strict=False))]

    def word(self, above: Any, parent: Any, child: Any) -> str:
        """What a reader calls the way from `parent` to `child`."""
        if isinstance(parent, types.FrameType):
            return f", local {_named(local_names(parent), child)} of {parent.f_code.co_name}()"
        if isinstance(parent, types.CellType | types.FunctionType | types.MethodType | types.TracebackType):
            return ""
        if isinstance(parent, types.GeneratorType):
            return f", a local of the generator {parent.__name__}()"
        if isinstance(parent, BaseException) and isinstance(child, types.TracebackType):
            return ", its traceback"
        if isinstance(parent, dict | list | tuple | deque) or (
            isinstance(parent, np.ndarray) and child is not parent.base
        ):
            place = self._place(parent, child)
            if isinstance(above, types.FunctionType):
                return _of_function(above, parent, place)
            if isinstance(parent, dict) and above is not None and not isinstance(above, (*CONTAINERS, types.CellType)):
                return f".{place}"
            return f"[{place!r:.60}]"
        if type(parent).__name__ == "_lru_cache_wrapper":
            return f", the cache of {parent.__name__}()"
        if (name := _attribute(parent, child)) is not None:
            return f".{name}"
        return ""

    def _place(self, parent: Any, child: Any) -> Any:
        if id(parent) not in self._places:
            pairs = parent.items() if isinstance(parent, dict) else enumerate(_elements(parent))
            self._places[id(parent)] = {id(value): key for key, value in pairs}
        return self._places[id(parent)].get(id(child), "?")


def holder(words: list[str], split: int) -> tuple[str, str]:
    """("conv2d_1.saved", "conv2d_1.saved via history[3]") from the words of a path: what is held, and with it where, for
    which the first `split` words stand."""
    where, rest = "".join(words[:split]), words[split:]
    layers = [found[1] for word in rest if (found := LAYER.fullmatch(word))]
    if layers:
        names = [name for name in PARAMETERS if f"[{name!r}]" in rest]
        what = f"{'/'.join(layers)}.{names[0] if names else 'saved'}"
        return what, f"{what} via {where}"
    what = re.sub(r"((?:\.\w+|\[[^\]]+\])+?)\1+", r"\1", "".join(rest))  # a chain of a thousand links, once
    what = re.sub(r"^[., ]+|(\[\d+\])+$", "", what)
    before, error, local = what.rpartition("its traceback, ")
    if error and where != LAST:
        return local, f"{local} in the traceback of {before}{where}"
    return local, f"{local} via {where}" if local else where


@contextlib.contextmanager
def traced_lines() -> Iterator[None]:
    """Trace allocations meanwhile, with the calls that led to each: NumPy's own lines are no answer to where an array
    was made. What traces already goes on as it is."""
    mine = not tracemalloc.is_tracing()
    if mine:
        tracemalloc.start(FRAMES)
    try:
        yield
    finally:
        if mine:
            tracemalloc.stop()


def made_at(array: np.ndarray) -> str:
    """Where an array was made, as "file:line"; "" where allocations were not traced then."""
    traceback = tracemalloc.get_object_traceback(array)
    return line_of(traceback) if traceback else ""


def line_of(traceback: tracemalloc.Traceback) -> str:
    """The last call outside of NumPy, as "file:line"; in a cell of a notebook "cell 7:line"."""
    frame = next((f for f in reversed(traceback) if not f.filename.startswith(NUMPY)), traceback[-1])
    number = getattr(getattr(shell(), "compile", None), "_filename_map", {}).get(frame.filename)
    return f"{os.path.basename(frame.filename) if number is None else f'cell {number}'}:{frame.lineno}"


def _children(thing: Any) -> Iterable[Any]:
    if isinstance(thing, np.ndarray):
        return [thing.base] if thing.base is not None else _elements(thing) if thing.dtype.hasobject else ()
    if isinstance(thing, types.FrameType) and thing.f_back is not None:
        return [child for child in gc.get_referents(thing) if child is not thing.f_back]
    return gc.get_referents(thing)


def _elements(thing: Any) -> Any:
    return thing.ravel().tolist() if isinstance(thing, np.ndarray) else thing


def _named(names: dict[str, Any], value: Any) -> str:
    return next((name for name, other in names.items() if other is value), "?")


def _attribute(thing: Any, value: Any) -> str | None:
    """The attribute of `thing` that is `value`; no property is called."""
    try:
        names = vars(thing)
    except TypeError:
        names = {}
    if (name := next((name for name, other in names.items() if other is value), None)) is not None:
        return name
    for kind in type(thing).__mro__:
        for name, slot in vars(kind).items():
            if isinstance(slot, types.MemberDescriptorType) and getattr(thing, name, None) is value:
                return name
    return None


def _of_function(function: types.FunctionType, part: Any, place: Any) -> str:
    if part is function.__closure__:
        return f", {function.__code__.co_freevars[place]} in the closure of {function.__name__}()"
    if part is function.__dict__:
        return f".{place}"
    return f", default {default_name(function, place)} of {function.__name__}()"
