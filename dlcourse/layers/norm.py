"""BatchNorm and LayerNorm, over the last axis as the channels or the features."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse import kernels
from dlcourse.layers.base import Params, Shape, array_bytes, floats, same_size, set_number
from dlcourse.plan import Plan


@dataclass(frozen=True)
class BatchNorm:
    """Normalizes each channel by the batch's statistics in training and by running ones otherwise.  (…, C) -> (…, C).

    gamma, beta (C,). buffers: mean, var (C,), moved by `momentum` towards each batch's mean and unbiased variance.
    Statistics are those of a micro-batch: cutting a batch differently changes them. Keeps its input.
    """

    momentum: float = 0.1
    eps: float = 1e-5

    def __post_init__(self) -> None:
        set_number(self, "momentum", 0, 1)
        set_number(self, "eps", 1e-12, 1)

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        channels = self.out_shape(in_shape)[-1:]
        running = {"mean": np.zeros(channels, dtype), "var": np.ones(channels, dtype)}
        return {"gamma": np.ones(channels, dtype), "beta": np.zeros(channels, dtype), "buffers": running}

    def out_shape(self, in_shape: Shape) -> Shape:
        if not in_shape:
            raise ValueError("expected inputs with at least one axis beside the batch, got scalars")
        return in_shape

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        gamma, beta = params["gamma"], params["beta"]
        x = floats(x, gamma.dtype)
        same_size("gamma", x.shape[-1], len(gamma), "channels")
        if not train:
            running = params["buffers"]
            return kernels.batch_norm_inference(x, gamma, beta, running["mean"], running["var"], eps=self.eps), None
        count = x.size // x.shape[-1]
        if count < 2:
            raise ValueError(
                f"needs more than one value a channel in training, got an input of shape {x.shape}; "
                "take a larger (micro-)batch"
            )
        y, mean, var = kernels.batch_norm(x, gamma, beta, eps=self.eps)
        return y, {"x": x, "mean": mean, "var": var, "unbiased_var": var * (count / (count - 1))}

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        x, mean, var = saved["x"], saved["mean"], saved["var"]
        dy = floats(dy, x.dtype)
        dx, dgamma, dbeta = kernels.batch_norm_backward(
            dy, x, params["gamma"], mean, var, eps=self.eps, need_dx=need_dx
        )
        return dx, {"gamma": dgamma, "beta": dbeta}

    def statistics(self, saved: Any) -> Any:
        """The part of `saved` that `update_buffers` needs: a few bytes that may outlive the rest."""
        return {"mean": saved["mean"], "unbiased_var": saved["unbiased_var"]}

    def update_buffers(self, params: Params, saved: Any) -> None:
        """Move the running statistics towards those of a batch, in place. `saved` or its `statistics`."""
        for running, found in (("mean", saved["mean"]), ("var", saved["unbiased_var"])):
            params["buffers"][running] += self.momentum * (found - params["buffers"][running])

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        like_x, statistic = array_bytes(in_shape, batch, dtype), array_bytes(in_shape[-1:], 1, dtype)
        return Plan(
            train,
            own=3 * statistic if train else 0,
            forward_workspace=like_x - statistic if train else 2 * statistic,  # unbiased_var comes when x² has gone
            backward_workspace=like_x + 2 * statistic,
        )


@dataclass(frozen=True)
class LayerNorm:
    """Normalizes each position over its last axis, alike in training and evaluation.  (…, D) -> (…, D).
    gamma, beta (D,).  Keeps its input."""

    eps: float = 1e-5

    def __post_init__(self) -> None:
        set_number(self, "eps", 1e-12, 1)

    def init(self, in_shape: Shape, rng: np.random.Generator, dtype: Any = np.float32) -> Params:
        features = self.out_shape(in_shape)[-1:]
        return {"gamma": np.ones(features, dtype), "beta": np.zeros(features, dtype)}

    def out_shape(self, in_shape: Shape) -> Shape:
        if not in_shape:
            raise ValueError("expected inputs with at least one axis beside the batch, got scalars")
        return in_shape

    def forward(
        self, params: Params, x: np.ndarray, *, train: bool = False, rng: np.random.Generator | None = None
    ) -> tuple[np.ndarray, Any]:
        gamma, beta = params["gamma"], params["beta"]
        x = floats(x, gamma.dtype)
        same_size("gamma", x.shape[-1], len(gamma), "features")
        y, mean, var = kernels.layer_norm(x, gamma, beta, eps=self.eps)
        return y, {"x": x, "mean": mean, "var": var} if train else None

    def backward(
        self, params: Params, saved: Any, dy: np.ndarray, *, need_dx: bool = True, overwrite_dy: bool = False
    ) -> tuple[np.ndarray | None, Params]:
        x, mean, var = saved["x"], saved["mean"], saved["var"]
        dy = floats(dy, x.dtype)
        dx, dgamma, dbeta = kernels.layer_norm_backward(
            dy, x, params["gamma"], mean, var, eps=self.eps, need_dx=need_dx
        )
        return dx, {"gamma": dgamma, "beta": dbeta}

    def plan(self, in_shape: Shape, batch: int, dtype: Any, *, train: bool = True) -> Plan:
        like_x = array_bytes(in_shape, batch, dtype)
        statistics = 2 * like_x // in_shape[-1]
        return Plan(
            train,
            own=statistics if train else 0,
            forward_workspace=like_x + (0 if train else statistics),
            backward_workspace=like_x + statistics,
        )
