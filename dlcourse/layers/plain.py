"""The layers of one input and without inner layers. Which kernel, which parameters, what is kept, how many bytes."""

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcourse import kernels
from dlcourse.factors import Factors
from dlcourse.initializers import Initializer, he, ones, zeros
from dlcourse.layers.base import Array, Layer, Params, Shape, Weight, array_bytes
from dlcourse.layers.checks import SHAPE_BYTES, at_least_one_axis, out_hw, set_integer, set_number, set_pairs
from dlcourse.plan import Plan

Result = tuple[Any, Params]
Sizes = Any  # one integer or (height, width); stored as the two


@dataclass(frozen=True)
class ReLU(Layer):
    """max(x, 0). Keeps its output, which the next layer keeps anyway, and no mask: write to y, and the gradient is wrong."""

    keeps = "y"
    overwrites_dy = True

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        return kernels.relu(x, out=out), {}

    def gradient(self, params: Params, y: Array, dy: Array, **how: Any) -> Result:
        return kernels.relu_backward(dy, y, **how), {}

    def workspace(self, in_shape: Shape, *, batch: int | None, **_: Any) -> Plan:
        return Plan(backward_workspace=array_bytes(in_shape, batch, bool))


@dataclass(frozen=True)
class LeakyReLU(ReLU):
    """x if x > 0, else slope · x. Keeps its output: write to y, and the gradient is wrong."""

    slope: float = 0.01

    def __post_init__(self) -> None:
        set_number(self, "slope", 0, 1)

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        return kernels.leaky_relu(x, slope=self.slope, out=out), {}

    def gradient(self, params: Params, y: Array, dy: Array, **how: Any) -> Result:
        return kernels.leaky_relu_backward(dy, y, slope=self.slope, **how), {}


@dataclass(frozen=True)
class Sigmoid(Layer):
    """1 / (1 + exp(-x)). Keeps its output, the very array that it returns: write to y, and the gradient is wrong."""

    keeps = "y"

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        return kernels.sigmoid(x, out=out), {}

    def gradient(self, params: Params, y: Array, dy: Array, **how: Any) -> Result:
        return kernels.sigmoid_backward(dy, y, **how), {}


@dataclass(frozen=True)
class Tanh(Layer):
    """tanh(x). Keeps its output, the very array that it returns: write to y, and the gradient is wrong."""

    keeps = "y"

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        return kernels.tanh(x, out=out), {}

    def gradient(self, params: Params, y: Array, dy: Array, **how: Any) -> Result:
        return kernels.tanh_backward(dy, y, **how), {}


@dataclass(frozen=True)
class GELU(Layer):
    """x Φ(x) in its tanh form. Keeps its input: two inputs can have one output."""

    keeps = "x"

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        return kernels.gelu(x, out=out), {}

    def gradient(self, params: Params, x: Array, dy: Array, **how: Any) -> Result:
        return kernels.gelu_backward(dy, x, **how), {}

    def workspace(self, in_shape: Shape, *, batch: int | None, dtype: Any, **_: Any) -> Plan:
        return Plan(backward_workspace=array_bytes(in_shape, batch, dtype))


@dataclass(frozen=True)
class Affine(Layer):
    """y = x W + b on the last axis.  (…, D_in) -> (…, units).  W (D_in, units), b (units,).  Keeps its input."""

    keeps = "x"
    units: int
    init_W: Initializer = field(default=he, repr=False)

    def __post_init__(self) -> None:
        set_integer(self, "units", 1)

    def weights(self, in_shape: Shape) -> dict[str, Weight]:
        return {"W": Weight((in_shape[-1], self.units), self.init_W), "b": Weight((self.units,), zeros)}

    def out_shape(self, in_shape: Shape) -> Shape:
        if len(in_shape) == 3:
            raise ValueError(f"got images of shape {in_shape}; put Flatten() before it")
        return (*at_least_one_axis(in_shape)[:-1], self.units)

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        return kernels.affine(x, params["W"], params["b"], out=out), {}

    def gradient(self, params: Params, x: Array, dy: Array, *, defer: bool = False, **how: Any) -> Result:
        """defer: dW is left as `Factors`, which hold x and dy."""
        if not defer:
            dx, dW, db = kernels.affine_backward(dy, x, params["W"], **how)
            return dx, {"W": dW, "b": db}
        dx = dy @ params["W"].T if how["need_dx"] else None
        rows, drows = x.reshape(-1, x.shape[-1]), dy.reshape(-1, self.units)
        return dx, {"W": Factors(((rows, drows),)), "b": kernels.sum_rows(drows)}


