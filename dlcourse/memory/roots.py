"""The names that a reader knows: where a walk to the arrays begins."""

import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

LAST = "the last traceback"

Root = tuple[str, Any]


def roots(step: Callable | None = None) -> Iterator[Root]:
    """Where names begin: the outputs of a notebook, the globals and the closure of `step`, the reader's own names, the
    last traceback."""
    spaces = [function.__globals__ for function in _functions(step)] + [_user_names()]
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
    """The same, and the globals of every module, and the locals of calls that are under way."""
    yield from roots(step)
    for module in list(sys.modules):
        for name, value in list(getattr(sys.modules[module], "__dict__", {}).items()):
            if not _not_given(name):
                yield f"{module}.{name}", value
    yield from locals_of(sys._current_frames().values())


def locals_of(frames: Iterable[types.FrameType | None]) -> Iterator[Root]:
    """The local names of calls that are under way and of those that called them, without those of this package's
    memory tools."""
    for frame in frames:
        while frame is not None:
            if frame.f_globals.get("__package__") != __package__ and frame.f_locals is not frame.f_globals:
                yield from ((f"local {name} of {frame.f_code.co_name}()", x) for name, x in local_names(frame).items())
            frame = frame.f_back


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
        defaults: list[tuple[Any, Any]] = [
            *enumerate(function.__defaults__ or ()),
            *(function.__kwdefaults__ or {}).items(),
        ]
        yield from ((f"default {default_name(function, x)} of {function.__name__}()", value) for x, value in defaults)


def default_name(function: types.FunctionType, place: int | str) -> str:
    """The parameter whose default stands at a place of `__defaults__`, or under a name in `__kwdefaults__`."""
    if isinstance(place, str):
        return place
    code = function.__code__
    return code.co_varnames[: code.co_argcount][place - len(function.__defaults__ or ())]


def shell() -> Any:
    """IPython's, where it runs already."""
    return getattr(sys.modules.get("IPython"), "get_ipython", lambda: None)()


def _user_names() -> dict[str, Any]:
    """The names of the notebook, or of the script that runs."""
    return vars(sys.modules["__main__"]) if shell() is None else shell().user_ns


def _not_given(name: str) -> bool:
    """Names that no reader gave: of Python, and those under which IPython keeps inputs and outputs once more."""
    return re.fullmatch(r"__\w+__|In|Out|_{1,3}|_[iod]h|_i{1,3}|_i?\d+", name) is not None
