"""The convolution that most from-scratch packages have: all columns of the batch at once, kept for backward.

It is here to be measured against; the course's own is `dlcourse.layers.Conv2D`, and both give the same numbers.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse.layers import Conv2D
from dlcourse.layers.base import Params
from dlcourse.model import Sequential


@dataclass(frozen=True)
class TextbookConv2D(Conv2D):
    """Conv2D with stride 1 and dilation 1 by one im2col of the whole batch. Keeps the columns: kh·kw times its input."""

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        columns = _columns(x, self.kernel_size, self.padding)
        W, b = params["W"], params["b"]
        y = columns @ W.reshape(-1, self.filters) + b
        return y.reshape(len(x), *self.out_shape(x.shape[1:])), (columns, x) if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        columns, x = saved
        W, rows = params["W"], dy.reshape(-1, self.filters)
        grads = {"W": (columns.T @ rows).reshape(W.shape), "b": rows.sum(axis=0)}
        if not need_dx:
            return None, grads
        (n, h, w, c), (ph, pw), (out_h, out_w) = x.shape, self.padding, dy.shape[1:3]
        dcolumns = (rows @ W.reshape(-1, self.filters).T).reshape(n, out_h, out_w, *self.kernel_size, c)
        padded = np.zeros((n, h + 2 * ph, w + 2 * pw, c), x.dtype)
        for i in range(self.kernel_size[0]):
            for j in range(self.kernel_size[1]):
                padded[:, i : i + out_h, j : j + out_w] += dcolumns[:, :, :, i, j]
        return padded[:, ph : ph + h, pw : pw + w], grads


def _columns(x: np.ndarray, kernel: tuple[int, int], padding: tuple[int, int]) -> np.ndarray:
    padded = np.pad(x, ((0, 0), (padding[0],) * 2, (padding[1],) * 2, (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, kernel, axis=(1, 2))  # (N, H', W', C, kh, kw)
    return windows.transpose(0, 1, 2, 4, 5, 3).reshape(-1, kernel[0] * kernel[1] * x.shape[3])


def textbook(model: Sequential) -> Sequential:
    """The same network with this convolution. Raises ValueError for one with another stride or dilation than 1."""
    layers: list[Any] = list(model.layers)
    for index, layer in enumerate(layers):
        if isinstance(layer, Conv2D):
            if layer.stride != (1, 1) or layer.dilation != (1, 1):
                raise ValueError(f"the textbook convolution has stride 1 and dilation 1, got {layer}")
            layers[index] = TextbookConv2D(layer.filters, layer.kernel_size, padding=layer.padding)
    return Sequential(layers)