@dataclass(frozen=True)
class Flatten(Layer):
    """All axes but the batch as one; a view, no bytes.  (H, W, C) -> (H·W·C,).  Integers pass too."""

    takes_integers = True

    def out_shape(self, in_shape: Shape) -> Shape:
        return (math.prod(in_shape),)

    def apply(self, params: Params, x: Array, **_: Any) -> Result:
        return x.reshape(len(x), -1), {"shape": np.array(x.shape[1:], np.int64)}  # `saved` holds arrays only

    def gradient(self, params: Params, shape: Array, dy: Array, *, need_dx: bool, **_: Any) -> Result:
        return dy.reshape(len(dy), *shape) if need_dx else None, {}

    def y_shape(self, saved: Array, dy: Array) -> Shape:
        return (*dy.shape[:1], math.prod(saved.tolist()))

    def workspace(self, in_shape: Shape, **_: Any) -> Plan:
        return Plan(own=8 * len(in_shape), output_is_input=True)


@dataclass(frozen=True)
class Dropout(Layer):
    """In training, each element is 0 with probability `rate` and 1/(1 - rate) times itself otherwise; else identity.
    Keeps a byte an element."""

    overwrites_dy = True
    rate: float = 0.5

    def __post_init__(self) -> None:
        set_number(self, "rate", 0, 1, open_end=True)

    @property
    def draws(self) -> bool:
        """Unless nothing is ever dropped."""
        return self.rate > 0

    def apply(self, params: Params, x: Array, *, train: bool, rng: Any, out: Array | None = None) -> Result:
        if not train or self.rate == 0:
            return x, {}
        if not isinstance(rng, np.random.Generator):
            found = type(rng).__name__
            raise (ValueError if rng is None else TypeError)(f"needs rng=numpy.random.default_rng(seed), got {found}")
        y, keep = kernels.dropout(x, rate=self.rate, rng=rng, out=out)
        return y, {"keep": keep}

    def gradient(self, params: Params, keep: Array | None, dy: Array, *, need_dx: bool, **how: Any) -> Result:
        if not need_dx or keep is None:
            return dy if need_dx else None, {}
        return kernels.dropout_backward(dy, keep, rate=self.rate, **how), {}

    def y_shape(self, saved: Array | None, dy: Array) -> Shape:
        return dy.shape if saved is None else saved.shape

    def workspace(self, in_shape: Shape, *, batch: int | None, dtype: Any, train: bool) -> Plan:
        if not train or self.rate == 0:
            return Plan(output_is_input=True)
        draws = array_bytes(in_shape, batch, np.float32) - array_bytes(in_shape, batch, dtype)  # freed before y is made
        return Plan(own=array_bytes(in_shape, batch, bool), forward_workspace=max(0, draws))


@dataclass(frozen=True)
class Conv2D(Layer):
    """Convolution.  (H, W, C) -> (H', W', filters), H' = (H + 2·padding - dilation·(kernel - 1) - 1) // stride + 1.
    W (kh, kw, C, filters), b (filters,).  Sizes are one integer or (height, width).  Keeps its input.
    strip: the bytes of its columns at a time, see `kernels.conv2d`; None: about 1 MiB, and at least one image's."""

    keeps = "x"
    filters: int
    kernel_size: Sizes
    stride: Sizes = 1
    padding: Sizes = 0
    dilation: Sizes = 1
    init_W: Initializer = field(default=he, repr=False)
    strip: int | None = None

    def __post_init__(self) -> None:
        set_integer(self, "filters", 1)
        if self.strip is not None:
            set_integer(self, "strip", 1)
        set_pairs(self, kernel_size=1, stride=1, padding=0, dilation=1)

    @property
    def _window(self) -> dict[str, Any]:
        return {"stride": self.stride, "padding": self.padding, "dilation": self.dilation}

    def weights(self, in_shape: Shape) -> dict[str, Weight]:
        W = (*self.kernel_size, in_shape[2], self.filters)
        return {"W": Weight(W, self.init_W), "b": Weight((self.filters,), zeros)}

    def out_shape(self, in_shape: Shape) -> Shape:
        return (*out_hw(in_shape, self.kernel_size, **self._window), self.filters)

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        return kernels.conv2d(x, params["W"], params["b"], **self._window, strip=self.strip, out=out), {}

    def gradient(self, params: Params, x: Array, dy: Array, **how: Any) -> Result:
        dx, dW, db = kernels.conv2d_backward(dy, x, params["W"], **self._window, strip=self.strip, **how)
        return dx, {"W": dW, "b": db}

    def workspace(self, in_shape: Shape, *, batch: int, dtype: Any, **_: Any) -> Plan:
        (h, w, c), itemsize = in_shape, np.dtype(dtype).itemsize
        out_h, out_w, filters = self.out_shape(in_shape)
        window = {"kernel": self.kernel_size, **self._window, "strip": self.strip}
        of_x = kernels.padded_windows((h, w), **window).nbytes(batch, c, itemsize)
        of_dy = kernels.transposed_windows((h, w), (out_h, out_w), **window).nbytes(batch, filters, itemsize)
        of_x_and_dW = of_x + array_bytes((*self.kernel_size, c, filters), 1, dtype)
        most = max(of_x_and_dW, of_dy)
        return Plan(forward_workspace=of_x, backward_workspace=most, first_backward_workspace=of_x_and_dW)


