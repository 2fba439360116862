"""Checks of shapes, and of a layer's fields, for its `__post_init__`: these store a field as plain Python numbers, since a
NumPy float64 in a layer would turn float32 arrays into float64."""

import operator
from typing import Any

from dlcourse.kernels import out_size
from dlcourse.layers.base import Shape


def set_integer(layer: Any, field: str, least: int) -> None:
    """The field as an int, not less than `least`."""
    _set(layer, field, at_least(least, f"{type(layer).__name__}: {field}", getattr(layer, field)))


def set_pairs(layer: Any, **least: int) -> None:
    """Fields that are an integer for both axes or (height, width), always as two, each not less than its `least`."""
    for field, smallest in least.items():
        value, name = getattr(layer, field), f"{type(layer).__name__}: {field}"
        both = tuple(value) if isinstance(value, tuple | list) else (value, value)
        if len(both) != 2:
            raise ValueError(f"{name} must be an integer or two, (height, width), got {value!r}")
        _set(layer, field, tuple(at_least(smallest, name, one) for one in both))


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


def at_least(least: int, name: str, value: Any) -> int:
    """`value`, Python's or NumPy's integer, as an int of at least `least`; ValueError, which names it, for anything else."""
    try:
        number = least - 1 if isinstance(value, bool) else operator.index(value)
    except TypeError:
        number = least - 1
    if number < least:
        raise ValueError(f"{name} must be an integer of at least {least}, got {value!r}")
    return number


def _set(layer: Any, field: str, value: Any) -> None:
    object.__setattr__(layer, field, value)  # the layer is frozen


SHAPE_BYTES = 16  # (height, width) of a pooling's input, kept for its backward: two 8-byte integers


def at_least_one_axis(in_shape: Shape) -> Shape:
    if not in_shape:
        raise ValueError("expected inputs with at least one axis beside the batch, got scalars")
    return in_shape


def out_hw(in_shape: Shape, kernel: Any, stride: Any, padding: Any, dilation: Any = (1, 1)) -> tuple[int, int]:
    """Places of the window along height and width; ValueError if it does not fit once."""
    if len(in_shape) != 3:
        raise ValueError(f"expected images (H, W, C), got inputs of shape {in_shape} (the batch axis left out)")
    h, w, _ = in_shape
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    padded = (h + 2 * padding[0], w + 2 * padding[1])
    if reach[0] > padded[0] or reach[1] > padded[1]:
        spread = "" if tuple(dilation) == (1, 1) else f" with dilation {dilation} reaches over {tuple(reach)}, which"
        size = kernel[0] if kernel[0] == kernel[1] else tuple(kernel)
        raise ValueError(
            f"kernel_size {size}{spread} is larger than the padded input {padded}; add padding or take a smaller kernel"
        )
    height, width = map(out_size, (h, w), kernel, stride, padding, dilation)
    return height, width
