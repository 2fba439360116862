"""What waits for backward in fewer bytes: truth values as bits, floats as their upper halves."""

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlcourse.layers.base import Array, Layer, Params, Shape, array_bytes
from dlcourse.layers.plain import Dropout, ReLU
from dlcourse.plan import Plan


@dataclass(frozen=True)
class Packed(Layer):
    """A layer of which what backward needs is kept in fewer bytes. Its name and its parameters are those of the inner layer.

    ReLU, LeakyReLU, Dropout: a bit an element, where ReLU keeps its output and Dropout a byte; the gradients have the same
    bits. A layer that keeps its input (Conv2D, Affine, GELU, LayerNorm): the upper half of each float, 2 bytes of 4, so
    the gradients of its parameters are off by about 2**-9 of themselves, and its output is not. It pays if no neighbour keeps
    the same array whole: ReLU before a convolution is packed with it, or neither is.

    layer: one of those. Raises TypeError for another one: there is nothing to pack.
    """

    layer: Any

    def __post_init__(self) -> None:
        if not self._bits and (getattr(self.layer, "keeps", "") != "x" or hasattr(self.layer, "statistics")):
            which = "ReLU, Dropout or a layer that keeps its input, such as Conv2D(8, 3)"
            raise TypeError(f"Packed: expected {which}, got {self.layer!r}")

    @property
    def _bits(self) -> bool:
        return isinstance(self.layer, ReLU | Dropout)

    @property
    def kind(self) -> str:
        """What the layer is called after."""
        return type(self.layer).__name__

    @property
    def draws(self) -> bool:
        return self.layer.draws

    @property
    def overwrites_dy(self) -> bool:
        return self.layer.overwrites_dy

    def weights(self, in_shape: Shape) -> dict[str, Any]:
        return self.layer.weights(in_shape)

    def out_shape(self, in_shape: Shape) -> Shape:
        return self.layer.out_shape(in_shape)

    def apply(self, params: Params, x: Array, *, train: bool, **how: Any) -> tuple[Array, Params]:
        y, own = self.layer.apply(params, x, train=train, **how)
        if not train or y is x:
            return y, {}
        if not self._bits:
            return y, {"x": upper_halves(x)} | own
        return y, {"bits": np.packbits(own["keep"] if own else y > 0), "shape": np.array(y.shape, np.int64)}

    def gradient(self, params: Params, saved: Any, dy: Array, **how: Any) -> tuple[Array | None, Params]:
        if not self._bits:
            rest = saved if isinstance(saved, dict) else {"x": saved}
            kept: Any = rest | {"x": whole_floats(rest["x"], dy.dtype)}
            kept = kept if len(kept) > 1 else kept["x"]
        else:
            kept = saved and np.unpackbits(saved["bits"], count=dy.size).view(bool).reshape(dy.shape)
        return self.layer.gradient(params, kept, dy, **how)

    def y_shape(self, saved: Any, dy: Array) -> Shape:
        if self._bits:
            return dy.shape if saved is None else tuple(saved["shape"].tolist())
        x = saved["x"] if isinstance(saved, dict) else saved
        return len(x), *self.out_shape(x.shape[1:])

    def workspace(self, in_shape: Shape, *, batch: int | None, dtype: Any, train: bool) -> Plan:
        inner = self.layer.workspace(in_shape, batch=batch, dtype=dtype, train=train)
        if not train or inner.output_is_input:
            return inner
        if self._bits:
            mask = array_bytes(in_shape, batch, bool)
            return replace(
                inner,
                own=-(-mask // 8) + 8 * (len(in_shape) + (batch is not None)),
                forward_workspace=inner.forward_workspace + mask,
                backward_workspace=inner.backward_workspace + mask,
            )
        x = array_bytes(in_shape, batch, dtype)
        first = inner.first_backward_workspace
        return replace(
            inner,
            own=inner.own + x // 2,
            forward_workspace=max(0, inner.forward_workspace - x // 2),  # gone when the halves are made
            backward_workspace=inner.backward_workspace + x,
            first_backward_workspace=None if first is None else first + x,
        )


def upper_halves(x: Array) -> Array:
    """The upper half of each float's bits, sign, exponent and the first bits of the mantissa, as unsigned integers of half the
    bytes.  Allocates them."""
    halves = np.empty(x.shape, f"u{x.itemsize // 2}")
    np.copyto(
        halves, np.ascontiguousarray(x).view(halves.dtype)[..., 1::2]
    )  # little-endian: the upper half is the second
    return halves


def whole_floats(halves: Array, dtype: Any) -> Array:
    """Floats of `dtype` from their upper halves: the middle of what was cut off, so that the mean is not off; 0 is 0.
    Allocates them."""
    x = np.empty(halves.shape, dtype)
    low, high = (x.view(halves.dtype)[..., part::2] for part in (0, 1))
    np.copyto(high, halves)
    np.minimum(halves, 1, out=low)
    low <<= 8 * halves.itemsize - 1
    return x
