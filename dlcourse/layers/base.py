"""What the layers share: the contract as a type, and the checks that give their errors."""

import math
from typing import Any, Protocol

import numpy as np

from dlcourse.plan import Plan

Shape = tuple[int, ...]
Params = dict[str, Any]


class Layer(Protocol):
    """The contract that `Sequential`, the bill and the ledger rest on; see `dlcourse.layers`."""

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params: ...
    def out_shape(self, in_shape: Shape) -> Shape: ...
    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]: ...
    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]: ...
    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan: ...


def array_bytes(shape: Shape, batch: int, dtype: Any) -> int:
    """Bytes of a batch of arrays of `shape`."""
    return batch * math.prod(shape) * np.dtype(dtype).itemsize


def floats(x: Any, dtype: Any = None) -> np.ndarray:
    """`x` as it is if it is a float array (of `dtype`, where one is given; else a copy in it). An integer or object
    array is refused: it would be computed in another precision, or not at all."""
    if not isinstance(x, np.ndarray) or not np.issubdtype(x.dtype, np.floating):
        found = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
        raise TypeError(
            f"expected a float array, got {found}; dlcourse.inputs.as_input turns uint8 images into floats, "
            "x.astype(np.float32) turns other numbers"
        )
    return x if dtype is None else x.astype(dtype, copy=False)


def shape_array(shape: Shape) -> np.ndarray:
    """A shape that backward needs, as 8-byte integers: `saved` holds arrays only."""
    return np.array(shape, np.int64)


def images(in_shape: Shape) -> tuple[int, int, int]:
    """Check that a shape is that of one image (H, W, C)."""
    if len(in_shape) != 3:
        raise ValueError(f"expected images (H, W, C), got inputs of shape {in_shape} (the batch axis left out)")
    return in_shape


def same_size(name: str, found: int, expected: int, what: str) -> None:
    """Check an axis of the input against a parameter."""
    if found != expected:
        raise ValueError(f"{name} was made for {expected} {what}, got an input with {found}")


def has_shape(name: str, array: np.ndarray, expected: Shape) -> None:
    """Check a parameter against the layer's own configuration."""
    if array.shape != expected:
        raise ValueError(f"{name} has shape {array.shape}; this layer's is {expected}: parameters of another network?")


# For __post_init__ of a layer: check one field and store it as plain Python numbers. A NumPy float64 in a layer would turn
# float32 arrays into float64.


def set_integer(layer: Any, field: str, least: int) -> None:
    """The field as an int, not less than `least`."""
    _set(layer, field, _integer(layer, field, getattr(layer, field), least))


def set_pair(layer: Any, field: str, least: int) -> None:
    """The field, an integer for both axes or (height, width), always as two."""
    value = getattr(layer, field)
    values = tuple(value) if isinstance(value, tuple | list) else (value, value)
    if len(values) != 2:
        raise ValueError(f"{type(layer).__name__}: {field} must be an integer or two, (height, width), got {value!r}")
    _set(layer, field, tuple(_integer(layer, field, one, least) for one in values))


def set_number(layer: Any, field: str, low: float, high: float, *, open_end: bool = False) -> None:
    """The field as a float in [low, high], or [low, high) with `open_end`."""
    found = getattr(layer, field)
    try:
        value = float(found)
    except (TypeError, ValueError):
        raise TypeError(f"{type(layer).__name__}: {field} must be a number, got {found!r}") from None
    if not (low <= value < high if open_end else low <= value <= high):
        span = f"[{low:g}, {high:g}{')' if open_end else ']'}"
        raise ValueError(f"{type(layer).__name__}: {field} must be in {span}, got {value!r}")
    _set(layer, field, value)


def _integer(layer: Any, field: str, value: Any, least: int) -> int:
    if isinstance(value, bool) or not isinstance(value, int | np.integer) or value < least:
        raise ValueError(f"{type(layer).__name__}: {field} must be an integer of at least {least}, got {value!r}")
    return int(value)


def _set(layer: Any, field: str, value: Any) -> None:
    object.__setattr__(layer, field, value)  # the layer is frozen
