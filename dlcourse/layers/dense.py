"""Affine, Flatten, Dropout."""

import math
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcourse import kernels
from dlcourse.factors import Factors
from dlcourse.initializers import Initializer, he
from dlcourse.layers.base import (
    Params,
    Shape,
    array_bytes,
    floats,
    has_shape,
    same_size,
    set_integer,
    set_number,
    shape_array,
)
from dlcourse.plan import Plan


@dataclass(frozen=True)
class Affine:
    """y = x W + b on the last axis.  (…, D_in) -> (…, units).  W (D_in, units), b (units,)."""

    units: int
    weights: Initializer = field(default=he, repr=False)

    def __post_init__(self) -> None:
        set_integer(self, "units", 1)

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        self.out_shape(in_shape)
        return {"W": self.weights(rng, (in_shape[-1], self.units), dtype), "b": np.zeros(self.units, dtype)}

    def out_shape(self, in_shape: Shape) -> Shape:
        if len(in_shape) == 3:
            raise ValueError(f"got images of shape {in_shape}; put Flatten() before it")
        if not in_shape:
            raise ValueError("expected inputs with at least one axis beside the batch, got scalars")
        return (*in_shape[:-1], self.units)

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        x = floats(x, params["W"].dtype)
        self.out_shape(x.shape[1:])
        same_size("W", x.shape[-1], params["W"].shape[0], "features")
        has_shape("W", params["W"], (x.shape[-1], self.units))
        return kernels.affine(x, params["W"], params["b"]), x if train else None

    def backward(
        self,
        params: Params,
        saved: Any,
        dy: np.ndarray,
        *,
        need_dx: bool = True,
        overwrite_dy: bool = False,
        defer: bool = False,
    ) -> tuple[np.ndarray | None, Params]:
        """defer: dW is left as `Factors`, which hold x and dy; so dy is not written over."""
        dy = floats(dy, saved.dtype)
        if defer:
            dx = dy @ params["W"].T if need_dx else None
            rows, drows = saved.reshape(-1, saved.shape[-1]), dy.reshape(-1, self.units)
            return dx, {"W": Factors(((rows, drows),)), "b": drows.sum(axis=0)}
        dx, dW, db = kernels.affine_backward(dy, saved, params["W"], need_dx=need_dx)
        return dx, {"W": dW, "b": db}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        return Plan(saves_input=train)


@dataclass(frozen=True)
class Flatten:
    """All axes but the batch as one; a view, no bytes.  (H, W, C) -> (H·W·C,)."""

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        return {}

    def out_shape(self, in_shape: Shape) -> Shape:
        return (math.prod(in_shape),)

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        return x.reshape(len(x), -1), shape_array(x.shape[1:]) if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        return dy.reshape(len(dy), *saved) if need_dx else None, {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        return Plan(own=8 * len(in_shape) if train else 0, output_is_input=True, dx_is_dy=True)


@dataclass(frozen=True)
class Dropout:
    """In training, each element is 0 with probability `rate` and 1/(1 - rate) times itself otherwise; else identity."""

    rate: float = 0.5

    def __post_init__(self) -> None:
        set_number(self, "rate", 0, 1, open_end=True)

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        return {}

    def out_shape(self, in_shape: Shape) -> Shape:
        return in_shape

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        if not train or self.rate == 0:
            return x, None
        if rng is None:
            raise ValueError("needs rng=numpy.random.default_rng(seed) in training: it draws which elements to drop")
        if not isinstance(rng, np.random.Generator):
            raise TypeError(f"needs rng=numpy.random.default_rng(seed), got {type(rng).__name__}")
        return kernels.dropout(floats(x), self.rate, rng)

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        if not need_dx or saved is None:
            return dy if need_dx else None, {}
        return kernels.dropout_backward(dy, saved, self.rate, out=dy if overwrite_dy else None), {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        if not train or self.rate == 0:
            return Plan(output_is_input=True, dx_is_dy=True)
        draws = array_bytes(in_shape, batch, np.float32) - array_bytes(in_shape, batch, dtype)  # gone before y is made
        return Plan(own=array_bytes(in_shape, batch, bool), forward_workspace=max(0, draws), dx_is_dy=True)
