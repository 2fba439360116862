"""What a chain of layers needs, in a `Sequential` and inside of a `Recompute`: names, and the usual way to call them."""

from collections.abc import Callable, Iterable
from typing import Any

from dlcourse.layers.base import Layer

Named = tuple[tuple[str, Layer], ...]


def plainly(moment: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
    """The usual `call` of a network: -> function(*arguments, **options).

    `moment` says what is called, "conv2d_1, forward". A ValueError, TypeError or KeyError of a layer comes out with the
    layer's kind and name before its text. Another `call` does something around this one: it measures, it writes a trace,
    it looks at the result. It must hold none of the arguments when it returns, or backward frees nothing.
    """
    try:
        return function(*arguments, **options)
    except (ValueError, TypeError, KeyError) as error:
        name, comma, _ = moment.rpartition(", ")
        if not comma:
            raise
        kind = TypeError if isinstance(error, TypeError) else ValueError
        text = f"{error} is missing from its parameters, or from what it keeps"
        layer = getattr(function, "__self__", None)
        who = f"'{name}'" if layer is None else f"{type(layer).__name__} '{name}'"
        raise kind(f"{who}: {text if isinstance(error, KeyError) else error}") from error


def named_layers(layers: Iterable[Any], who: str) -> Named:
    """(name, layer) of each: its kind and count. A network among them gives its own, with its name before theirs:
    sequential_1/affine_1. Raises TypeError, which begins with `who`, for what is no layer."""
    counts: dict[str, int] = {}
    found: list[tuple[str, Layer]] = []
    for i, layer in enumerate(layers):
        if isinstance(layer, type) or not hasattr(layer, "forward"):
            raise TypeError(f"{who}: layer {i + 1} is {layer!r}; give a layer, such as ReLU()")
        kind = getattr(layer, "kind", type(layer).__name__).lower()
        counts[kind] = counts.get(kind, 0) + 1
        name = f"{kind}_{counts[kind]}"
        inner = hasattr(layer, "named")
        found += [(f"{name}/{below}", part) for below, part in layer.named()] if inner else [(name, layer)]
    return tuple(found)
