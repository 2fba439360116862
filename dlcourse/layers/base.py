"""The base of all layers: a layer states facts, and `init`, `forward`, `backward` and `plan` follow from them."""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from dlcourse import tree
from dlcourse.kernels import floats
from dlcourse.plan import Plan

Array = np.ndarray
Shape = tuple[int, ...]
Params = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Weight:
    """A parameter that is not made yet: its shape, and f(rng, shape, dtype) -> array."""

    shape: Shape
    initializer: Callable[..., Array]


class Layer:
    """Configuration and functions; no array. Shapes leave out the batch axis. Five facts make a layer:

    weights(in_shape)         {name: Weight}; those under "buffers" are not trained
    out_shape(in_shape)       raises ValueError if the input does not fit
    keeps                     what backward needs and a neighbour may keep too: the input "x", the output "y", or ""
    apply, gradient           forward and backward by kernels
    workspace                 the bytes that these two allocate besides, as a Plan

    A layer with running state also has `statistics(saved)`, what `update_buffers(params, saved)` needs of it.
    A layer of several inputs takes all their shapes and arrays, one after the other, and gives a tuple of dx.
    """

    keeps: ClassVar[str] = ""
    overwrites_dy: ClassVar[bool] = False  # `gradient` can take dy as `out`
    takes_integers: ClassVar[bool] = False
    draws: Any = False  # whether it draws random numbers in training

    def weights(self, *in_shapes: Shape) -> dict[str, Any]:
        """-> {name: Weight}, in the order in which they are drawn; nested if a key holds several."""
        return {}

    def out_shape(self, *in_shapes: Shape) -> Shape:
        """The shape of y. Raises ValueError if the inputs do not fit."""
        return in_shapes[0]

    def apply(self, *params_and_xs: Any, **options: Any) -> tuple[Any, Params]:
        """(params, x, *, train, rng, out) -> y, in `out` if it is given, and a dict of what is kept besides `keeps`."""
        raise NotImplementedError

    def gradient(self, *params_saved_dy: Any, **options: Any) -> tuple[Any, Params]:
        """(params, saved, dy, *, need_dx, out) -> dx, in `out` if it is given, and a dict of the parameters' gradients."""
        raise NotImplementedError

    def workspace(self, *in_shapes: Shape, **options: Any) -> Plan:
        """(in_shape, *, batch, dtype, train) -> Plan with `own`, the workspaces, and `output_is_input`."""
        return Plan()

    def y_shape(self, saved: Any, dy: Array) -> Shape:
        """The shape with the batch axis that y had, and dy must have, as far as `saved` tells."""
        if not self.keeps:
            return dy.shape
        kept = saved[self.keeps] if isinstance(saved, dict) else saved
        if self.keeps == "y":
            return kept.shape
        if isinstance(kept, tuple):
            return len(kept[0]), *self.out_shape(*[x.shape[1:] for x in kept])
        return len(kept), *self.out_shape(kept.shape[1:])

    def init(self, in_shape: Any, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        """-> new parameters of `dtype` for inputs of `in_shape` (a tuple of shapes for several inputs). Allocates them.
        Raises ValueError if the inputs do not fit."""
        shapes = in_shape if in_shape and isinstance(in_shape[0], tuple) else (in_shape,)
        self.out_shape(*shapes)
        return _drawn(self.weights(*shapes), rng, dtype)

    def forward(
        self, params: Params, *xs: Array, train: bool = False, rng: Any = None, out: Array | None = None
    ) -> tuple[Array, Any]:
        """xs (N, …) -> y (N, …), in `out` if it is given, and saved: None unless `train`, else what backward needs, arrays in
        a dict or the one array. y has the dtype of the parameters; floats of another one are copied in it. Allocates what
        `plan` says. Raises ValueError if a shape does not fit, TypeError for anything but arrays of floats."""
        inputs, shapes, dtype = [], [], dtype_of(params) if params else None
        for x in xs:
            inputs.append(x if self.takes_integers else floats(x, dtype))
            shapes.append(inputs[-1].shape[1:])
        self.out_shape(*shapes)
        if weights := self.weights(*shapes):
            _check(params, weights, shapes)
        y, own = self.apply(params, *inputs, train=train, rng=rng, out=out)
        if not train:
            return y, None
        if self.keeps:
            own = {self.keeps: y if self.keeps == "y" else inputs[0] if len(inputs) == 1 else tuple(inputs)} | own
        return y, own if len(own) > 1 else next(iter(own.values()), None)

    def backward(
        self, params: Params, saved: Any, dy: Array, *, need_dx: bool = True, overwrite_dy: bool = False, **how: Any
    ) -> tuple[Any, Params]:
        """dy like y, `saved` of a forward with `train` -> dx like x (None unless `need_dx`), and gradients with the names and
        shapes of the trained parameters. With `overwrite_dy` dx may be dy, overwritten; else dy is not changed. Allocates
        what `plan` says. Raises ValueError if dy has not the shape of y, TypeError if it is no array of floats."""
        if saved is None and self.keeps:
            raise ValueError("nothing was saved for backward; run forward with train=True")
        dy = floats(dy, dtype_of(params) if params else None)
        if dy.shape != (expected := self.y_shape(saved, dy)):
            raise wrong_dy(dy, expected)
        if overwrite_dy and self.overwrites_dy:
            how["out"] = dy
        return self.gradient(params, saved, dy, need_dx=need_dx, **how)

    def plan(self, *in_shapes: Shape, batch: int | None, dtype: Any, train: bool = True) -> Plan:
        """The bytes for a batch of so many inputs; with `batch=None` the shapes have their batch axis. Allocates nothing."""
        shapes = [tuple(map(operator.index, shape)) for shape in in_shapes]  # NumPy's small integers overflow
        batch = None if batch is None else operator.index(batch)
        facts = self.workspace(*shapes, batch=batch, dtype=np.dtype(dtype), train=train)
        inputs = tuple(range(len(in_shapes))) if train and self.keeps == "x" else ()
        return replace(
            facts,
            saves_inputs=inputs,
            saves_output=train and self.keeps == "y",
            own=facts.own if train else 0,
            dx_is_dy=self.overwrites_dy or facts.output_is_input,
        )


def _drawn(weights: dict[str, Any], rng: np.random.Generator, dtype: Any) -> Params:
    return {
        name: _drawn(weight, rng, dtype) if isinstance(weight, dict) else weight.initializer(rng, weight.shape, dtype)
        for name, weight in weights.items()
    }


def _check(params: Params, weights: dict[str, Any], in_shapes: list[Shape]) -> None:
    """Raise ValueError if a parameter has not the shape that the layer gives it for these inputs."""
    for name, weight in weights.items():
        if isinstance(weight, dict):
            _check(params[name], weight, in_shapes)
        elif params[name].shape != weight.shape:
            given = " and ".join(map(str, in_shapes))
            found = f"{name} has shape {params[name].shape}; an input of shape {given} needs {weight.shape}"
            raise ValueError(f"{found}: parameters of another network?")


def wrong_dy(dy: Array, y_shape: Shape) -> ValueError:
    """The error for an upstream gradient of another shape than the output."""
    return ValueError(f"dy has shape {dy.shape}; y has {y_shape}, and its gradient must have the same")


def dtype_of(params: Params) -> np.dtype | None:
    """That of the first parameter; None if there is none."""
    first = next(iter(tree.flatten(params).values()), None)
    return None if first is None else first.dtype


def array_bytes(shape: Shape, batch: int | None, dtype: Any) -> int:
    """Bytes of a batch of arrays of `shape`, or with `batch=None` of one."""
    return (1 if batch is None else batch) * math.prod(shape) * np.dtype(dtype).itemsize
