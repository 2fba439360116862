"""What every kernel refuses: anything that is not an array of floats."""

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, TypeVar

import numpy as np

Array = np.ndarray
P = ParamSpec("P")
R = TypeVar("R")


def of_floats(kernel: Callable[P, R]) -> Callable[P, R]:
    """The kernel with a check of its first array, x or dy. Bytes would wrap around in it: 200 · 2 is 144 in uint8."""

    @wraps(kernel)
    def checked(*args: P.args, **options: P.kwargs) -> R:
        floats(args[0] if args else next(iter(options.values()), None))
        return kernel(*args, **options)

    return checked


def floats(x: Any, dtype: Any = None) -> Array:
    """`x` as it is if it is a float array, copied only if `dtype` is given and another. Raises TypeError for anything else:
    an integer or object array would be computed in another precision, or not at all."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        found = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
        raise TypeError(
            f"expected a float array, got {found}; dlcourse.inputs.as_input turns uint8 images into floats, "
            "x.astype(np.float32) turns other numbers"
        )
    return x if dtype is None else x.astype(dtype, copy=False)
