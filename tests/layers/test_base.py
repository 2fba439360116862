"""The base of layers: what it checks, several inputs, and layers that readers write."""

import inspect
import re
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import CASES, by_name, same_bits

from dlcourse import layers as L
from dlcourse import memory, tree
from dlcourse.gradcheck import check_layer
from dlcourse.initializers import he
from dlcourse.layers.base import Layer, Weight
from dlcourse.model import Sequential
from dlcourse.plan import Plan

RNG = np.random.default_rng


def test_init_forward_backward_and_plan_are_written_once_in_under_60_lines():
    methods = ("init", "forward", "backward", "plan")
    assert sum(len(inspect.getsource(getattr(Layer, name)).splitlines()) for name in methods) < 60
    for kind in {type(case.layer) for case in CASES}:
        assert not any(name in vars(base) for base in kind.__mro__ if base is not Layer for name in methods)


# The shape of dy.


@pytest.mark.parametrize("case", **by_name())
def test_a_dy_of_another_shape_than_y_is_refused_with_both_shapes(case):
    if case.name == "dropout_of_nothing":
        return  # it keeps nothing, so it cannot know
    layer = case.layer
    params = layer.init(case.small, RNG(0))
    x = RNG(1).standard_normal((3, *case.small)).astype(np.float32)
    y, saved = layer.forward(params, x, train=True, rng=RNG(2))
    wrong = [
        y[..., None],
        y.sum(axis=-1),
        np.ones((*y.shape[:-1], y.shape[-1] + 1), np.float32),
        y[None],
        np.float32(1)[None],
    ]
    wrong += [y[:, :1]] if y.ndim > 2 and y.shape[1] > 1 else []
    wrong += [y[:1], np.concatenate([y, y])] if case.name != "flatten" and not case.name.startswith("avg") else []
    if case.name.startswith("avg"):
        wrong.pop(2)  # its own channels and batch are dy's
    for dy in wrong:
        for need_dx in (True, False):
            with pytest.raises(ValueError, match=re.escape(f"dy has shape {dy.shape}; y has ")):
                layer.backward(params, saved, dy, need_dx=need_dx)


def test_a_dy_that_would_be_spread_is_refused_in_a_network():
    model = Sequential([L.Conv2D(2, 3), L.AvgPool2D(2)])
    params = model.init((6, 6, 1), RNG(0))
    _, saved = model.forward(params, np.ones((4, 6, 6, 1), np.float32), train=True)
    message = "dy has shape (4, 1, 1, 2); y has (4, 2, 2, 2)"
    with pytest.raises(ValueError, match=re.escape(message)):
        model.backward(params, saved, np.ones((4, 1, 1, 2), np.float32))


@pytest.mark.parametrize("layer", [L.ReLU(), L.GELU(), L.Affine(2), L.BatchNorm()])
def test_backward_of_a_forward_that_kept_nothing_says_so(layer):
    params = layer.init((3,), RNG(0))
    y, saved = layer.forward(params, np.ones((4, 3), np.float32))
    with pytest.raises(ValueError, match="nothing was saved for backward; run forward with train=True"):
        layer.backward(params, saved, y)


# Weights and plans.


def sizes(weights):
    """The same tree with (shape) in place of each Weight, as tuples."""
    return {name: sizes(w) if isinstance(w, dict) else w.shape for name, w in weights.items()}


@pytest.mark.parametrize("case", **by_name())
def test_weights_say_the_names_and_shapes_that_init_makes(case):
    def shapes(params):
        return {name: shapes(p) if isinstance(p, dict) else p.shape for name, p in params.items()}

    assert sizes(case.layer.weights(case.small)) == shapes(case.layer.init(case.small, RNG(0)))


def test_a_plan_says_which_inputs_are_kept_and_saves_input_is_short_for_the_first():
    assert Plan(saves_input=True) == Plan(saves_inputs=(0,)) and Plan(saves_input=True).saves_inputs == (0,)
    assert Plan(saves_inputs=(0, 2)).saves_input and not Plan().saves_input
    assert Product().plan((4, 3), (3, 5), batch=7, dtype=np.float32).saves_inputs == (0, 1)
    assert Product().plan((4, 3), (3, 5), batch=7, dtype=np.float32, train=False).saves_inputs == ()


def test_a_plan_without_a_batch_takes_whole_shapes():
    for layer in (L.GELU(), L.ReLU(), L.LayerNorm()):
        assert layer.plan((7, 4, 3), batch=None, dtype=np.float32) == layer.plan((4, 3), batch=7, dtype=np.float32)


def test_a_plan_of_shapes_in_numpys_integers_is_that_of_pythons():
    shape = (2048, 2048, 3)
    for layer in (L.Conv2D(64, 3, padding=1), L.GELU(), L.MaxPool2D(2), L.BatchNorm()):
        narrow = layer.plan(tuple(np.array(shape, np.int32)), batch=np.int32(1000), dtype=np.float32)
        assert narrow == layer.plan(shape, batch=1000, dtype=np.float32)
        assert type(narrow.own) is type(narrow.backward_workspace) is int


# Several inputs.


@dataclass(frozen=True)
class Product(Layer):
    """The product of two matrices for each sample, and of each with a scale.  (A, B), (B, C) -> (A, C)."""

    keeps = "x"

    def weights(self, left, right):
        return {"W": Weight((left[0], right[1]), he)}

    def out_shape(self, left, right):
        if left[1] != right[0]:
            raise ValueError(f"{left} and {right} do not fit")
        return left[0], right[1]

    def apply(self, params, left, right, *, out=None, **_):
        y = np.matmul(left, right, out=out)
        y *= params["W"]
        return y, {}

    def gradient(self, params, saved, dy, *, need_dx, **_):
        left, right = saved
        scaled = dy * params["W"]
        dW = (dy * (left @ right)).sum(axis=0)
        if not need_dx:
            return None, {"W": dW}
        return (scaled @ right.swapaxes(1, 2), left.swapaxes(1, 2) @ scaled), {"W": dW}


