"""What must be equal for a training to go on to the bit, as text and numbers that can be stored and compared.

A name stands for what it names, so a function counts if its name is all that there is to it: defined by `def` at the
top of a module or notebook, with no closure. An object counts if its fields are all that there is to it: a frozen
dataclass. Anything else is refused: a repr may hide a state, or show an address that is another one tomorrow.
"""

import dataclasses
import enum
import functools
import sys
import types
import zlib
from typing import Any

import numpy as np

PLAIN = (str, bytes, bool, int, float, complex, type(None), range)


class CheckpointError(OSError):
    """A checkpoint that cannot be written or read, or that belongs to another training. Names the file and the reason."""


def describe(**settings: Any) -> dict[str, Any]:
    """-> the settings as plain values. Raises CheckpointError, which says what to do, for one that has no name and no
    fields to tell it by."""
    found = {}
    for name, value in settings.items():
        value = value.item() if isinstance(value, np.generic) else value
        plain = value is None or isinstance(value, str | bool | int | float)
        try:
            found[name] = value if plain else _text(value)
        except TypeError as error:
            raise CheckpointError(
                f"a checkpoint needs a {name} that can be told from another one, and {error}. Write a function with def, "
                "at the top of a module or notebook, or a class with @dataclass(frozen=True) whose fields are numbers, "
                "texts, tuples or such objects again; or train without checkpoint"
            ) from None
    return found


def describe_data(data: Any, validation: Any = None) -> dict[str, Any]:
    """-> what tells data from other data: dtypes, shapes and checksums. validation: if training can end by it. Reads
    every byte once, a block at a time."""
    some = data.x[:: max(1, len(data.x) // 64)]
    found = {"labels": f"{len(data.y)} of them, crc {_crc(data.y)}", "inputs": f"{data.x.dtype} {data.x.shape}"}
    found |= {"some_inputs": f"{len(some)} of them, crc {_crc(some)}", "all_inputs": f"crc {_crc(data.x)}"}
    found["label_shape"] = f"{data.y.dtype} {data.y.shape}"
    if validation is not None:
        found["validation"] = f"{len(validation.x)} of them, crc {_crc(validation.x)} {_crc(validation.y)}"
    return found


def _crc(array: np.ndarray) -> str:
    rows = max(1, 2**20 // max(1, array[:1].nbytes))
    crc = 0
    for start in range(0, len(array), rows):
        crc = zlib.crc32(np.ascontiguousarray(array[start : start + rows]).data, crc)
    return f"{crc:08x}"


def _text(value: Any) -> str:
    """As repr writes it, with names in place of addresses. Raises TypeError for what may have a hidden state."""
    if isinstance(value, np.generic):
        value = value.item()
    if type(value) in PLAIN or isinstance(value, np.dtype):
        return repr(value)
    if isinstance(value, enum.Enum):
        return f"{_name(type(value))}.{value.name}"
    if type(value) in (tuple, list):
        texts = ", ".join(map(_text, value)) + ("," if type(value) is tuple and len(value) == 1 else "")
        return f"({texts})" if type(value) is tuple else f"[{texts}]"
    if type(value) is dict:
        return "{" + ", ".join(f"{_text(key)}: {_text(child)}" for key, child in value.items()) + "}"
    if isinstance(value, functools.partial):
        keywords = ", ".join(f"({key!r}, {_text(child)})" for key, child in sorted(value.keywords.items()))
        return f"{_text(value.func)}{_text(value.args)}[{keywords}]"
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return _fields_text(value)
    return _name(value)


def _fields_text(value: Any) -> str:
    kind = type(value)
    ours = kind.__module__.partition(".")[0] == "dlcourse"
    # In a layer of the course, what repr leaves out has no part in training: the initializer has already drawn.
    fields = [field for field in dataclasses.fields(value) if field.repr or not ours]
    if not kind.__dataclass_params__.frozen:
        raise TypeError(f"an object of {kind.__qualname__} can change: its dataclass is not frozen")
    hidden = getattr(value, "__dict__", {}).keys() - {field.name for field in dataclasses.fields(value)}
    if hidden and not ours:
        raise TypeError(f"an object of {kind.__qualname__} has {min(hidden)!r}, which is no field of its dataclass")
    texts = ", ".join(f"{field.name}={_text(getattr(value, field.name))}" for field in fields)
    return f"{kind.__qualname__ if ours else _name(kind)}({texts})"


def _name(value: Any) -> str:
    """ "module.name" of a function or class that is told by its name."""
    if isinstance(value, types.FunctionType):
        name = value.__code__.co_qualname  # what it was called where it was written; __qualname__ may be a copied one
        if "<" in name:
            raise TypeError(f"{name} is one of many of that name, which may differ in what surrounds them")
        if value.__closure__:
            raise TypeError(f"the function {name} has a state: what surrounds it")
        return f"{value.__module__}.{name}"
    if isinstance(value, type) and "<" in value.__qualname__:
        raise TypeError(f"the class {value.__qualname__} stands in a function, which may make others of that name")
    name = getattr(value, "__qualname__", getattr(value, "__name__", ""))
    module = getattr(value, "__module__", None) or ("numpy" if isinstance(value, np.ufunc) else "")
    if isinstance(value, type) or (name and getattr(sys.modules.get(module), name, None) is value):
        return f"{module}.{name}"
    raise TypeError(f"an object of {type(value).__qualname__} is neither a named function nor a frozen dataclass")
