"""Initializers: f(rng, shape, dtype) -> a new array of weights.

The last axis of a weight is what it gives and all axes before are what it takes, as in (D_in, D_out) and
(kh, kw, C_in, C_out). So fan_in, the number of inputs that are summed into one output, is the product of all axes but
the last; fan_out, the number of outputs that one input goes to, is the product of all axes but the last but one.

Each draws in `dtype` itself: nothing is allocated but the result. For another setting use functools.partial:
`partial(normal, std=0.02)`.
"""

import math
from collections.abc import Callable
from typing import Any

import numpy as np

Initializer = Callable[..., np.ndarray]  # (rng, shape, dtype) -> a new array


def he(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Normal, mean 0, standard deviation sqrt(2 / fan_in): keeps the size of activations through ReLU (He et al. 2015).

    Raises ValueError where shape has fewer than two axes or one of size 0, TypeError for another rng or dtype.
    """
    fan_in, _ = fans(shape)
    return normal(rng, shape, dtype, std=math.sqrt(2.0 / fan_in))


def glorot(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Uniform in ±sqrt(6 / (fan_in + fan_out)), variance 2 / (fan_in + fan_out): for tanh (Glorot and Bengio 2010).

    Raises ValueError where shape has fewer than two axes or one of size 0, TypeError for another rng or dtype.
    """
    limit = math.sqrt(6.0 / sum(fans(shape)))
    W = _generator(rng).random(shape, dtype=_floating(dtype))
    W *= 2.0 * limit
    W -= limit
    return W


def normal(
    rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32, *, std: float = 0.01
) -> np.ndarray:
    """Normal, mean 0, standard deviation `std`. Raises ValueError where std < 0, TypeError for another rng or dtype."""
    if not 0 <= std < math.inf:
        raise ValueError(f"std is {std}; it must be at least 0")
    W = _generator(rng).standard_normal(shape, dtype=_floating(dtype))
    W *= float(std)
    return W


def zeros(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Zeros: right for a bias, wrong for a weight, whose units would then all stay equal. Draws nothing from rng."""
    return np.zeros(shape, _floating(dtype))


def ones(rng: np.random.Generator, shape: tuple[int, ...], dtype: Any = np.float32) -> np.ndarray:
    """Ones: for a scale, such as the gamma of a normalization. Draws nothing from rng."""
    return np.ones(shape, _floating(dtype))


def fans(shape: tuple[int, ...]) -> tuple[int, int]:
    """(fan_in, fan_out) of a weight: (D_in, D_out), or (kh, kw, C_in, C_out) with any number of kernel axes."""
    if len(shape) < 2 or min(shape) < 1:
        raise ValueError(f"a weight of shape {shape} has no fan; it needs two axes or more, none of size 0")
    *kernel, c_in, c_out = (int(n) for n in shape)
    return math.prod(kernel) * c_in, math.prod(kernel) * c_out


def _generator(rng: np.random.Generator) -> np.random.Generator:
    if not isinstance(rng, np.random.Generator):
        raise TypeError(f"rng is {rng!r}; it must be a generator, such as np.random.default_rng(0)")
    return rng


def _floating(dtype: Any) -> Any:
    if np.dtype(dtype) not in (np.float32, np.float64):
        raise TypeError(f"dtype is {np.dtype(dtype)}; it must be float32 or float64")
    return np.dtype(dtype)
