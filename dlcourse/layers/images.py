"""Conv2D, MaxPool2D, AvgPool2D: layers over images (H, W, C)."""

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcourse import kernels
from dlcourse.initializers import Initializer, he
from dlcourse.layers.base import (
    Params,
    Shape,
    array_bytes,
    floats,
    has_shape,
    images,
    same_size,
    set_integer,
    set_pair,
    shape_array,
)
from dlcourse.plan import Plan

SHAPE_BYTES = 16  # (height, width) of a pooling's input, kept for its backward: two 8-byte integers

IntOrPair = Any  # one integer or (height, width); stored as the two


def _out_hw(in_shape: Shape, kernel: Any, stride: Any, padding: Any, dilation: Any) -> tuple[int, int]:
    """Places of the window along height and width; ValueError where it does not fit once."""
    h, w, _ = images(in_shape)
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    padded = (h + 2 * padding[0], w + 2 * padding[1])
    if reach[0] > padded[0] or reach[1] > padded[1]:
        spread = "" if tuple(dilation) == (1, 1) else f" with dilation {dilation} reaches over {tuple(reach)}, which"
        size = kernel[0] if kernel[0] == kernel[1] else tuple(kernel)
        raise ValueError(
            f"kernel_size {size}{spread} is larger than the padded input {padded}; add padding or take a smaller kernel"
        )
    height, width = map(kernels.out_size, (h, w), kernel, stride, padding, dilation)
    return height, width


@dataclass(frozen=True)
class Conv2D:
    """Convolution.  (H, W, C) -> (H', W', filters), H' = (H + 2·padding - dilation·(kernel - 1) - 1) // stride + 1.
    W (kh, kw, C, filters), b (filters,).  Sizes are one integer or (height, width).  Keeps its input."""

    filters: int
    kernel_size: IntOrPair
    stride: IntOrPair = 1
    padding: IntOrPair = 0
    dilation: IntOrPair = 1
    weights: Initializer = field(default=he, repr=False)

    def __post_init__(self) -> None:
        set_integer(self, "filters", 1)
        set_pair(self, "kernel_size", 1)
        set_pair(self, "stride", 1)
        set_pair(self, "padding", 0)
        set_pair(self, "dilation", 1)

    @property
    def _window(self) -> dict[str, Any]:
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        shape = (*self.kernel_size, images(in_shape)[2], self.filters)
        return {"W": self.weights(rng, shape, dtype), "b": np.zeros(self.filters, dtype)}

    def out_shape(self, in_shape: Shape) -> Shape:
        return (*_out_hw(in_shape, self.kernel_size, self.stride, self.padding, self.dilation), self.filters)

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        x = floats(x, params["W"].dtype)
        self.out_shape(x.shape[1:])
        same_size("W", x.shape[3], params["W"].shape[2], "channels")
        has_shape("W", params["W"], (*self.kernel_size, x.shape[3], self.filters))
        return kernels.conv2d(x, params["W"], params["b"], **self._window), x if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        dy = floats(dy, saved.dtype)
        dx, dW, db = kernels.conv2d_backward(dy, saved, params["W"], **self._window, need_dx=need_dx)
        return dx, {"W": dW, "b": db}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        (h, w, c), itemsize = in_shape, np.dtype(dtype).itemsize
        out_h, out_w, filters = self.out_shape(in_shape)
        window = {"kernel": self.kernel_size, **self._window}
        of_x = kernels.padded_windows((h, w), **window).nbytes(batch, c, itemsize)
        of_dy = kernels.spread_windows((h, w), (out_h, out_w), **window).nbytes(batch, filters, itemsize)
        dW = array_bytes((*self.kernel_size, c, filters), 1, dtype)
        return Plan(
            saves_input=train,
            forward_workspace=of_x,
            backward_workspace=max(of_x + dW, of_dy),
            first_backward_workspace=of_x + dW,
        )


@dataclass(frozen=True)
class _Pool:
    """Window sizes of the two poolings. The stride is the kernel unless it is given."""

    kernel_size: IntOrPair
    stride: IntOrPair = None
    padding: IntOrPair = 0

    def __post_init__(self) -> None:
        if self.stride is None:
            object.__setattr__(self, "stride", self.kernel_size)
        set_pair(self, "kernel_size", 1)
        set_pair(self, "stride", 1)
        set_pair(self, "padding", 0)
        if any(2 * p > k for p, k in zip(self.padding, self.kernel_size, strict=True)):
            raise ValueError(
                f"{type(self).__name__}: padding {self.padding} is more than half of kernel_size {self.kernel_size}: "
                "some windows would hold padding alone; take less padding"
            )

    @property
    def _window(self) -> dict[str, Any]:
        return {"kernel": self.kernel_size, "stride": self.stride, "padding": self.padding}

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        return {}

    def out_shape(self, in_shape: Shape) -> Shape:
        return (*_out_hw(in_shape, self.kernel_size, self.stride, self.padding, (1, 1)), in_shape[2])


@dataclass(frozen=True)
class MaxPool2D(_Pool):
    """The largest of each window.  (H, W, C) -> (H', W', C).  Padding counts as -∞. Keeps an index of one byte an output
    element, and not its input."""

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        self.out_shape(floats(x).shape[1:])
        y, index = kernels.max_pool2d(x, **self._window)
        return y, {"index": index, "in_hw": shape_array(x.shape[1:3])} if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        if not need_dx:
            return None, {}
        in_hw = tuple(saved["in_hw"])
        return kernels.max_pool2d_backward(dy, saved["index"], in_hw=in_hw, **self._window), {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        out_shape = self.out_shape(in_shape)
        index = array_bytes(out_shape, batch, kernels.index_dtype(self.kernel_size))
        mask = array_bytes(out_shape, batch, bool)
        # Each tap makes its mask while the one before still stands, or then spreads dy over it.
        product = array_bytes(out_shape, batch, dtype) if kernels.overlapping(self.kernel_size, self.stride) else mask
        return Plan(
            own=index + SHAPE_BYTES if train else 0,
            forward_workspace=mask + index + (0 if train else index),
            backward_workspace=mask + product,
        )


@dataclass(frozen=True)
class AvgPool2D(_Pool):
    """The mean of each window.  (H, W, C) -> (H', W', C).  Padding counts as zeros, or not at all with
    `count_padding=False`. Keeps nothing."""

    count_padding: bool = True

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        self.out_shape(floats(x).shape[1:])
        y = kernels.avg_pool2d(x, **self._window, count_padding=self.count_padding)
        return y, shape_array(x.shape[1:3]) if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        if not need_dx:
            return None, {}
        in_hw = tuple(saved)
        return kernels.avg_pool2d_backward(dy, in_hw=in_hw, **self._window, count_padding=self.count_padding), {}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        out_shape = self.out_shape(in_shape)
        counts = 0 if self.count_padding else array_bytes(out_shape[:2], 1, dtype)
        return Plan(
            own=SHAPE_BYTES if train else 0,
            forward_workspace=counts,
            backward_workspace=array_bytes(out_shape, batch, dtype),
        )
