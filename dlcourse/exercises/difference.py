"""Two results side by side: are they the same, and if not, what differs first."""

import math
import numbers
from typing import Any

import numpy as np

RTOL = {"float64": 1e-7, "float32": 1e-4, "float16": 2e-2}
SHOWN = 24  # numbers of an array that are written out


def difference(expected: Any, got: Any, rtol: float | None = None, names: tuple[str, ...] = (), what: str = "") -> str:
    """The first difference in words; "" where there is none. Structure first, then shape, dtype, and numbers.

    A number that is expected may come as Python's, NumPy's or an array of no axes. An expected array is one of its dtype.
    `names` are those of a tuple's members, `what` is what the value is called ("the result").
    """
    try:
        return _difference(expected, got, rtol, names, what or "the result")
    except Exception as error:  # noqa: BLE001  what a reader returns may refuse to be compared
        return f"{what or 'the result'} is {_kind(got)}, and comparing it raises {type(error).__name__}"


def _difference(expected: Any, got: Any, rtol: float | None, names: tuple[str, ...], what: str) -> str:
    if isinstance(got, np.ndarray) and got.ndim == 0 and not isinstance(expected, np.ndarray):
        got = got[()]
    if got is None and expected is not None:
        asked = ". Does each path through the function `return` something?" if what == "the result" else ""
        return f"{what} is None, and {_kind(expected)} is expected{asked}"
    if expected is None:
        return "" if got is None else f"{what} is {_kind(got)}, and None is expected"
    if isinstance(expected, dict):
        return _dicts(expected, got, rtol, what)
    if isinstance(expected, tuple | list):
        return _sequences(expected, got, rtol, names, what)
    if isinstance(expected, bool | np.bool_ | str):
        kind = str if isinstance(expected, str) else numbers.Number | np.bool_
        same = isinstance(got, kind) and bool(got == expected)
        return "" if same else f"{what}: expected {_short(expected)}, got {_short(got)}"
    if isinstance(expected, np.ndarray):
        return _arrays(expected, got, rtol, what)
    if isinstance(expected, numbers.Number):
        return _numbers(expected, got, rtol, what)
    return (
        "" if type(got) is type(expected) and got == expected else f"{what}: expected {expected!r}, got {_short(got)}"
    )


def _dicts(expected: dict, got: Any, rtol: float | None, what: str) -> str:
    if not isinstance(got, dict):
        return f"{what} is {_kind(got)}, and a dict is expected"
    if set(got) != set(expected):
        return f"{what} has the keys {sorted(map(str, got))}, and {sorted(map(str, expected))} are expected"
    return next(filter(None, (difference(v, got[k], rtol, (), f"{what}[{k!r}]") for k, v in expected.items())), "")


def _sequences(expected: Any, got: Any, rtol: float | None, names: tuple[str, ...], what: str) -> str:
    members, count = (f" ({', '.join(names)})" if names else ""), len(expected)
    verb = "is" if count == 1 else "are"
    if not isinstance(got, tuple | list):
        if isinstance(expected, list):
            return f"{what} is {_kind(got)}, and a list of {count} is expected"
        return f"{what} is {_kind(got)}, and {count} {'thing' if count == 1 else 'things'}{members} {verb} expected, separated by commas"
    if len(got) != count:
        return f"{what} has {len(got)} part{'s' * (len(got) != 1)}, and {count}{members} {verb} expected"
    for place, (a, b) in enumerate(zip(expected, got, strict=True)):
        found = difference(a, b, rtol, (), names[place] if place < len(names) else f"{what}[{place}]")
        if found:
            return found
    return ""


def _arrays(expected: np.ndarray, got: Any, rtol: float | None, what: str) -> str:
    if not isinstance(got, np.ndarray | np.generic):
        return f"{what} is {_kind(got)}, and an array of shape {expected.shape} is expected"
    if got.shape != expected.shape:
        return f"{what} has the shape {got.shape}, and {expected.shape} is expected"
    if got.dtype != expected.dtype and not (
        expected.dtype == int and got.dtype.kind in "iu" and got.itemsize > 2
    ):  # any kind of counts
        only = ". Its numbers are right" if got.dtype.kind in "biuf" and close(expected, np.asarray(got)) else ""
        return f"{what} has the dtype {got.dtype}, and {expected.dtype} is expected{only}"
    off = ~_near(expected, np.asarray(got), rtol)
    if not off.any():
        return ""
    place = tuple(int(i) for i in np.argwhere(off)[0])
    where = f"[{', '.join(map(str, place))}]" if place else ""
    more = f"{int(off.sum())} of {off.size} numbers differ" if off.size > 1 else "it differs"
    said = f"{what}{where}: {_pair(expected[place], np.asarray(got)[place])}; {more}"
    if 1 < off.size <= SHOWN:
        said += f"\n  expected {_inline(expected)}\n  got      {_inline(np.asarray(got))}"
    return said


