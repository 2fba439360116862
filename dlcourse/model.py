"""Sequential: names layers, and runs them forward and back."""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from dlcourse.calls import Call, Value
from dlcourse.layers import Layer
from dlcourse.layers.base import Params, Shape, dtype_of, wrong_dy
from dlcourse.layers.chain import named_layers, plainly


class Saved(dict[str, Any]):
    """{layer name: what the layer keeps for backward}; and the shape that y had, which dy must have."""

    y_shape: Shape


@dataclass(frozen=True, init=False)
class Sequential:
    """Layers one after the other, named by their kind and count: conv2d_1, relu_1, conv2d_2, …

    A Sequential may stand in a Sequential; the names of its layers then begin with its own: sequential_1/affine_1.
    params: {layer name: {"W": array, …}}, without the layers that have none. grads: the same names, and of each layer
    what is trained. saved: {layer name: what the layer keeps for backward}, for every layer.

    layers: as they were given. A layer is anything with the five methods that `dlcourse.layers` names.
    Raises TypeError for what is no layer.
    """

    layers: tuple[Any, ...]
    _named: ClassVar[tuple[tuple[str, Layer], ...]] = ()  # no field: it follows from the layers

    def __init__(self, layers: Iterable[Any]) -> None:
        object.__setattr__(self, "layers", tuple(layers))
        object.__setattr__(self, "_named", named_layers(self.layers, "Sequential"))

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(name for name, _ in self._named)

    def named(self) -> tuple[tuple[str, Layer], ...]:
        """(name, layer) of each layer, in order; of a Sequential in it, its layers."""
        return self._named

    def flat(self, in_shape: Shape) -> Iterator[tuple[str, Layer, Shape]]:
        """(name, layer, its input's shape) of each layer, in order. Shapes leave out the batch axis."""
        for (name, layer), shape in zip(self._named, self.shapes(in_shape), strict=False):
            yield name, layer, shape

    def shapes(self, in_shape: Shape) -> list[Shape]:
        """The input's shape and then each layer's output's, without the batch axis. Raises ValueError, which names the
        layer, if one does not fit."""
        shapes = [_checked(in_shape)]
        for name, layer in self._named:
            shapes.append(plainly(f"{name}, out_shape", layer.out_shape, shapes[-1]))
        return shapes

    def out_shape(self, in_shape: Shape) -> Shape:
        """The shape of the last layer's output, without the batch axis."""
        return self.shapes(in_shape)[-1]

    def calls(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> list[Call]:
        """What forward runs on a batch of `batch` inputs of `in_shape` (without the batch axis) in floats of `dtype`, and
        what backward then needs: a call for each layer, in order. Runs and allocates nothing. Raises ValueError, which
        names the layer, if a shape does not fit."""
        x = Value(-1, (operator.index(batch), *_checked(in_shape)), np.dtype(dtype))
        calls = []
        for number, (name, layer) in enumerate(self._named):
            shape = x.shape[1:]
            y = x._replace(number=number, shape=(x.shape[0], *plainly(f"{name}, out_shape", layer.out_shape, shape)))
            plan = plainly(f"{name}, plan", layer.plan, shape, batch=x.shape[0], dtype=x.dtype, train=train)
            calls.append(Call(number, name, layer, (x,), y, plan))
            x = y
        return calls

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """-> new params for inputs of `in_shape` (without the batch axis), floats of `dtype`, drawn from `rng` by the
        layers in order. Allocates the parameters. Raises ValueError, which names the layer, if a shape does not fit."""
        params = {}
        for name, layer, shape in self.flat(in_shape):
            if own_params := plainly(f"{name}, init", layer.init, shape, rng, dtype):
                params[name] = own_params
        return params

    def forward(
        self,
        params: Params,
        x: np.ndarray,
        *,
        train: bool = False,
        rng: np.random.Generator | None = None,
        call: Callable[..., Any] = plainly,
    ) -> tuple[np.ndarray, Any]:
        """-> (y, saved).  x (N, …) of any shape that the first layer takes; y (N, …) in the dtype of the parameters.

        train: what backward needs is kept in `saved`, and dropout draws from `rng`, layer by layer. Otherwise nothing is
            kept: saved is None, and each activation goes as soon as the next one is there.
        call: how each layer is called, see `plainly`.
        Changes no parameter. Allocates what the plans of the layers say (`memory.bill`), and a copy of x if it has
        another float dtype than the parameters. Raises TypeError and ValueError, which name the layer, for an x that is
        no batch of floats of the right shape.
        """
        if not isinstance(params, dict):
            raise TypeError(
                f"params must be a dict by the layers' names, as init gives it, got {type(params).__name__}"
            )
        if not isinstance(x, np.ndarray):
            raise TypeError(f"expected a NumPy array, got {type(x).__name__}")
        if x.ndim == 0 or len(x) == 0:
            raise ValueError(f"expected a batch of at least one input, got an array of shape {x.shape}")
        if x.dtype.kind == "f" and (dtype := dtype_of(params)):
            x = x.astype(dtype, copy=False)
        saved = Saved()
        for name, layer in self._named:
            x, kept = call(f"{name}, forward", layer.forward, params.get(name, {}), x, train=train, rng=rng)
            if train:
                saved[name] = kept
        saved.y_shape = x.shape
        return x, saved if train else None

    def backward(
        self,
        params: Params,
        saved: Any,
        dy: np.ndarray,
        *,
        need_dx: bool = True,
        overwrite_dy: bool = False,
        release: bool = False,
        defer: Iterable[str] = (),
        call: Callable[..., Any] = plainly,
    ) -> tuple[np.ndarray | None, Params]:
        """-> (dx, grads).  dy: of the shape of y, floats. dx: of the shape of x. grads: arrays like the trainable params.

        saved: of a forward pass with train=True.
        need_dx: whether dx of the first layer is wanted; else dx is None.
        overwrite_dy: dy may be written over.
        release: as in training, `saved` is emptied layer by layer, so that each saved array is freed as soon as its
            backward is done; dx is None.
        defer: names of affine layers whose dW is left as `Factors`, x and dy, to be added up over micro-batches and
            multiplied once; `factors.multiply_out` does it, `gradients.deferred` says for which layers it pays.
        call: how each layer is called, see `plainly`.
        Allocates the gradients and what the plans of the layers say. Raises ValueError if `saved` is None or was released,
        and for a dy of another shape than y.
        """
        if saved is None:
            raise ValueError("nothing was saved for backward; run forward with train=True")
        if not isinstance(dy, np.ndarray):
            raise TypeError(f"expected dy as a NumPy array, got {type(dy).__name__}")
        if dy.shape != (y_shape := getattr(saved, "y_shape", dy.shape)):
            raise wrong_dy(dy, y_shape)
        grads: Params = {}
        first = self._named[0][0] if self._named else ""
        if dy.dtype.kind == "f" and (dtype := dtype_of(params)) and dtype != dy.dtype:
            dy, overwrite_dy = dy.astype(dtype), True
        for name, layer in reversed(self._named):
            if name not in saved:
                raise ValueError(f"nothing is saved of {name}; a forward pass that was released has no second backward")
            kept = saved.pop(name) if release else saved[name]
            options = {"need_dx": name != first or (need_dx and not release), "overwrite_dy": overwrite_dy}
            if name in defer:
                options["defer"] = True
            dx, own_grads = call(f"{name}, backward", layer.backward, params.get(name, {}), kept, dy, **options)
            # A new dx may be overwritten by the next layer; a view of the caller's dy may not.
            overwrite_dy = overwrite_dy or (dx is not None and not np.may_share_memory(dx, dy))
            dy = dx
            if own_grads:
                grads[name] = own_grads
        return dy, dict(reversed(grads.items()))

    def statistics(self, saved: Params) -> Params:
        """The part of `saved` that `update_buffers` needs, a few bytes; {} for a network without BatchNorm."""
        found = {}
        for name, layer in self._named:
            if hasattr(layer, "statistics"):
                found[name] = layer.statistics(saved[name])
        return found

    def update_buffers(self, params: Params, saved: Params) -> None:
        """Move running statistics towards those of one forward pass, in place. saved: that of forward, or its
        `statistics`."""
        for name, layer in self._named:
            if hasattr(layer, "update_buffers") and name in saved:
                layer.update_buffers(params.get(name, {}), saved[name])


def _checked(in_shape: Shape) -> Shape:
    """A shape as Python's integers: NumPy's would overflow where bytes are multiplied. Raises TypeError and ValueError."""
    try:
        shape = tuple(operator.index(size) for size in in_shape)
    except TypeError:
        example = "the shape of one input without the batch axis, such as (32, 32, 3)"
        raise TypeError(f"in_shape must be {example}, got {in_shape!r}") from None
    if min(shape, default=0) < 0:
        raise ValueError(f"in_shape is {shape}: no size may be below 0")
    return shape
