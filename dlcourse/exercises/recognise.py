"""What is certain about a wrong result, whatever the exercise: it is the right one but for an order, a sign, a factor, a
shape. Said only of what holds on every input."""

import itertools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from dlcourse.exercises.difference import close, difference

CHANGES: dict[str, Callable[[np.ndarray], Any]] = {
    "the sign is the other one": lambda e: -e,
    "the sign is lost": abs,
    "0 stands where the number is negative": lambda e: np.maximum(e, 0),
    "0 stands everywhere": np.zeros_like,
    "there is the square of what is expected": lambda e: e * e,
    "there is the square root of what is expected": np.sqrt,
    "there is 1 divided by what is expected": lambda e: 1 / e,
    "there is 1 minus what is expected": lambda e: 1 - e,
    "there is 100 minus what is expected": lambda e: 100 - e,
    "the numbers are rounded down": np.floor,
    "the numbers are rounded": np.round,
    "the first axis runs backwards": lambda e: e[::-1],
    "the last axis runs backwards": lambda e: e[..., ::-1],
}
FACTORS: dict[float, str] = {
    4: " (a float32 has 4 bytes)",
    8: " (a float64 has 8 bytes, and a byte has 8 bits)",
    100: " (per cent?)",
    1024: " (1 KiB is 1024 bytes)",
    2**20: " (1 MiB is 1024 · 1024 bytes)",
    1.024: " (1 KiB is 1024 bytes, not 1000)",
}
Pairs = list[tuple[np.ndarray, np.ndarray, dict[str, Any]]]  # expected, got, the arguments by name


def in_another_order(parts: Sequence[str], expected: list[Any], got: list[Any], rtol: float | None) -> str:
    """Whether the parts are right and only stand in another order; "" if they do not. Of several orders that fit, where two
    parts are always equal, the one that moves fewest."""
    count = len(parts)
    equal = [
        [all(not difference(e[i], g[j], rtol) for e, g in zip(expected, got, strict=True)) for j in range(count)]
        for i in range(count)
    ]  # [i][j]: in the place j stands the part i
    fitting = [order for order in itertools.permutations(range(count)) if all(equal[i][j] for j, i in enumerate(order))]
    if not fitting:
        return ""
    order = max(fitting, key=lambda order: sum(i == j for j, i in enumerate(order)))
    moved = ", ".join(f"{parts[i]} where {parts[j]} is expected" for j, i in enumerate(order) if i != j)
    return (
        f"The numbers are right, and stand in another order: {moved}. The order is {', '.join(parts)}." if moved else ""
    )


def fact(
    expected: list[Any],
    got: list[Any],
    arguments: list[dict[str, Any]],
    others: dict[str, list[Any]],
    besides: bool = False,
) -> str:
    """What is certain about one part that is wrong; "" if nothing is. One entry for each input; `others` are the expected
    other parts of the result. besides: only a sign, a dtype, or numbers for bytes, which come beside another mistake."""
    triples = zip(map(_numbers, expected), map(_numbers, got), arguments, strict=True)
    pairs = [(e, g, a) for e, g, a in triples if e is not None and g is not None and e.dtype != bool]
    if len(pairs) < len(expected) or not any(e.size for e, _, _ in pairs):
        return ""
    sure = ("the sign is the", "the numbers are right, their")
    for text, wanted in _candidates(pairs, others):
        said = not besides or text.startswith(sure) or text.endswith("small by the factor itemsize")
        if said and _holds(pairs, wanted):
            return text
    return ""