def _numbers(expected: Any, got: Any, rtol: float | None, what: str) -> str:
    if not isinstance(got, numbers.Number) or isinstance(got, bool | np.bool_):
        return f"{what} is {_kind(got)}, and a number is expected"
    if isinstance(expected, numbers.Integral):
        return "" if got == expected else f"{what}: {_pair(expected, got)}"
    tolerance = rtol if rtol is not None else RTOL.get(getattr(expected, "dtype", np.dtype("float64")).name, 1e-7)
    a, b = complex(expected), complex(got)  # type: ignore[call-overload]
    near = math.isfinite(abs(a)) and abs(a - b) <= tolerance * max(abs(a), 1e-8)
    same = a == b or near or (math.isnan(a.real) and math.isnan(b.real))
    return "" if same else f"{what}: {_pair(expected, got)}"


def _pair(expected: Any, got: Any) -> str:
    """Both numbers, with all their digits where the first six are the same."""
    a, b = _number(expected), _number(got)
    if a == b or (isinstance(expected, numbers.Integral) and not isinstance(got, numbers.Integral)):
        a, b = str(expected), str(got)
    return f"expected {a}, got {b}"


def close(expected: np.ndarray, got: np.ndarray) -> bool:
    """Whether all numbers are the same, in the precision of the coarser of the two."""
    if expected.shape != got.shape:
        return False
    coarse = [RTOL[array.dtype.name] for array in (expected, got) if array.dtype.name in RTOL]
    return bool(_near(expected.astype(float), got.astype(float), max(coarse, default=1e-7)).all())


def _near(expected: np.ndarray, got: np.ndarray, rtol: float | None) -> np.ndarray:
    """Element by element. The tolerance is a part of the largest finite number that is expected: a sum of large terms of
    both signs may end near zero with the rounding of the large ones."""
    if expected.dtype.kind not in "fc" or not expected.size:
        return expected == got
    tolerance = RTOL.get(expected.dtype.name, 1e-7) if rtol is None else rtol
    finite = np.abs(expected[np.isfinite(expected)])
    largest = float(finite.max()) if finite.size else 0.0
    with np.errstate(invalid="ignore", over="ignore"):
        near = np.abs(expected - got) <= tolerance * largest
        return near | (expected == got) | (np.isnan(expected) & np.isnan(got))


def _kind(value: Any) -> str:
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of shape {value.shape}"
    if isinstance(value, tuple) and len(value) == 1:
        return "a tuple of 1 (a comma at the end makes one)"
    if isinstance(value, tuple | list):
        return f"a {type(value).__name__} of {len(value)}"
    if isinstance(value, bool | np.bool_):
        return f"{value}"
    if isinstance(value, numbers.Number):
        return f"the number {_number(value)}"
    name = type(value).__name__
    return f"an {name}" if name[0].lower() in "aeiou" else f"a {name}"


def _number(value: Any) -> str:
    if isinstance(value, bool | np.bool_):
        return str(bool(value))
    if isinstance(value, numbers.Integral):
        if int(value).bit_length() > 64:
            return f"an integer of {int(value).bit_length()} bits"
        return f"{int(value):,}" if abs(int(value)) >= 10_000 else str(int(value))
    try:
        return f"{float(value):.6g}"
    except (TypeError, ValueError):
        return str(value)


def _inline(array: np.ndarray) -> str:
    return np.array2string(array, precision=4, suppress_small=False, separator=", ", max_line_width=10_000).replace(
        "\n", ""
    )


def _short(value: Any) -> str:
    text = repr(value.item() if isinstance(value, np.generic) else value)
    return text if len(text) <= 60 else text[:57] + "..."


def shown(value: Any) -> str:
    """An argument of a call, in a few words or numbers: one line."""
    if isinstance(value, np.ndarray):
        if value.size <= SHOWN:
            return f"{_inline(value)} ({value.dtype})"
        return f"array of shape {value.shape}, {value.dtype}"
    if isinstance(value, tuple | list) and any(isinstance(member, np.ndarray) for member in value):
        return f"a {'list' if isinstance(value, list) else 'tuple'} of {len(value)}"
    if isinstance(value, dict):
        return f"a dict with the keys {', '.join(map(str, value))}"
    if isinstance(value, np.random.Generator):
        return "a Generator"
    if callable(value):
        return f"the function {getattr(value, '__name__', 'f')}"
    return _short(value)


def numbers_in(value: Any) -> int:
    """How many numbers an argument has: in its arrays, lists and dicts."""
    if isinstance(value, np.ndarray):
        return value.size
    if isinstance(value, dict):
        return numbers_in(list(value.values()))
    if isinstance(value, tuple | list | set):
        return sum(map(numbers_in, value))
    return int(isinstance(value, numbers.Number))
