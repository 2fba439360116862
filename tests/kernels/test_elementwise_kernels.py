"""Activations, dropout, the affine map, and the two normalizations."""

import math
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_close, channels_last
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcourse import kernels
from dlcourse.gradcheck import away_from_kinks, gradient_error

shapes = st.lists(st.integers(1, 4), min_size=1, max_size=4).map(tuple)

# (forward, backward from dy, x, y)
ACTIVATIONS = {
    "relu": (kernels.relu, lambda dy, x, y: kernels.relu_backward(dy, y)),
    "leaky_relu": (
        lambda x, out=None: kernels.leaky_relu(x, slope=0.1, out=out),
        lambda dy, x, y: kernels.leaky_relu_backward(dy, y, slope=0.1),
    ),
    "sigmoid": (kernels.sigmoid, lambda dy, x, y: kernels.sigmoid_backward(dy, y)),
    "tanh": (kernels.tanh, lambda dy, x, y: kernels.tanh_backward(dy, y)),
    "gelu": (kernels.gelu, lambda dy, x, y: kernels.gelu_backward(dy, x)),
}

REFERENCE = {
    "relu": lambda x: max(x, 0.0),
    "leaky_relu": lambda x: x if x > 0 else 0.1 * x,
    "sigmoid": lambda x: 1 / (1 + math.exp(-x)),
    "tanh": math.tanh,
    "gelu": lambda x: x / 2 * (1 + math.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))),
}

WRONG_ACTIVATIONS = [
    ("relu", lambda dy, x, y: dy * (y >= 0)),
    ("relu", lambda dy, x, y: np.maximum(dy, 0)),
    ("leaky_relu", lambda dy, x, y: np.where(y > 0, dy, 0)),
    ("leaky_relu", lambda dy, x, y: np.where(x > 0, 0.1, 1) * dy),
    ("sigmoid", lambda dy, x, y: dy * y),
    ("sigmoid", lambda dy, x, y: dy * x * (1 - x)),
    ("tanh", lambda dy, x, y: dy * (1 - y)),
    ("tanh", lambda dy, x, y: dy * (1 - x * x)),
    ("gelu", lambda dy, x, y: dy * (y / x)),
    ("gelu", lambda dy, x, y: 1.001 * kernels.gelu_backward(dy, x)),
]


def error_of_activation(name, shape, backward=None):
    forward, right = ACTIVATIONS[name]
    rng = np.random.default_rng(0)
    x = away_from_kinks(rng, shape, span=4.0)
    dy = rng.standard_normal(shape)
    return gradient_error(forward, x, (backward or right)(dy, x, forward(x)), upstream=dy)


@pytest.mark.parametrize("name", ACTIVATIONS)
@given(shape=shapes)
@settings(max_examples=10)
def test_activation_equals_its_formula_and_has_its_gradient(name, shape):
    x = away_from_kinks(np.random.default_rng(0), shape, span=4.0)
    expected = np.array([REFERENCE[name](v) for v in x.ravel()]).reshape(shape)
    np.testing.assert_allclose(ACTIVATIONS[name][0](x), expected, rtol=1e-13, atol=1e-14)
    assert error_of_activation(name, shape) < 1e-6


@pytest.mark.parametrize(("name", "wrong"), WRONG_ACTIVATIONS)
def test_gradient_check_of_an_activation_turns_red_under_a_wrong_backward(name, wrong):
    assert error_of_activation(name, (3, 4)) < 1e-6
    assert error_of_activation(name, (3, 4), wrong) > 1e-4


