"""Layers: configuration in a frozen dataclass, and functions. A layer holds no array.

Every layer has the same five methods; shapes leave out the batch axis. `Layer` makes four of them from facts; a class of
one's own that has the five is a layer as well.

    init(in_shape, rng, dtype) -> params             a dict of arrays, empty if there is nothing to train
    out_shape(in_shape) -> shape                     raises ValueError if the input does not fit
    forward(params, x, *, train=False, rng=None) -> (y, saved)       saved is None unless train
    backward(params, saved, dy, *, need_dx=True, overwrite_dy=False) -> (dx, grads)
    plan(in_shape, batch, dtype, *, train=True) -> Plan              the same facts, in bytes; called with batch= and dtype=

`saved` is arrays in dicts, lists and tuples, nothing else. `backward` changes `dy` only with `overwrite_dy`.
A layer with running state also has `statistics(saved)` and `update_buffers(params, saved)`, and keeps that state under
params["buffers"]. A layer of several inputs takes their shapes and arrays one after the other, and gives a tuple of dx.
"""

from dlcourse.layers.base import Layer, Weight
from dlcourse.layers.blocks import Recompute
from dlcourse.layers.packed import Packed
from dlcourse.layers.plain import (
    GELU,
    Affine,
    AvgPool2D,
    BatchNorm,
    Conv2D,
    Dropout,
    Flatten,
    LayerNorm,
    LeakyReLU,
    MaxPool2D,
    ReLU,
    Sigmoid,
    Tanh,
)
