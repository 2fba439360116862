"""The shapes of a layer's parameters, without the parameters: `init` runs on arrays that have a shape and no memory."""

from typing import Any

import numpy as np

from dlcourse.layers.base import Params, Shape


def params_of(layer: Any, in_shape: Shape, dtype: Any) -> Params:
    """What `layer.init` returns, where each weight that it draws is an array of one number, repeated by strides of 0: its
    shape, dtype and nbytes are right, its values mean nothing. Allocates what `init` makes without drawing: biases."""
    return layer.init(in_shape, _Drawn(np.random.PCG64(0)), dtype)


class _Drawn(np.random.Generator):
    """Draws one number for each call, whatever shape is asked for."""

    def random(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return _Repeated.of(size, dtype)

    def standard_normal(self, size: Any = None, dtype: Any = np.float64, out: Any = None) -> Any:
        return _Repeated.of(size, dtype)

    def normal(self, loc: Any = 0.0, scale: Any = 1.0, size: Any = None) -> Any:
        return _Repeated.of(size, np.float64)

    def uniform(self, low: Any = 0.0, high: Any = 1.0, size: Any = None) -> Any:
        return _Repeated.of(size, np.float64)


class _Repeated(np.ndarray):
    """Arithmetic with it gives its like, and in place it does nothing."""

    @staticmethod
    def of(shape: Any, dtype: Any) -> "_Repeated":
        return np.broadcast_to(np.zeros((), dtype), () if shape is None else shape).view(_Repeated)

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, out: Any = None, **more: Any) -> Any:
        if out is not None:
            return out[0]
        one = [x.reshape(-1)[:1].view(np.ndarray)[0] if isinstance(x, _Repeated) else x for x in inputs]
        shape = np.broadcast_shapes(*(np.shape(x) for x in inputs))
        return _Repeated.of(shape, getattr(ufunc, method)(*one, **more).dtype)

    def astype(self, dtype: Any, *_: Any, **more: Any) -> Any:
        return _Repeated.of(self.shape, dtype)