X, DY = np.array([-3, -1, -0.1, 0.5, 1, 2]), np.array([1.0, 2, 4, 7, 8, 9])
PYTORCH = {  # PyTorch 2.13.0 in float64 at X, upstream DY: y and dx; gelu with approximate="tanh", leaky_relu with 0.1
    "gelu": (
        [-0.003637392081773, -0.158808009391723, -0.046017248954565, 0.345714009825144, 0.841191990608277, 1.954597694],
        [-0.01158416663097, -0.165928167691565, 1.681912842912973, 6.071589324742496, 8.66371267076626, 9.774893309612],
    ),
    "sigmoid": (
        [0.047425873177567, 0.268941421369995, 0.47502081252106, 0.622459331201855, 0.731058578630005, 0.880797077978],
        [0.045176659730912, 0.393223866482964, 0.997504160771568, 1.645025985411161, 1.572895465931855, 0.94494226863],
    ),
    "tanh": (
        [-0.99505475368673, -0.761594155955765, -0.099667994624956, 0.46211715726001, 0.761594155955765, 0.964027580],
        [0.00986603716544, 0.839948683228052, 3.960265163389759, 5.505134130761492, 3.359794732912209, 0.63585742368],
    ),
    "leaky_relu": ([-0.3, -0.1, -0.01, 0.5, 1, 2], [0.1, 0.2, 0.4, 7, 8, 9]),
    "relu": ([0, 0, 0, 0.5, 1, 2], [0, 0, 0, 7, 8, 9]),
}


@pytest.mark.parametrize("name", PYTORCH)
def test_activation_equals_pytorch(name):
    forward, backward = ACTIVATIONS[name]
    y = forward(X)
    expected, expected_dx = PYTORCH[name]
    np.testing.assert_allclose(y, expected, rtol=1e-9)
    np.testing.assert_allclose(backward(DY, X, y), expected_dx, rtol=1e-9)


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_large_inputs_raise_no_warning_and_give_no_nan(name):
    x = np.array([-1e4, -100, 100, 1e4], np.float32)
    forward, backward = ACTIVATIONS[name]
    with np.errstate(all="raise", under="ignore"):
        y = forward(x)
        dx = backward(np.ones_like(x), x, y)
    assert np.isfinite(y).all()
    assert np.isfinite(dx).all()


@pytest.mark.parametrize("name", ACTIVATIONS)
def test_activation_writes_into_out(name):
    x = away_from_kinks(np.random.default_rng(0), (3, 4))
    out = np.empty_like(x)
    assert ACTIVATIONS[name][0](x, out=out) is out
    np.testing.assert_array_equal(out, ACTIVATIONS[name][0](x))


def test_backward_may_write_over_dy():
    y = np.array([-1.0, 2.0, -3.0, 4.0])
    for backward in (
        kernels.relu_backward,
        lambda dy, y, out=None: kernels.leaky_relu_backward(dy, y, slope=0.1, out=out),
    ):
        dy = np.array([1.0, 2.0, 3.0, 4.0])
        expected = backward(dy, y)
        assert backward(dy, y, out=dy) is dy
        np.testing.assert_array_equal(dy, expected)


def test_numbers_of_another_precision_leave_float32_as_it_is():
    x, dy = np.ones((2, 3), np.float32), np.ones((2, 3), np.float32)
    gamma = np.ones(3, np.float32)
    wide = np.float64(0.1)
    rng = np.random.default_rng(0)
    y, mean, var = kernels.batch_norm(x, gamma, gamma, eps=wide)
    results = [
        kernels.leaky_relu(x, slope=wide), kernels.leaky_relu_backward(dy, x, slope=wide),
        *kernels.dropout(x, rate=wide, rng=rng)[:1], kernels.dropout_backward(dy, x > 0, rate=wide),
        y, mean, var, *kernels.batch_norm_backward(dy, x, gamma, mean, var, eps=wide),
        kernels.batch_norm_inference(x, gamma, gamma, mean, var, eps=wide),
        *kernels.layer_norm(x, gamma, gamma, eps=wide),
        *kernels.layer_norm_backward(dy, x, gamma, *kernels.layer_norm(x, gamma, gamma, eps=wide)[1:], eps=wide),
    ]  # fmt: skip
    assert [array.dtype for array in results] == [np.float32] * len(results)


@given(st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple), st.integers(1, 4), st.integers(1, 4))
@settings(max_examples=25)
def test_affine_equals_loops_and_has_its_gradients(rows, d_in, d_out):
    rng = np.random.default_rng(0)
    x, W, b = rng.standard_normal((*rows, d_in)), rng.standard_normal((d_in, d_out)), rng.standard_normal(d_out)
    y = kernels.affine(x, W, b)
    expected = np.zeros((*rows, d_out))
    for place in np.ndindex(*rows):
        for j in range(d_out):
            expected[*place, j] = b[j] + sum(x[*place, i] * W[i, j] for i in range(d_in))
    np.testing.assert_allclose(y, expected, rtol=1e-12, atol=1e-13)
    assert max(errors_of_affine(x, W, b)) < 1e-6


