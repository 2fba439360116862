import math
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcourse import losses
from dlcourse.gradcheck import away_from_kinks, check_layer, gradient_error, numeric_gradient

LIMIT = 1e-6


def rng(seed=0):
    return np.random.default_rng(seed)


def softmax_backward(dy, y):
    return y * (dy - (dy * y).sum(axis=-1, keepdims=True))


def test_gradient_of_softmax_is_the_one_that_a_random_upstream_gives():
    x, upstream = np.array([1.0, 2, 3]), np.array([1.0, 0, 2])
    dx = softmax_backward(upstream, losses.softmax(x))
    np.testing.assert_allclose(dx, [-0.037859, -0.347640, 0.385499], atol=1e-6)
    np.testing.assert_allclose(numeric_gradient(losses.softmax, x, upstream=upstream), dx, atol=1e-9)
    assert gradient_error(losses.softmax, x, dx, upstream=upstream) < LIMIT


def test_softmax_through_its_sum_would_pass_with_any_gradient_so_it_is_refused():
    x = np.array([1.0, 2, 3])
    assert gradient_error(lambda x: losses.softmax(x).sum(), x, np.zeros(3)) < LIMIT  # what the fault looks like
    with pytest.raises(ValueError, match=r"upstream is 1\.0 everywhere, which cannot show every fault"):
        gradient_error(losses.softmax, x, np.zeros(3), upstream=np.ones(3))


def test_an_upstream_must_be_given_where_f_returns_an_array():
    with pytest.raises(ValueError, match=r"upstream has shape \(\), f\(x\) has \(3,\); draw"):
        gradient_error(np.exp, np.ones(3), np.exp(np.ones(3)))


@given(
    shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple),
    scale=st.floats(0.01, 3),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_a_right_gradient_is_green_at_any_shape_and_size(shape, scale, seed):
    x, upstream = rng(seed).standard_normal(shape) * scale, rng(seed + 100).standard_normal(shape) * scale
    upstream = upstream.reshape(shape)
    assert gradient_error(np.tanh, x, upstream * (1 - np.tanh(x) ** 2), upstream=upstream) < LIMIT
    assert gradient_error(lambda x: float((x**3).sum()), x, 3 * x**2) < LIMIT


def wrong_in(gradient, fault):
    if fault == "scale":
        return gradient * 1.001
    if fault == "sign":
        return -gradient
    if fault == "transposed":
        return np.ascontiguousarray(gradient.T)
    if fault == "sum instead of mean":
        return gradient * len(gradient)
    if fault == "last row is missing":
        return np.concatenate([gradient[:-1], np.zeros_like(gradient[-1:])])
    if fault == "nan":
        return np.where(np.arange(gradient.size).reshape(gradient.shape) == 1, np.nan, gradient)
    raise AssertionError(fault)


FAULTS = ["scale", "sign", "transposed", "sum instead of mean", "last row is missing", "nan"]


@pytest.mark.parametrize("fault", FAULTS)
def test_a_seeded_fault_in_a_losss_gradient_turns_the_check_red(fault):
    logits, labels = rng().standard_normal((4, 4)), np.array([0, 3, 1, 1])
    _, dlogits = losses.softmax_cross_entropy(logits, labels)

    def f(z):
        return losses.softmax_cross_entropy(z, labels)[0]

    assert gradient_error(f, logits, dlogits) < LIMIT
    assert not gradient_error(f, logits, wrong_in(dlogits, fault)) < LIMIT


def test_a_fault_in_a_gradient_that_is_small_everywhere_is_seen():
    x = rng().standard_normal(50)
    assert gradient_error(lambda x: float((x**2).sum()) * 1e-4, x, 2e-4 * x) < LIMIT
    assert gradient_error(lambda x: float((x**2).sum()) * 1e-4, x, 2.1e-4 * x) > LIMIT


@dataclass(frozen=True)
class Scaled:
    """y = (x W + b) · gamma with dropout and a buffer: a layer by the contract, with a fault in its backward."""

    fault: str = ""

    def init(self, in_shape, rng, dtype=np.float32):
        return {
            "W": rng.standard_normal((in_shape[-1], in_shape[-1])).astype(dtype),
            "b": np.zeros(in_shape[-1], dtype),
            "inner": {"gamma": np.ones(in_shape[-1], dtype), "buffers": {"mean": np.zeros(2, dtype)}},
        }

    def forward(self, params, x, *, train=False, rng=None):
        mask = (rng.random(x.shape) < 0.5).astype(x.dtype)
        z = (x * mask) @ params["W"] + params["b"]
        return z * params["inner"]["gamma"], (x, mask, z)

    def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
        x, mask, z = saved
        dz = dy if self.fault == "gamma is forgotten" else dy * params["inner"]["gamma"]
        dx = dz @ params["W"].T
        if self.fault != "dropout is forgotten":
            dx = dx * mask
        dW, db, dgamma = (x * mask).T @ dz, dz.sum(axis=0), (dy * z).sum(axis=0)
        if self.fault == "dW is transposed":
            dW = dW.T
        elif self.fault == "db is a mean":
            db = dz.mean(axis=0)
        elif self.fault == "dx lacks its last row":
            dx[-1] = 0
        elif self.fault == "dgamma has its sign turned":
            dgamma = -dgamma
        return dx, {"W": dW, "b": db, "inner": {"gamma": dgamma}}


