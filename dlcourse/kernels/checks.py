"""What every kernel refuses: anything that is not an array of floats."""

from typing import Any

import numpy as np

Array = np.ndarray


def floats(x: Any, dtype: Any = None) -> Array:
    """`x` as it is if it is a float array, copied only if `dtype` is given and another. Raises TypeError for anything else:
    in uint8 200 · 2 is 144, and other integers or objects would be computed in another precision, or not at all."""
    if not isinstance(x, np.ndarray) or x.dtype.kind != "f":
        found = x.dtype if isinstance(x, np.ndarray) else type(x).__name__
        raise TypeError(
            f"expected a float array, got {found}; dlcourse.inputs.as_input turns uint8 images into floats, "
            "x.astype(np.float32) turns other numbers"
        )
    return x if dtype is None else x.astype(dtype, copy=False)