def errors_of_affine(x, W, b, backward=kernels.affine_backward):
    y = kernels.affine(x, W, b)
    dy = np.random.default_rng(1).standard_normal(y.shape)
    dx, dW, db = backward(dy, x, W)
    return [
        gradient_error(lambda x: kernels.affine(x, W, b), x, dx, upstream=dy),
        gradient_error(lambda W: kernels.affine(x, W, b), W, dW, upstream=dy),
        gradient_error(lambda b: kernels.affine(x, W, b), b, db, upstream=dy),
    ]


WRONG_AFFINE = [
    lambda dy, x, W: (dy @ W, x.T @ dy, dy.sum(axis=0)),  # not transposed
    lambda dy, x, W: (dy @ W.T, dy.T @ x, dy.sum(axis=0)),
    lambda dy, x, W: (dy @ W.T, x.T @ dy / len(x), dy.sum(axis=0)),
    lambda dy, x, W: (dy @ W.T, x.T @ dy, dy[0]),  # the sum over the batch is missing
    lambda dy, x, W: (dy @ W.T, x.T @ dy, dy.sum(axis=1)[:3]),  # a square batch hides the wrong axis from shapes
]


@pytest.mark.parametrize("wrong", WRONG_AFFINE)
def test_gradient_check_of_affine_turns_red_under_a_wrong_backward(wrong):
    rng = np.random.default_rng(0)
    x, W, b = (rng.standard_normal(shape) for shape in ((3, 3), (3, 3), (3,)))
    assert max(errors_of_affine(x, W, b)) < 1e-6
    assert max(errors_of_affine(x, W, b, wrong)) > 1e-4


def test_dropout_scales_what_stays_and_zeroes_the_rest():
    x = np.full((200, 500), 3.0, np.float32)
    y, keep = kernels.dropout(x, rate=0.25, rng=np.random.default_rng(0))
    assert keep.nbytes == x.size
    np.testing.assert_allclose(keep.mean(), 0.75, atol=0.005)
    np.testing.assert_array_equal(y, np.where(keep, np.float32(4), 0))
    dy = np.random.default_rng(1).standard_normal(x.shape, dtype=np.float32)
    np.testing.assert_array_equal(kernels.dropout_backward(dy, keep, rate=0.25), dy * keep * np.float32(1 / 0.75))


# Normalization: the parameters of each are (gamma, beta), and the statistics stand over other axes.

NORMS = {
    "batch": SimpleNamespace(
        f=kernels.batch_norm, backward=kernels.batch_norm_backward, axes=lambda x: tuple(range(x.ndim - 1))
    ),
    "layer": SimpleNamespace(f=kernels.layer_norm, backward=kernels.layer_norm_backward, axes=lambda x: (-1,)),
}
EPS = 1e-3


def norm_arrays(shape):
    rng = np.random.default_rng(0)
    return rng.standard_normal(shape) + 1, rng.standard_normal(shape[-1]), rng.standard_normal(shape[-1])


def errors_of_norm(norm, shape, backward=None):
    x, gamma, beta = norm_arrays(shape)

    def f(x=x, gamma=gamma, beta=beta):
        return norm.f(x, gamma, beta, eps=EPS)[0]

    y, mean, var = norm.f(x, gamma, beta, eps=EPS)
    dy = np.random.default_rng(1).standard_normal(y.shape)
    dx, dgamma, dbeta = (backward or norm.backward)(dy, x, gamma, mean, var, eps=EPS)
    return [
        gradient_error(lambda x: f(x=x), x, dx, upstream=dy),
        gradient_error(lambda gamma: f(gamma=gamma), gamma, dgamma, upstream=dy),
        gradient_error(lambda beta: f(beta=beta), beta, dbeta, upstream=dy),
    ]


norm_shapes = st.lists(st.integers(2, 4), min_size=2, max_size=4).map(tuple)