def test_a_layer_of_several_inputs_takes_them_in_order_and_gives_a_dx_for_each():
    layer, rng = Product(), RNG(0)
    left, right = rng.standard_normal((2, 4, 3)), rng.standard_normal((2, 3, 5))
    params = layer.init(((4, 3), (3, 5)), rng, np.float64)
    assert params["W"].shape == layer.out_shape((4, 3), (3, 5)) == (4, 5)
    y, saved = layer.forward(params, left, right, train=True)
    assert saved[0] is left and saved[1] is right
    dy = rng.standard_normal(y.shape)
    (dleft, dright), grads = layer.backward(params, saved, dy)
    assert dleft.shape == left.shape and dright.shape == right.shape and grads["W"].shape == (4, 5)
    step = 1e-6 * rng.standard_normal(left.shape)
    change = ((layer.forward(params, left + step, right)[0] - y) * dy).sum()
    np.testing.assert_allclose(change, (dleft * step).sum(), rtol=1e-6)
    with pytest.raises(ValueError, match="dy has shape"):
        layer.backward(params, saved, dy[:1])
    with pytest.raises(ValueError, match=r"\(4, 3\) and \(2, 5\) do not fit"):
        layer.forward(params, left, right[:, :2])
    with pytest.raises(TypeError, match="expected a float array, got int64"):
        layer.forward(params, left, right.astype(np.int64))
    wide = layer.forward(params, left.astype(np.float32), right)[0]
    assert wide.dtype == np.float64


def test_out_of_forward_is_filled_and_returned():
    x = RNG(0).standard_normal((3, 4, 4, 2)).astype(np.float32)
    for layer in (L.ReLU(), L.Conv2D(2, 3, padding=1), L.BatchNorm(), L.GELU()):
        params, out = layer.init((4, 4, 2), RNG(0)), np.empty_like(x)
        y, saved = layer.forward(params, x, train=True, out=out)
        assert y is out and same_bits([y, saved], list(layer.forward(params, x, train=True)))
        dx, grads = layer.backward(params, saved, x)
        into = np.empty_like(x)
        assert layer.backward(params, saved, x, out=into)[0] is into
        assert same_bits([into, grads], [dx, grads])


# Who may overwrite dy.


def test_of_a_residual_with_relu_on_both_branches_neither_branch_may_overwrite_the_shared_dy():
    """y = relu(a) + relu(b): both branches are handed one dy, so neither may write over it; a copy may be written over."""
    rng, relu = RNG(0), L.ReLU()
    a, b, dy = (rng.standard_normal((5, 3)).astype(np.float32) for _ in range(3))
    (_, saved_a), (_, saved_b) = relu.forward({}, a, train=True), relu.forward({}, b, train=True)
    before = dy.copy()
    da, db = (relu.backward({}, saved, dy)[0] for saved in (saved_a, saved_b))
    np.testing.assert_array_equal(dy, before)
    np.testing.assert_array_equal(da, dy * (a > 0))
    np.testing.assert_array_equal(db, dy * (b > 0))
    assert not np.shares_memory(da, dy) and not np.shares_memory(da, db)
    shared = dy.copy()  # what goes wrong if the first branch is told that dy is its own
    relu.backward({}, saved_a, shared, overwrite_dy=True)
    wrong = relu.backward({}, saved_b, shared, overwrite_dy=True)[0]
    assert not np.array_equal(wrong, db)


# A layer as a reader writes one: five methods, no base, `plan` as it was called before.


class Halve:
    def init(self, in_shape, rng, dtype=np.float32):
        return {}

    def out_shape(self, in_shape):
        return in_shape

    def forward(self, params, x, *, train=False, rng=None):
        return x * x.dtype.type(0.5), None

    def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
        return dy * dy.dtype.type(0.5), {}

    def plan(self, in_shape, batch, dtype, *, train=True):
        return Plan()


class HalveByKeyword(Halve):
    def plan(self, *in_shapes, batch, dtype, train=True):
        return Plan()


@pytest.mark.parametrize("layer", [Halve(), HalveByKeyword()])
def test_a_plain_class_with_the_five_methods_is_a_layer_everywhere(layer):
    model = Sequential([L.Affine(8), layer, L.Affine(3)])
    params = model.init((4,), RNG(0))
    x, labels = RNG(1).standard_normal((20, 4)).astype(np.float32), np.arange(20) % 3
    bill = memory.bill(model, (4,), batch_size=20)
    assert memory.ledger(model, params, x, labels).compare(bill).agree
    assert max(check_layer(model, (4,), 3, RNG(2)).values()) < 1e-6
    _, saved = model.forward(params, x, train=True)
    assert model.statistics(saved) == {}
    model.update_buffers(params, saved)
    assert tree.count(params) == 4 * 8 + 8 + 8 * 3 + 3


def test_only_a_layer_with_running_state_has_statistics():
    model = Sequential([L.Affine(3), L.BatchNorm(), L.ReLU()])
    params = model.init((4,), RNG(0))
    _, saved = model.forward(params, np.eye(4, dtype=np.float32), train=True)
    assert model.statistics(saved).keys() == {"batchnorm_1"}
    before = tree.copy(params)
    model.update_buffers(params, saved)
    assert not same_bits(params["batchnorm_1"], before["batchnorm_1"]) and same_bits(
        params["affine_1"], before["affine_1"]
    )