def test_a_right_layer_is_green_for_its_input_and_every_parameter():
    errors = check_layer(Scaled(), (3,), 4, rng())
    assert errors.keys() == {"x", "W", "b", "inner/gamma"}
    assert max(errors.values()) < LIMIT


@pytest.mark.parametrize(
    ("fault", "red"),
    [
        ("gamma is forgotten", {"x", "W", "b"}),
        ("dropout is forgotten", {"x"}),
        ("dW is transposed", {"W"}),
        ("db is a mean", {"b"}),
        ("dx lacks its last row", {"x"}),
        ("dgamma has its sign turned", {"inner/gamma"}),
    ],
)
def test_a_fault_in_a_layers_backward_is_red_in_the_gradients_that_it_spoils_alone(fault, red):
    errors = check_layer(Scaled(fault), (3,), 4, rng())
    assert {name for name, error in errors.items() if not error < LIMIT} == red


def test_a_layer_whose_gradients_have_other_names_is_an_error():
    class Unnamed(Scaled):
        def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
            return dy, {"W": saved[0]}

    with pytest.raises(
        ValueError, match=r"gradients are named \['W'\], the trainable parameters \['W', 'b', 'inner/gamma'\]"
    ):
        check_layer(Unnamed(), (3,), 4, rng())


def test_a_backward_that_writes_over_dy_unasked_is_an_error():
    class Greedy(Scaled):
        def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
            dy *= 2
            return super().backward(params, saved, dy)

    with pytest.raises(ValueError, match="backward changed dy; it may do so only with overwrite_dy=True"):
        check_layer(Greedy(), (3,), 4, rng())


def test_a_layer_of_tokens_has_no_gradient_for_its_input():
    class Table:
        def init(self, in_shape, rng, dtype=np.float32):
            return {"E": rng.standard_normal((5, 2)).astype(dtype)}

        def forward(self, params, x, *, train=False, rng=None):
            return params["E"][x], x

        def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
            dE = np.zeros((5, 2))
            np.add.at(dE, saved, dy)
            return None, {"E": dE}

    errors = check_layer(Table(), (3,), 4, rng(), x=rng().integers(0, 5, (4, 3)))
    assert errors.keys() == {"E"}
    assert errors["E"] < LIMIT


def test_a_function_that_returns_a_view_of_its_input_is_checked_rightly():
    x, upstream = rng().standard_normal((2, 3)), rng(1).standard_normal(6)
    assert gradient_error(lambda x: x.reshape(-1), x, upstream.reshape(2, 3), upstream=upstream) < LIMIT


def test_a_check_does_not_change_x():
    x = rng().standard_normal(4)
    before = x.copy()
    numeric_gradient(np.exp, x, upstream=rng(1).standard_normal(4))
    np.testing.assert_array_equal(x, before)


def test_float32_is_refused_wherever_it_stands():
    x, dx = np.array([1.0]), np.array([2.0])

    def square(x):
        return float((x**2).sum())

    with pytest.raises(TypeError, match="x is float32; a gradient check needs float64"):
        gradient_error(square, x.astype(np.float32), dx)
    with pytest.raises(TypeError, match="the analytic gradient is float32"):
        gradient_error(square, x, dx.astype(np.float32))
    with pytest.raises(TypeError, match=r"f\(x\) is float32"):
        gradient_error(lambda x: np.float32((x**2).sum()), x, dx)
    with pytest.raises(TypeError, match="upstream is float32"):
        gradient_error(np.exp, x, dx, upstream=np.array([0.5], np.float32))


def test_differences_in_float32_are_why():
    one, h = np.float32(1), np.float32(1e-5)
    assert ((one + h) ** 2 - (one - h) ** 2) / (2 * h) == pytest.approx(2.0027, abs=1e-3)


def test_a_gradient_of_another_shape_is_not_broadcast():
    with pytest.raises(ValueError, match=r"the analytic gradient has shape \(1,\); x has \(3,\)"):
        gradient_error(lambda x: float(x.sum()), np.ones(3), np.ones(1))


def test_nothing_to_check_is_an_error_and_not_green():
    with pytest.raises(ValueError, match="there is nothing to check"):
        gradient_error(lambda x: 0.0, np.ones(0), np.ones(0))


@given(shape=st.lists(st.integers(1, 9), min_size=1, max_size=3).map(tuple), seed=st.integers(0, 99))
def test_spread_numbers_are_apart_from_each_other_and_from_zero(shape, seed):
    x = away_from_kinks(rng(seed), shape)
    assert x.shape == shape
    numbers = np.sort(x.reshape(-1))
    assert np.abs(numbers).max() <= 2
    assert np.abs(numbers).min() >= 1 / numbers.size
    assert math.prod(shape) == 1 or np.diff(numbers).min() > 3 / numbers.size
