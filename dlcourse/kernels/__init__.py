"""Pure functions in forward/backward pairs: arrays in, arrays out. No class, no state, no input or output.

A kernel is `f(x, W, b, *, stride=…, out=None) -> y` or `(y, kept)`; its backward is `f_backward(dy, …what it needs…,
*, need_dx=True)`. Everything that one allocates stands in its docstring.
"""

from dlcourse.kernels.activations import (
    gelu,
    gelu_backward,
    leaky_relu,
    leaky_relu_backward,
    relu,
    relu_backward,
    sigmoid,
    sigmoid_backward,
    tanh,
    tanh_backward,
)
from dlcourse.kernels.affine import affine, affine_backward
from dlcourse.kernels.conv import conv2d, conv2d_backward, padded_windows, spread_windows
from dlcourse.kernels.dropout import dropout, dropout_backward
from dlcourse.kernels.norm import (
    batch_norm,
    batch_norm_backward,
    batch_norm_inference,
    layer_norm,
    layer_norm_backward,
)
from dlcourse.kernels.pool import (
    avg_pool2d,
    avg_pool2d_backward,
    index_dtype,
    max_pool2d,
    max_pool2d_backward,
    overlapping,
)
from dlcourse.kernels.windows import out_size

__all__ = [
    "affine",
    "affine_backward",
    "avg_pool2d",
    "avg_pool2d_backward",
    "batch_norm",
    "batch_norm_backward",
    "batch_norm_inference",
    "conv2d",
    "conv2d_backward",
    "dropout",
    "dropout_backward",
    "gelu",
    "gelu_backward",
    "index_dtype",
    "layer_norm",
    "layer_norm_backward",
    "leaky_relu",
    "leaky_relu_backward",
    "max_pool2d",
    "max_pool2d_backward",
    "out_size",
    "overlapping",
    "padded_windows",
    "relu",
    "relu_backward",
    "sigmoid",
    "sigmoid_backward",
    "spread_windows",
    "tanh",
    "tanh_backward",
]
