"""Gradient checks: the derivative by two small steps against the one that backward computes.

    upstream = rng.standard_normal(y.shape)                        # dy: random, for a check must be able to fail
    dx = f_backward(upstream, …)
    assert gradient_error(f, x, dx, upstream=upstream) < 1e-6

A check through `y.sum()` has dy = 1 everywhere. Softmax sums to 1, so its gradient is then 0 whatever backward does
with it, and a wrong one passes; hence an upstream of equal numbers is refused. So is float32, in which the differences
are noise: x² at 1 with a step of 1e-5 gives 2.0027.
"""

from collections.abc import Callable
from typing import Any

import numpy as np

from dlcourse import tree

STEP = 1e-5  # near the cube root of float64's precision, where rounding and the step itself do equal harm
FLOOR = 1e-3


def numeric_gradient(
    f: Callable[[np.ndarray], Any], x: np.ndarray, *, upstream: np.ndarray | float = 1.0, step: float = STEP
) -> np.ndarray:
    """The gradient of sum(upstream · f(x)) with respect to x, by central differences.  -> float64, x's shape.

    x: float64, any shape; it is not changed.  f: called twice for each number in x; returns a float64 array or a float.
    upstream: float64, of the shape of f(x); left out if f returns one number.
    Entry i moves by step · max(1, |x_i|) both ways, so the error is about step² f'''/6 + 1e-16 |f|/step. If f has a kink
    (ReLU at 0, two equal maxima) nearer than that, the difference is of no use: see `away_from_kinks`.
    """
    x, upstream, shape = _float64("x", x).copy(), _float64("upstream", upstream), np.shape(f(x))
    draw = f"draw rng.standard_normal({shape})"
    if upstream.shape != shape:
        raise ValueError(f"upstream has shape {upstream.shape}, f(x) has {shape}; {draw}")
    if upstream.size > 1 and np.all(upstream == upstream.flat[0]):
        raise ValueError(f"upstream is {upstream.flat[0]} everywhere, which cannot show every fault; {draw}")
    gradient = np.empty_like(x)
    flat, out = x.reshape(-1), gradient.reshape(-1)
    for i, value in enumerate(flat.copy()):
        h = step * max(1.0, abs(value))
        flat[i] = right = value + h
        high = _float64("f(x)", f(x)).copy()  # f may return a view of x, or one array each time
        flat[i] = left = value - h
        low = _float64("f(x)", f(x))
        out[i] = ((high - low) * upstream).sum() / (right - left)
        flat[i] = value
    return gradient


def gradient_error(f: Callable[[np.ndarray], Any], x: np.ndarray, analytic: np.ndarray, **options: Any) -> float:
    """The largest error of `analytic` against `numeric_gradient` (which takes the options), relative to the entry: below
    1e-6 for a right one.

    The error of an entry is |a - n| / max(|a|, |n|, 0.001 s), s the largest |a| or |n|, at least 1: entries near 0 are
    measured against the array, since there the differences are rounding. NaN if either is NaN, so `error < 1e-6` fails.
    Raises TypeError if anything is not float64, ValueError if shapes differ or upstream cannot show a fault.
    """
    analytic = _float64("the analytic gradient", analytic)
    if analytic.shape != np.shape(x):
        raise ValueError(f"the analytic gradient has shape {analytic.shape}; x has {np.shape(x)}")
    numeric = numeric_gradient(f, x, **options)
    if numeric.size == 0:
        raise ValueError(f"x has shape {numeric.shape}: there is nothing to check")
    size = np.maximum(np.abs(analytic), np.abs(numeric))
    return float(np.max(np.abs(analytic - numeric) / np.maximum(size, FLOOR * max(1.0, size.max()))))


def adjoint_error(
    f: Callable[..., Any], f_backward: Callable[..., Any], x: np.ndarray, rng: np.random.Generator
) -> float:
    """|⟨f(x), c⟩ - ⟨x, f_backward(c)⟩| / |f(x)| |c| with a random c: rounding alone if f is linear and f_backward its
    gradient. One call of each and any float dtype, so x may be as large as in use, where differences would take hours."""
    y = f(x)
    c = rng.standard_normal(y.shape).astype(y.dtype)
    forward, backward = (np.sum(a * b, dtype=np.float64) for a, b in ((y, c), (x, f_backward(c))))
    return float(abs(forward - backward) / (np.linalg.norm(y) * np.linalg.norm(c)))


def check_layer(
    layer: Any, in_shape: tuple[int, ...], batch: int, rng: np.random.Generator, *, x: Any = None, step: float = STEP
) -> dict[str, float]:
    """Check dx and every gradient of a layer in training.  -> {"x": error, "W": error, …}, as of `gradient_error`.

    Works for anything with init, forward and backward, a whole model too. Parameters are moved away from where init put
    them, since a scale of 1 or a bias of 0 hides a backward that forgets it. x is `away_from_kinks`, or what is given;
    integers (tokens) have no dx. Every forward draws from a generator in the same state: dropout drops the same in each.
    Raises ValueError if backward changes dy unasked, or its gradients have other names than the trainable parameters.
    """
    params = layer.init(in_shape, rng=rng, dtype=np.float64)
    weights = tree.flatten(tree.trainable(params))
    for p in weights.values():
        p += 0.3 * rng.standard_normal(p.shape)
    x = away_from_kinks(rng, (batch, *in_shape)) if x is None else x
    seed = int(rng.integers(2**32))

    def forward(params: Any, x: np.ndarray) -> tuple[np.ndarray, Any]:
        return layer.forward(params, x, train=True, rng=np.random.default_rng(seed))

    y, saved = forward(params, x)
    upstream = rng.standard_normal(y.shape)
    dx, grads = layer.backward(params, saved, dy := upstream.copy())
    if not np.array_equal(dy, upstream):
        raise ValueError("backward changed dy; it may do so only with overwrite_dy=True")
    gradients = tree.flatten(grads)
    if weights.keys() != gradients.keys():
        raise ValueError(f"gradients are named {sorted(gradients)}, the trainable parameters {sorted(weights)}")
    how: dict[str, Any] = {"upstream": upstream, "step": step}
    errors = {"x": gradient_error(lambda x: forward(params, x)[0], x, dx, **how)} if x.dtype.kind == "f" else {}
    for name, p in weights.items():

        def of_parameter(value: np.ndarray, p: np.ndarray = p) -> np.ndarray:
            return forward(tree.map_leaves(lambda leaf: value if leaf is p else leaf, params), x)[0]

        errors[name] = gradient_error(of_parameter, p, gradients[name], **how)
    return errors


def away_from_kinks(rng: np.random.Generator, shape: tuple[int, ...], span: float = 2.0) -> np.ndarray:
    """Float64 numbers in -span..span, in random order, all equally far apart and none at 0.

    They keep a check away from kinks: no two inputs of a maximum are near each other, none of a ReLU is near 0.
    """
    size = int(np.prod(shape))
    numbers = (np.arange(size) - (size - 1) / 2 + (0.25 if size % 2 else 0.0)) * (2 * span / max(size, 1))
    return rng.permutation(numbers).reshape(shape)


def _float64(name: str, array: Any) -> np.ndarray:
    array = np.asarray(array)
    if array.dtype != np.float64:
        raise TypeError(f"{name} is {array.dtype}; a gradient check needs float64, or its differences are noise")
    return array
