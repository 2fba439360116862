"""What a network is fed: the one place where integer images become floats."""

import numpy as np
from numpy.typing import ArrayLike, DTypeLike


def as_input(x: ArrayLike, dtype: DTypeLike = np.float32) -> np.ndarray:
    """Return `x` as a network takes it.

    - uint8 is an image of any shape: (x / 255 - 0.5) / 0.25, computed and returned in `dtype`, values -2 to 2.
    - Other integers are tokens or indices: returned as they are.
    - Floats are returned as they are when they have `dtype` already, and are cast when not.

    Raises TypeError for every other kind (bool, complex, object, strings, dates), and when `dtype` is not a float.
    Allocates one array of x.size * itemsize(dtype) bytes for uint8 and for a cast, else nothing.
    """
    dtype = np.dtype(dtype)
    if dtype.kind != "f":
        raise TypeError(f"as_input makes floats: dtype is {dtype}; give float32 or float64")
    x = np.asarray(x)
    if x.dtype == np.uint8:
        # np.array and not astype: the batch of a memory map becomes a plain array. In place from here on.
        out = np.array(x, dtype=dtype, order="C")
        out /= 255
        out -= 0.5
        out /= 0.25
        return out
    if x.dtype.kind in "iu":
        return x
    if x.dtype.kind == "f":
        return x.astype(dtype, copy=False)
    raise TypeError(
        f"inputs have dtype {x.dtype}; give images as uint8, tokens as another integer type, or float32 or float64"
    )
