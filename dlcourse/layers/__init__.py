"""Layers: configuration in a frozen dataclass, and functions. A layer holds no array.

Every layer has the same five methods; shapes leave out the batch axis.

    init(in_shape, rng, dtype) -> params             a dict of arrays, empty where there is nothing to train
    out_shape(in_shape) -> shape                     raises ValueError where the input does not fit
    forward(params, x, *, train=False, rng=None) -> (y, saved)       saved is None unless train
    backward(params, saved, dy, *, need_dx=True, overwrite_dy=False) -> (dx, grads)
    plan(in_shape, batch, dtype, *, train=True) -> Plan              the same facts, in bytes

`saved` is arrays in dicts, lists and tuples, nothing else. `backward` changes `dy` only where `overwrite_dy`.
A layer with running state also has `update_buffers(params, saved)` and keeps that state under params["buffers"].
"""

from dlcourse.layers.activations import GELU, LeakyReLU, ReLU, Sigmoid, Tanh
from dlcourse.layers.base import Layer
from dlcourse.layers.dense import Affine, Dropout, Flatten
from dlcourse.layers.images import AvgPool2D, Conv2D, MaxPool2D
from dlcourse.layers.norm import BatchNorm, LayerNorm

__all__ = [
    "GELU",
    "Affine",
    "AvgPool2D",
    "BatchNorm",
    "Conv2D",
    "Dropout",
    "Flatten",
    "Layer",
    "LayerNorm",
    "LeakyReLU",
    "MaxPool2D",
    "ReLU",
    "Sigmoid",
    "Tanh",
]
