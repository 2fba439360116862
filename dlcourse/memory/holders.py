"""Who holds an array: a walk down from the names that a reader knows.

The collector does not track arrays, nor a tuple or dict that holds nothing but arrays: nobody can be asked who refers to
them. But everything can be asked what it refers to. So the walk starts at names and goes down, level by level, and each
thing is known by the shortest way that leads to it.
"""

import gc
import os
import re
import sys
import tracemalloc
import types
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import numpy as np

ATOMS = {str, bytes, int, float, complex, bool, type(None), types.CodeType, types.BuiltinFunctionType, types.ModuleType}
CONTAINERS = (dict, list, tuple, set, frozenset, deque)
LAYER = re.compile(r"\['([a-z]\w*_\d+)'\]")
NUMPY = os.path.dirname(np.__file__)
FRAMES = 2  # each more makes every allocation slower
PARAMETERS = ("W", "b", "gamma", "beta", "buffers")
LAST = "the last traceback"
LONGEST_KEY = 60  # characters that are shown; a cache may have an array's worth of numbers as a key

Root = tuple[str, Any]


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
            return f", local {_named(local_names(parent), child) or '?'} of {parent.f_code.co_name}()"
        if isinstance(parent, types.CellType | types.FunctionType | types.MethodType | types.TracebackType):
            return ""
        if isinstance(parent, types.GeneratorType):
            return f", a local of the generator {parent.__name__}()"
        if isinstance(parent, BaseException) and isinstance(child, types.TracebackType):
            return ", its traceback"
        if isinstance(parent, (dict, list, tuple, deque, np.ndarray)) and child is not getattr(parent, "base", None):
            place = self._place(parent, child)
            if isinstance(above, types.FunctionType) and parent is above.__closure__:
                return f", {above.__code__.co_freevars[place]} in the closure of {above.__name__}()"
            if isinstance(above, types.FunctionType) and parent is not above.__dict__:
                return f", default {default_name(above, place)} of {above.__name__}()"
            if isinstance(parent, dict) and (isinstance(above, type) or getattr(above, "__dict__", None) is parent):
                return f".{place}"
            return f"[{place!r}]" if len(repr(place)) <= LONGEST_KEY else "[…]"
        if type(parent).__name__ == "_lru_cache_wrapper":
            return f", the cache of {parent.__name__}()"
        name = _attribute(parent, child)
        return f".{name}" if name else ""

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
    return next((name for name, other in names.items() if other is value), "")


def _attribute(thing: Any, value: Any) -> str:
    """The attribute of `thing` that is `value`, "" if there is none; no property is called."""
    slots = {
        name: getattr(thing, name, None)
        for kind in type(thing).__mro__
        for name, slot in vars(kind).items()
        if isinstance(slot, types.MemberDescriptorType)
    }
    return _named(dict(getattr(thing, "__dict__", {})) | slots, value)


# The names that a reader knows: where a walk begins.


def roots(step: Callable | None = None) -> Iterator[Root]:
    """Where names begin: the outputs of a notebook, the globals and the closure of `step`, the reader's own names, the
    last traceback."""
    user = vars(sys.modules["__main__"]) if shell() is None else shell().user_ns  # of the script, or of the notebook
    spaces = [function.__globals__ for function in _functions(step)] + [user]
    for names in spaces:
        for number, value in dict(names.get("Out") or {}).items():
            yield f"Out[{number}]", value
    for names in spaces:
        yield from ((name, value) for name, value in list(names.items()) if not _not_given(name))
    yield from _closures(_functions(step))
    if step is not None:
        yield type(getattr(step, "__self__", step)).__name__, getattr(step, "__self__", step)
    for last in ("last_exc", "last_value", "last_traceback"):
        yield LAST, getattr(sys, last, None)
    for names in spaces:
        yield from ((name, names[name]) for name in ("_", "__", "___") if name in names)


def wide_roots(step: Callable | None = None) -> Iterator[Root]:
    """The same, and the globals of every module, and the locals of calls that are under way, but for those of this
    package's memory tools."""
    yield from roots(step)
    for module in list(sys.modules):
        for name, value in list(getattr(sys.modules[module], "__dict__", {}).items()):
            if not _not_given(name):
                yield f"{module}.{name}", value
    for frame in sys._current_frames().values():
        caller: types.FrameType | None = frame
        while caller is not None:
            if caller.f_globals.get("__package__") != __package__ and caller.f_locals is not caller.f_globals:
                where = f"of {caller.f_code.co_name}()"
                yield from ((f"local {name} {where}", value) for name, value in local_names(caller).items())
            caller = caller.f_back


def local_names(frame: types.FrameType) -> dict[str, Any]:
    """A copy of a frame's local names. Before Python 3.13 a frame keeps the dict that it was asked for, and what is in
    it would then outlive `del`: it is emptied."""
    seen = frame.f_locals
    copy = dict(seen)
    if sys.version_info < (3, 13) and seen is not frame.f_globals and frame.f_code.co_flags & 1:  # a function's
        seen.clear()
    return copy


def _functions(step: Any) -> list[types.FunctionType]:
    """The Python functions that a callable is made of."""
    if isinstance(step, partial):
        return _functions(step.func)
    for inner in (step, getattr(step, "__func__", None), vars(type(step)).get("__call__")):
        if isinstance(inner, types.FunctionType):
            return [inner]
    return []


def _closures(functions: list[types.FunctionType]) -> Iterator[Root]:
    """The variables in the closures of functions, and of the functions that are in these."""
    seen: set[int] = set()
    for function in functions:  # grows on the way
        if id(function) in seen:
            continue
        seen.add(id(function))
        for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            try:
                yield name, cell.cell_contents
                functions += _functions(cell.cell_contents)
            except ValueError:  # still empty
                pass
        places: list[Any] = [*enumerate(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).items()]
        yield from ((f"default {default_name(function, x)} of {function.__name__}()", value) for x, value in places)


def default_name(function: types.FunctionType, place: int | str) -> str:
    """The parameter whose default stands at a place of `__defaults__`, or under a name in `__kwdefaults__`."""
    if isinstance(place, str):
        return place
    code = function.__code__
    return code.co_varnames[: code.co_argcount][place - len(function.__defaults__ or ())]


def shell() -> Any:
    """IPython's, where it runs already."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _not_given(name: str) -> bool:
    """Names that no reader gave: of Python, and those under which IPython keeps inputs and outputs once more."""
    return re.fullmatch(r"__\w+__|In|Out|_{1,3}|_[iod]h|_i{1,3}|_i?\d+", name) is not None