@dataclass(frozen=True)
class _Pool(Layer):
    """Window sizes of the two poolings. The stride is the kernel unless it is given."""

    kernel_size: Sizes
    stride: Sizes = None
    padding: Sizes = 0

    def __post_init__(self) -> None:
        if self.stride is None:
            object.__setattr__(self, "stride", self.kernel_size)
        set_pairs(self, kernel_size=1, stride=1, padding=0)
        if any(2 * p > k for p, k in zip(self.padding, self.kernel_size, strict=True)):
            found = f"{type(self).__name__}: padding {self.padding} is more than half of kernel_size {self.kernel_size}"
            raise ValueError(f"{found}: some windows would hold padding alone; take less padding")

    @property
    def _window(self) -> dict[str, Any]:
        return {"kernel": self.kernel_size, "stride": self.stride, "padding": self.padding}

    def out_shape(self, in_shape: Shape) -> Shape:
        return (*out_hw(in_shape, self.kernel_size, self.stride, self.padding), in_shape[2])


@dataclass(frozen=True)
class MaxPool2D(_Pool):
    """The largest of each window.  (H, W, C) -> (H', W', C).  Padding counts as -∞. Keeps an index of one byte an output
    element, and not its input."""

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        y, index = kernels.max_pool2d(x, **self._window, out=out)
        return y, {"index": index, "in_hw": np.array(x.shape[1:3], np.int64)}

    def gradient(self, params: Params, saved: Any, dy: Array, **how: Any) -> Result:
        in_hw = tuple(saved["in_hw"])
        return kernels.max_pool2d_backward(dy, saved["index"], in_hw=in_hw, **self._window, **how), {}

    def y_shape(self, saved: Any, dy: Array) -> Shape:
        return saved["index"].shape

    def workspace(self, in_shape: Shape, *, batch: int | None, dtype: Any, train: bool) -> Plan:
        out_shape = self.out_shape(in_shape)
        index = array_bytes(out_shape, batch, kernels.index_dtype(self.kernel_size))
        mask = array_bytes(out_shape, batch, bool)
        # Two byte masks are alive at once; if windows overlap, one mask and one product.
        product = array_bytes(out_shape, batch, dtype) if kernels.overlapping(self.kernel_size, self.stride) else mask
        forward = mask + index + (0 if train else index)
        return Plan(own=index + SHAPE_BYTES, forward_workspace=forward, backward_workspace=mask + product)


@dataclass(frozen=True)
class AvgPool2D(_Pool):
    """The mean of each window.  (H, W, C) -> (H', W', C).  Padding counts as zeros, or not at all with
    `count_padding=False`. Keeps nothing but its input's height and width."""

    count_padding: bool = True

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        y = kernels.avg_pool2d(x, **self._window, count_padding=self.count_padding, out=out)
        return y, {"in_hw": np.array(x.shape[1:3], np.int64)}

    def gradient(self, params: Params, in_hw: Array, dy: Array, **how: Any) -> Result:
        options = {**self._window, "count_padding": self.count_padding, **how}
        return kernels.avg_pool2d_backward(dy, in_hw=tuple(in_hw), **options), {}

    def y_shape(self, saved: Array, dy: Array) -> Shape:
        return (*dy.shape[:1], *self.out_shape((*saved.tolist(), 1))[:2], *dy.shape[-1:])

    def workspace(self, in_shape: Shape, *, batch: int | None, dtype: Any, **_: Any) -> Plan:
        out_shape = self.out_shape(in_shape)
        share, counts = array_bytes(out_shape, batch, dtype), array_bytes(out_shape[:2], 1, dtype)
        forward = 0 if self.count_padding else counts
        return Plan(own=SHAPE_BYTES, forward_workspace=forward, backward_workspace=share)