def _candidates(pairs: Pairs, others: dict[str, list[Any]]) -> Iterator[tuple[str, list[np.ndarray | None]]]:
    """(what is said, what came if that is so, for each input), the surest first."""
    first, came, arguments = next(pair for pair in pairs if pair[0].size)

    def each(change: Callable[..., Any]) -> list[np.ndarray | None]:
        return [_tried(change, *pair) for pair in pairs]

    kinds = next(((g.dtype, e.dtype) for e, g, _ in pairs if e.dtype != g.dtype), ("", ""))
    yield f"the numbers are right, their dtype is not: {kinds[0]}, not {kinds[1]}", each(lambda e, g, a: e)
    yield (
        "the numbers are right, the shape is not: see `reshape` and `keepdims`",
        each(lambda e, g, a: e.reshape(g.shape)),
    )
    for order in itertools.permutations(range(min(first.ndim, 5))):
        text = "rows and columns are exchanged" if first.ndim == 2 else f"the axes stand in another order, {order}"
        yield text, each(lambda e, g, a, order=order: e.transpose(order))
    few = [few for n in range(1, came.ndim + 1) for few in itertools.combinations(range(came.ndim), n)]
    for axes in few:
        text = f"a sum is missing, over axis {', '.join(map(str, axes))}"
        yield text, each(lambda e, g, a, axes=axes: g if close(g.sum(axis=axes), e) else None)
    yield "there is the sum of what is expected", each(lambda e, g, a: e.sum())
    for axis in range(first.ndim):
        for word, fold in (("sum", np.sum), ("mean", np.mean), ("maximum", np.max)):
            text = f"there is the {word} of what is expected, over axis {axis}"
            yield text, each(lambda e, g, a, axis=axis, fold=fold: fold(e, axis=axis))
    for text, change in CHANGES.items():
        yield text, each(lambda e, g, a, change=change: change(e))
    step = float((came - first.astype(float)).flat[0]) if came.shape == first.shape else 0.0
    yield f"there is {abs(step):g} too {'much' if step > 0 else 'little'}, always", each(lambda e, g, a: e + step)
    place = int(abs(first).argmax())
    factor = float(came.flat[place]) / float(first.flat[place] or 1) if came.shape == first.shape else 0.0
    if factor > 0:
        shown = max(factor, 1 / factor)
        hint = next((text for known, text in FACTORS.items() if abs(known - shown) < 1e-6 * known), "")
        yield _times(f"{shown:.6g}{hint}", factor > 1), each(lambda e, g, a: e * factor)
    for name, of_other in others.items():
        yield f"stands what {name} should be", [_numbers(value) for value in of_other]
    for name in arguments:
        yield f"stands {name} as it came in", [_numbers(a[name]) for _, _, a in pairs]
    for name in _sizes(arguments):
        yield _times(name, True), each(lambda e, g, a, name=name: e * _sizes(a)[name])
        yield _times(name, False), each(lambda e, g, a, name=name: e / _sizes(a)[name])


def _tried(change: Callable[..., Any], *pair: Any) -> np.ndarray | None:
    try:
        with np.errstate(all="ignore"), warnings.catch_warnings(action="ignore"):
            made = change(*pair)
    except Exception:  # noqa: BLE001  it does not fit this input
        return None
    return None if made is None else np.asarray(made)


def _times(factor: str, large: bool) -> str:
    return f"all is too {'large' if large else 'small'} by the factor {factor}"


def _sizes(arguments: dict[str, Any]) -> dict[str, float]:
    """What a factor may be: sizes of arrays, numbers among the arguments and their squares."""
    found: dict[str, float] = {}
    for name, value in arguments.items():
        if isinstance(value, np.ndarray):
            found |= {f"{name}.shape[{axis}]" if axis else f"len({name})": n for axis, n in enumerate(value.shape)} | {
                f"{name}.size": value.size
            }
            if value.ndim:
                found[f"{name}.size / {name}.shape[-1]"] = value.size / max(1, value.shape[-1])
        elif isinstance(value, int | float) and not isinstance(value, bool):
            found |= {name: value, f"{name}²": value**2, f"(1 - {name})": 1 - value}
        elif isinstance(value, tuple | list):
            found[f"len({name})"] = len(value)
            if all(isinstance(one, int) for one in value):
                found |= {f"{name}[{place}]": one for place, one in enumerate(value)}
    return found


def _numbers(value: Any) -> np.ndarray | None:
    """The numbers of a part in an array: of an array, a number, a list of numbers, or a dict of them."""
    if isinstance(value, dict):
        value = [value[key] for key in sorted(value, key=str)]
    try:
        array = np.asarray(value)
    except Exception:  # noqa: BLE001  parts of several shapes, or something of the reader's own
        return None
    return array if array.dtype.kind in "biuf" else None


def _holds(pairs: Pairs, wanted: list[np.ndarray | None]) -> bool:
    """Whether on every input came what is `wanted`, and this is no accident."""
    if not all(w is not None and close(w, g) for w, (_, g, _) in zip(wanted, pairs, strict=True)):
        return False
    return _evidence(pairs)


def _evidence(pairs: Pairs) -> bool:
    """Whether at least two different numbers, or their shape or dtype, came wrong: one alone fits many explanations."""
    seen = {float(a) for e, g, _ in pairs for a, b in zip(np.ravel(e)[:99], np.ravel(g)[:99], strict=False) if a != b}
    return len(seen) > 1 or any(e.shape != g.shape or e.dtype != g.dtype for e, g, _ in pairs)
