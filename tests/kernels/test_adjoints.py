"""Linear kernels against their backward: ⟨f(x), c⟩ = ⟨x, f_backward(c)⟩, at sizes that small steps cannot check."""

import numpy as np
import pytest

from dlcourse import kernels
from dlcourse.gradcheck import adjoint_error

RNG = np.random.default_rng
CONV = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 2)}
POOL = {"kernel": (3, 2), "stride": (2, 2), "padding": (1, 0)}


def linear(dtype):
    """{name: (f, f_backward, x)}: affine maps without their bias."""
    rng = RNG(0)

    def draw(*shape):
        return rng.standard_normal(shape).astype(dtype)

    x, W, K = draw(20, 31, 29, 8), draw(8, 16), draw(3, 2, 8, 16)
    zero = np.zeros(16, dtype)
    keep, (_, index) = x > 0, kernels.max_pool2d(x, **POOL)
    taps = {"in_hw": (31, 29), **POOL}
    return {
        "affine": (lambda x: kernels.affine(x, W, zero), lambda c: kernels.affine_backward(c, x, W)[0], x),
        "affine in W": (lambda W: kernels.affine(x, W, zero), lambda c: kernels.affine_backward(c, x, W)[1], W),
        "conv2d": (lambda x: kernels.conv2d(x, K, zero, **CONV), lambda c: kernels.conv2d_backward(c, x, K, **CONV)[0], x),
        "conv2d in W": (lambda K: kernels.conv2d(x, K, zero, **CONV), lambda c: kernels.conv2d_backward(c, x, K, **CONV)[1], K),
        "conv2d in strips": (
            lambda x: kernels.conv2d(x, K, zero, **CONV, strip=9_000),
            lambda c: kernels.conv2d_backward(c, x, K, **CONV, strip=9_000)[0], x,
        ),
        "conv2d in W, in strips": (
            lambda K: kernels.conv2d(x, K, zero, **CONV, strip=9_000),
            lambda c: kernels.conv2d_backward(c, x, K, **CONV, strip=9_000)[1], K,
        ),
        "avg_pool2d": (lambda x: kernels.avg_pool2d(x, **POOL), lambda c: kernels.avg_pool2d_backward(c, **taps), x),
        "dropout": (
            lambda x: kernels.dropout_backward(x, keep, rate=0.3), lambda c: kernels.dropout_backward(c, keep, rate=0.3), x
        ),
        "max_pool2d at its index": (
            lambda c: kernels.max_pool2d_backward(c, index, **taps),
            lambda x: gathered(x, index), draw(*index.shape),
        ),
    }  # fmt: skip


def gathered(x, index):
    """The pixel of each window that `index` names: what max pooling is, once the winners are known."""
    (_, kw), (sh, sw), (ph, pw) = POOL["kernel"], POOL["stride"], POOL["padding"]
    n, p, q, c = np.indices(index.shape)
    return x[n, p * sh - ph + index // kw, q * sw - pw + index % kw, c]


@pytest.mark.parametrize(("dtype", "limit"), [(np.float32, 1e-6), (np.float64, 1e-14)])
@pytest.mark.parametrize("name", linear(np.float32))
def test_backward_of_a_linear_kernel_is_its_transposed(name, dtype, limit):
    f, f_backward, x = linear(dtype)[name]
    assert adjoint_error(f, f_backward, x, RNG(1)) < limit


@pytest.mark.parametrize("wrong", [lambda d: 1.01 * d, lambda d: np.roll(d, 1, axis=1), lambda d: -d])
def test_the_adjoint_check_turns_red_under_a_wrong_backward(wrong):
    f, f_backward, x = linear(np.float32)["conv2d"]
    assert adjoint_error(f, lambda c: wrong(f_backward(c)), x, RNG(1)) > 1e-5
