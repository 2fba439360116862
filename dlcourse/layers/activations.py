"""Activations as layers. All keep their shape and have no parameters."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse import kernels
from dlcourse.layers.base import Params, Shape, array_bytes, floats, set_number
from dlcourse.plan import Plan


class _Elementwise:
    """What the five have in common: nothing to initialize, and the shape stays."""

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        return {}

    def out_shape(self, in_shape: Shape) -> Shape:
        return in_shape


@dataclass(frozen=True)
class ReLU(_Elementwise):
    """max(x, 0). Keeps its output, which the next layer keeps anyway, and no mask."""

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        y = kernels.relu(floats(x))
        return y, y if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        return kernels.relu_backward(dy, saved, out=dy if overwrite_dy else None) if need_dx else None, {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        return Plan(saves_output=train, backward_workspace=array_bytes(in_shape, batch, bool), dx_is_dy=True)


@dataclass(frozen=True)
class LeakyReLU(_Elementwise):
    """x where x > 0, else slope · x. Keeps its output."""

    slope: float = 0.01

    def __post_init__(self) -> None:
        set_number(self, "slope", 0, 1)

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        y = kernels.leaky_relu(floats(x), self.slope)
        return y, y if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        if not need_dx:
            return None, {}
        return kernels.leaky_relu_backward(dy, saved, self.slope, out=dy if overwrite_dy else None), {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        return Plan(saves_output=train, backward_workspace=array_bytes(in_shape, batch, bool), dx_is_dy=True)


@dataclass(frozen=True)
class Sigmoid(_Elementwise):
    """1 / (1 + exp(-x)). Keeps its output."""

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        y = kernels.sigmoid(floats(x))
        return y, y if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        return kernels.sigmoid_backward(dy, saved) if need_dx else None, {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        return Plan(saves_output=train)


@dataclass(frozen=True)
class Tanh(_Elementwise):
    """tanh(x). Keeps its output."""

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        y = kernels.tanh(floats(x))
        return y, y if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        return kernels.tanh_backward(dy, saved) if need_dx else None, {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        return Plan(saves_output=train)


@dataclass(frozen=True)
class GELU(_Elementwise):
    """x Φ(x) in its tanh form. Keeps its input: two inputs can have one output."""

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        return kernels.gelu(floats(x)), x if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        return kernels.gelu_backward(dy, saved) if need_dx else None, {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        return Plan(saves_input=train, backward_workspace=array_bytes(in_shape, batch, dtype))