class _Norm(Layer):
    """What the two normalizations share: gamma and beta on the last axis, and that they keep their input."""

    keeps = "x"
    eps: float
    backward_kernel: Callable[..., Any]

    def __post_init__(self) -> None:
        set_number(self, "eps", 1e-12, 1)

    def weights(self, in_shape: Shape) -> dict[str, Any]:
        return {"gamma": Weight(in_shape[-1:], ones), "beta": Weight(in_shape[-1:], zeros)}

    def out_shape(self, in_shape: Shape) -> Shape:
        return at_least_one_axis(in_shape)

    def gradient(self, params: Params, saved: Any, dy: Array, **how: Any) -> Result:
        statistics = saved["mean"], saved["var"]
        dx, dgamma, dbeta = self.backward_kernel(dy, saved["x"], params["gamma"], *statistics, eps=self.eps, **how)
        return dx, {"gamma": dgamma, "beta": dbeta}


@dataclass(frozen=True)
class BatchNorm(_Norm):
    """Normalizes each channel by the batch's statistics in training and by running ones otherwise.  (…, C) -> (…, C).

    gamma, beta (C,). buffers: mean, var (C,), moved by `momentum` towards each batch's mean and unbiased variance.
    Statistics are those of a micro-batch: cutting a batch differently changes them. Keeps its input.
    """

    backward_kernel = staticmethod(kernels.batch_norm_backward)
    momentum: float = 0.1
    eps: float = 1e-5

    def __post_init__(self) -> None:
        set_number(self, "momentum", 0, 1)
        super().__post_init__()

    def weights(self, in_shape: Shape) -> dict[str, Any]:
        running = {"mean": Weight(in_shape[-1:], zeros), "var": Weight(in_shape[-1:], ones)}
        return {**super().weights(in_shape), "buffers": running}

    def apply(self, params: Params, x: Array, *, train: bool, out: Array | None = None, **_: Any) -> Result:
        gamma, beta, running = params["gamma"], params["beta"], params["buffers"]
        if not train:
            return kernels.batch_norm_inference(x, gamma, beta, **running, eps=self.eps, out=out), {}
        count = x.size // x.shape[-1]
        if count < 2:
            needed = "needs more than one value a channel in training"
            raise ValueError(f"{needed}, got an input of shape {x.shape}; take a larger (micro-)batch")
        y, mean, var = kernels.batch_norm(x, gamma, beta, eps=self.eps, out=out)
        return y, {"mean": mean, "var": var, "unbiased_var": var * (count / (count - 1))}

    def statistics(self, saved: Any) -> Any:
        return {"mean": saved["mean"], "unbiased_var": saved["unbiased_var"]}

    def update_buffers(self, params: Params, saved: Any) -> None:
        """Move the running statistics towards those of a batch, in place. `saved` or its `statistics`."""
        for running, found in (("mean", saved["mean"]), ("var", saved["unbiased_var"])):
            params["buffers"][running] += self.momentum * (found - params["buffers"][running])

    def workspace(self, in_shape: Shape, *, batch: int | None, dtype: Any, train: bool) -> Plan:
        like_x, statistic = array_bytes(in_shape, batch, dtype), array_bytes(in_shape[-1:], 1, dtype)
        forward = like_x - statistic if train else 2 * statistic  # x² is freed before unbiased_var is made
        return Plan(own=3 * statistic, forward_workspace=forward, backward_workspace=like_x + 2 * statistic)


@dataclass(frozen=True)
class LayerNorm(_Norm):
    """Normalizes each position over its last axis, alike in training and evaluation.  (…, D) -> (…, D).
    gamma, beta (D,).  Keeps its input."""

    backward_kernel = staticmethod(kernels.layer_norm_backward)
    eps: float = 1e-5

    def apply(self, params: Params, x: Array, *, out: Array | None = None, **_: Any) -> Result:
        y, mean, var = kernels.layer_norm(x, params["gamma"], params["beta"], eps=self.eps, out=out)
        return y, {"mean": mean, "var": var}

    def workspace(self, in_shape: Shape, *, batch: int | None, dtype: Any, train: bool) -> Plan:
        like_x = array_bytes(in_shape, batch, dtype)
        both = 2 * like_x // in_shape[-1]  # mean and var
        return Plan(own=both, forward_workspace=like_x + (0 if train else both), backward_workspace=like_x + both)