@pytest.mark.parametrize("name", NORMS)
@given(shape=norm_shapes)
@settings(max_examples=15)
def test_normalization_equals_its_formula_and_has_its_gradients(name, shape):
    norm = NORMS[name]
    x, gamma, beta = norm_arrays(shape)
    y, mean, var = norm.f(x, gamma, beta, eps=EPS)
    axes = norm.axes(x)
    centred = x - x.mean(axis=axes, keepdims=True)
    expected_var = (centred**2).mean(axis=axes, keepdims=True)
    assert_close(mean.ravel(), x.mean(axis=axes).ravel(), 1e-12)
    assert_close(var.ravel(), expected_var.ravel(), 1e-12)
    np.testing.assert_allclose(y, gamma * centred / np.sqrt(expected_var + EPS) + beta, rtol=1e-10, atol=1e-12)
    assert max(errors_of_norm(norm, shape)) < 1e-6


def statistics_taken_as_constants(norm):
    def backward(dy, x, gamma, mean, var, *, eps):
        _, dgamma, dbeta = norm.backward(dy, x, gamma, mean, var, eps=eps)
        return dy * gamma / np.sqrt(var + eps), dgamma, dbeta

    return backward


def gamma_forgotten(norm):
    def backward(dy, x, gamma, mean, var, *, eps):
        _, dgamma, dbeta = norm.backward(dy, x, gamma, mean, var, eps=eps)
        return norm.backward(dy, x, np.ones_like(gamma), mean, var, eps=eps)[0], dgamma, dbeta

    return backward


def first_sample_alone(norm):
    def backward(dy, x, gamma, mean, var, *, eps):
        first = dy.copy()
        first[1:] = 0
        return norm.backward(dy, x, gamma, mean, var, eps=eps)[0], *norm.backward(first, x, gamma, mean, var, eps=eps)[
            1:
        ]

    return backward


def dgamma_from_x(norm):
    def backward(dy, x, gamma, mean, var, *, eps):
        dx, _, dbeta = norm.backward(dy, x, gamma, mean, var, eps=eps)
        return dx, (dy * x).sum(axis=tuple(range(x.ndim - 1))), dbeta

    return backward


@pytest.mark.parametrize("name", NORMS)
@pytest.mark.parametrize("wrong", [statistics_taken_as_constants, gamma_forgotten, first_sample_alone, dgamma_from_x])
def test_gradient_check_of_a_normalization_turns_red_under_a_wrong_backward(name, wrong):
    assert max(errors_of_norm(NORMS[name], (3, 2, 4))) < 1e-6
    assert max(errors_of_norm(NORMS[name], (3, 2, 4), wrong(NORMS[name]))) > 1e-4


def test_batch_norm_of_images_has_one_statistic_a_channel():
    x = channels_last(np.arange(16.0).reshape(2, 2, 2, 2))
    _, mean, var = kernels.batch_norm(x, np.ones(2), np.zeros(2), eps=1e-5)
    np.testing.assert_allclose(mean, [5.5, 9.5])
    np.testing.assert_allclose(var, [17.25, 17.25])


def test_batch_norm_equals_pytorch():
    # PyTorch 2.13.0, float64: BatchNorm2d(2) of arange(16) as (2, 2, 2, 2), upstream arange(16)² mod 7.
    x, dy = (
        channels_last(np.arange(16.0).reshape(2, 2, 2, 2)),
        channels_last((np.arange(16.0) ** 2 % 7).reshape(2, 2, 2, 2)),
    )
    gamma, beta = np.array([2.0, -1.0]), np.array([0.5, 0.25])
    y, mean, var = kernels.batch_norm(x, gamma, beta, eps=1e-5)
    expected = [
        [[-2.148488000209352, -1.666944727444016], [-1.185401454678679, -0.703858181913342]],
        [[1.574244000104676, 1.333472363722008], [1.09270072733934, 0.851929090956671]],
    ]
    np.testing.assert_allclose(y[0], channels_last([expected])[0], rtol=1e-12)
    dx, dgamma, dbeta = kernels.batch_norm_backward(dy, x, gamma, mean, var, eps=1e-5)
    expected_dx = [
        [[-0.594950137202469, 0.804316935318688], [-0.204132355986839, -0.249495101761692]],
        [[-0.630716969866579, 0.068044205898329], [0.285262108897901, 0.020936739132136]],
    ]
    np.testing.assert_allclose(dx[1], channels_last([expected_dx])[0], rtol=1e-11)
    np.testing.assert_allclose(dgamma, [3.13003127297469, -3.250417091166024], rtol=1e-12)
    np.testing.assert_allclose(dbeta, [16, 13], rtol=1e-13)


