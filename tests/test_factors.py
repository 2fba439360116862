"""Gradients of micro-batches that are kept as their factors until all are there."""

import numpy as np
import pytest
from helpers import assert_close, blobs, same_bits

from dlcourse import layers as L
from dlcourse import losses, memory, models, optim, tree
from dlcourse.factors import Factors, multiply_out
from dlcourse.gradients import deferred, gradients
from dlcourse.model import Sequential
from dlcourse.train import fit


def normal(rng, *shape, dtype=np.float64):
    return rng.standard_normal(shape).astype(dtype)


@pytest.fixture
def rng():
    """A generator of each test's own: one test alone sees the same numbers as the whole file does."""
    return np.random.default_rng(0)


def test_the_product_is_the_sum_over_the_parts(rng):
    parts = [(normal(rng, m, 5), normal(rng, m, 3)) for m in (1, 4, 2)]
    whole = sum((Factors((part,)) for part in parts[1:]), Factors((parts[0],)))
    assert_close(whole.product(), sum(x.T @ dy for x, dy in parts), 1e-12)


def test_multiplying_out_leaves_arrays_where_arrays_were(rng):
    W, b = normal(rng, 5, 3), normal(rng, 3)
    grads = {
        "block": {"affine_1": {"W": Factors(((normal(rng, 2, 5), normal(rng, 2, 3)),)), "b": b}},
        "affine_2": {"W": W},
    }
    multiply_out(grads)
    assert grads["block"]["affine_1"]["W"].shape == (5, 3)
    assert grads["block"]["affine_1"]["b"] is b and grads["affine_2"]["W"] is W


NETWORKS = {
    "affine at the input": (Sequential([L.Affine(64), L.ReLU(), L.Affine(10)]), (96,)),
    "behind a convolution": (Sequential([L.Conv2D(4, 3), L.ReLU(), L.Dropout(0.0), L.Flatten(), L.Affine(80), L.Affine(10)]), (9, 9, 3)),
    "a sequence": (Sequential([L.Affine(64), L.ReLU(), L.Flatten(), L.Affine(10)]), (2, 96)),
    "a block in a block": (Sequential([Sequential([L.Affine(64), L.Sigmoid()]), L.Affine(10)]), (96,)),
}  # fmt: skip


@pytest.mark.parametrize("name", NETWORKS)
@pytest.mark.parametrize("micro_batch", [1, 3, 5])
def test_micro_batches_give_the_gradient_of_the_whole_batch(rng, name, micro_batch):
    model, in_shape = NETWORKS[name]
    x, labels = normal(rng, 12, *in_shape), rng.integers(0, 10, 12)
    params = model.init(in_shape, np.random.default_rng(1), np.float64)
    names = deferred(model, in_shape, 12)
    saved = model.forward(params, x, train=True, rng=rng)[1]
    handed = model.backward(params, saved, normal(rng, 12, 10), release=True, defer=names)[1]
    assert {name for name, own in handed.items() if isinstance(own["W"], Factors)} == names != set()
    _, whole = gradients(model, params, x, labels)
    _, cut = gradients(model, params, x, labels, micro_batch=micro_batch)
    _, by_two = gradients(model, params, x, labels, micro_batch=micro_batch, workers=2)
    _, at_once = gradients(model, params, x, labels, micro_batch=micro_batch, defer=())
    assert [key for key, _ in tree.items(cut)] == [key for key, _ in tree.items(whole)]
    for other in (cut, at_once):
        for a, b in zip(tree.leaves(whole), tree.leaves(other), strict=True):
            assert_close(b, a, 1e-12)
    assert same_bits(cut, by_two)


def test_float32_stays_float32(rng):
    model = models.mlp()
    params = model.init((8, 8, 1), np.random.default_rng(0))
    x, labels = normal(rng, 12, 8, 8, 1, dtype=np.float32), rng.integers(0, 10, 12)
    assert {g.dtype for g in tree.leaves(gradients(model, params, x, labels, micro_batch=4)[1])} == {
        np.dtype("float32")
    }


def test_many_rows_or_a_small_matrix_are_multiplied_at_once():
    def pays(units, in_shape, batch):
        return deferred(Sequential([L.Affine(units)]), in_shape, batch) == {"affine_1"}

    assert pays(512, (4096,), 100)
    assert not pays(512, (4096,), 1000)
    assert not pays(10, (512,), 100)
    assert not pays(512, (64, 4096), 100)