def test_layer_norm_equals_pytorch():
    # PyTorch 2.13.0, float64: LayerNorm(4).
    x, dy = np.array([[1.0, 2, 4, 8], [-1, 0, 0, 3]]), np.array([[1.0, -2, 3, 0.5], [2, 0, -1, 1]])
    gamma, beta = np.array([1.0, 2, -1, 0.5]), np.array([0.0, 0.1, 0.2, 0.3])
    y, mean, var = kernels.layer_norm(x, gamma, beta, eps=1e-5)
    expected = [
        [-1.025754575496193, -1.205505823358791, 0.106749584045801, 1.092628535610695],
        [-0.999997777785185, -0.566665185190123, 0.533332592595062, 1.133331481487654],
    ]
    np.testing.assert_allclose(y, expected, rtol=1e-12)
    dx, dgamma, dbeta = kernels.layer_norm_backward(dy, x, gamma, mean, var, eps=1e-5)
    expected_dx = [
        [1.071974120402098, -0.852227858626855, -0.597613514699987, 0.377867252924745],
        [0.499999999996296, -0.666664814822222, 3.70367901e-07, 0.166664444458025],
    ]
    np.testing.assert_allclose(dx, expected_dx, rtol=1e-9, atol=1e-14)
    np.testing.assert_allclose(dgamma, [-3.025750131066564, 1.305505823358791, 0.61308384045766, 2.459291498586003])
    np.testing.assert_allclose(dbeta, [3, -2, 2, 1.5])


def test_variance_of_numbers_far_from_zero_keeps_its_digits_in_float32():
    # As mean(x²) - mean(x)², in float32, the variance of 10,000 ± 1 would be rounding and nothing else.
    x = (10_000 + np.random.default_rng(0).standard_normal((4096, 3))).astype(np.float32)
    for name, norm in NORMS.items():
        x_of_norm = x if name == "batch" else np.ascontiguousarray(x.T)
        size = x_of_norm.shape[-1]
        _, _, var = norm.f(x_of_norm, np.ones(size, np.float32), np.zeros(size, np.float32), eps=1e-5)
        np.testing.assert_allclose(var.ravel(), x.astype(np.float64).var(axis=0), rtol=1e-3)


def test_mean_of_a_large_batch_keeps_its_digits_in_float32():
    x = (5 + np.random.default_rng(0).standard_normal((100, 32, 32, 4))).astype(np.float32)
    _, mean, var = kernels.batch_norm(x, np.ones(4, np.float32), np.zeros(4, np.float32), eps=1e-5)
    np.testing.assert_allclose(mean, x.mean(axis=(0, 1, 2), dtype=np.float64), rtol=2e-5)
    np.testing.assert_allclose(var, x.var(axis=(0, 1, 2), dtype=np.float64), rtol=2e-5)


@pytest.mark.parametrize("name", NORMS)
def test_normalization_writes_into_out_and_makes_no_dx_where_none_is_needed(name):
    norm = NORMS[name]
    x, gamma, beta = norm_arrays((3, 4))
    out = np.empty_like(x)
    y, mean, var = norm.f(x, gamma, beta, eps=EPS, out=out)
    assert y is out
    np.testing.assert_array_equal(out, norm.f(x, gamma, beta, eps=EPS)[0])
    dx, dgamma, dbeta = norm.backward(x, x, gamma, mean, var, eps=EPS, need_dx=False)
    _, full_dgamma, full_dbeta = norm.backward(x, x, gamma, mean, var, eps=EPS)
    assert dx is None
    np.testing.assert_array_equal(dgamma, full_dgamma)
    np.testing.assert_array_equal(dbeta, full_dbeta)


def test_inference_uses_the_statistics_it_is_given():
    x, gamma, beta = norm_arrays((3, 4))
    mean, var = np.arange(4.0), np.arange(1.0, 5)
    y = kernels.batch_norm_inference(x, gamma, beta, mean, var, eps=EPS)
    np.testing.assert_allclose(y, gamma * (x - mean) / np.sqrt(var + EPS) + beta)