def test_the_bill_asks_the_same_function_and_can_be_told_otherwise():
    model, sizes = models.cifar_cnn(), {"batch_size": 100, "micro_batch": 25}
    assert deferred(model, (32, 32, 3), 100) == {"affine_1"}
    with_, without = (memory.bill(model, (32, 32, 3), defer=defer, **sizes).peak for defer in (None, ()))
    assert without - with_ > 12 * 2**20
    assert with_ == memory.bill(model, (32, 32, 3), defer=["affine_1"], **sizes).peak


def test_a_step_that_is_told_to_defer_nothing_is_that_of_its_bill(rng):
    model, optimizer = Sequential([L.Affine(512), L.ReLU(), L.Affine(10)]), optim.SGD()
    params = model.init((256,), np.random.default_rng(0))
    x, labels = normal(rng, 16, 256, dtype=np.float32), rng.integers(0, 10, 16)
    options = {"optimizer": optimizer, "micro_batch": 4}
    for defer in ((), None):
        bill = memory.bill(model, (256,), batch_size=16, defer=defer, **options)
        comparison = memory.ledger(model, params, x, labels, defer=defer, **options).compare(bill)
        assert comparison.agree, str(comparison)


def test_training_without_deferring_gives_the_same_to_rounding():
    model = Sequential([L.Flatten(), L.Affine(64), L.ReLU(), L.Affine(10)])
    data = blobs(60, (8, 8, 2))
    ends = []
    for defer in (None, ()):
        params = model.init((8, 8, 2), np.random.default_rng(0), np.float64)
        fit(model, params, data, optimizer=optim.SGD(0.1), batch_size=20, micro_batch=5, progress=False, defer=defer)
        ends.append(params)
    assert not same_bits(*ends)
    for a, b in zip(*map(tree.leaves, ends), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


class Doubled(L.Affine):
    """A layer of somebody's own: its backward knows nothing of factors."""

    def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
        dx, grads = super().backward(params, saved, dy, need_dx=need_dx)
        return dx, {"W": 2 * grads["W"], "b": grads["b"]}


def test_a_layer_with_a_backward_of_its_own_is_asked_for_its_arrays(rng):
    x, labels = normal(rng, 12, 96), rng.integers(0, 10, 12)
    plain, doubled = Sequential([L.Affine(64), L.Affine(10)]), Sequential([Doubled(64), L.Affine(10)])
    params = plain.init((96,), np.random.default_rng(1), np.float64)
    renamed = {"doubled_1": params["affine_1"], "affine_1": params["affine_2"]}
    _, once = gradients(plain, params, x, labels, micro_batch=4)
    _, twice = gradients(doubled, renamed, x, labels, micro_batch=4)
    assert_close(twice["doubled_1"]["W"], 2 * once["affine_1"]["W"], 1e-12)


@pytest.mark.parametrize("batch", [16, 40])
@pytest.mark.parametrize(
    ("sizes", "in_shape"), [((1024, 1024, 10), (256,)), ((512, 10), (8, 8, 16)), ((2048, 8, 2048, 10), (64,))]
)
def test_the_bill_of_a_step_with_factors_is_that_of_the_ledger(rng, sizes, in_shape, batch):
    layers = [part for size in sizes for part in (L.Affine(size), L.ReLU())][:-1]
    model = Sequential([*([L.Flatten()] if len(in_shape) > 1 else []), *layers])
    params = model.init(in_shape, np.random.default_rng(0))
    x, labels = normal(rng, batch, *in_shape, dtype=np.float32), rng.integers(0, 10, batch)
    kinds = {"optimizer": optim.Adam(), "loss": losses.softmax_cross_entropy, "micro_batch": 8}
    comparison = memory.ledger(model, params, x, labels, **kinds).compare(
        bill := memory.bill(model, in_shape, batch_size=batch, **kinds)
    )
    assert "products" in {moment.name for moment in bill.moments}
    assert comparison.agree, str(comparison)


def test_the_peak_can_lie_where_factors_are_multiplied_out():
    model = Sequential([L.Affine(2048), L.ReLU(), L.Affine(10)])
    bill = memory.bill(model, (1024,), batch_size=64, micro_batch=16, optimizer=optim.SGD())
    assert bill.peak_at == "products"
