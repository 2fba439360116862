"""A large gradient that is updated from its factors, block by block: never whole."""

import numpy as np
import pytest
from helpers import assert_close, blobs, same_bits

from dlcourse import layers as L
from dlcourse import memory, models, optim, tree
from dlcourse.diagnose import first_non_finite_gradient
from dlcourse.factors import Factors
from dlcourse.gradients import gradients
from dlcourse.model import Sequential
from dlcourse.train import NonFiniteLoss, fit

OPTIMIZERS = [optim.SGD(0.1, weight_decay=0.1), optim.Adam(), optim.Adam8bit(), optim.Adafactor()]


def some_factors(rng, d_in, d_out, rows=(3, 5, 2), dtype=np.float64):
    """Columns of a matrix of small whole numbers: their products are exact, in any order."""
    return Factors(
        tuple(
            (rng.integers(-3, 4, (m, d_in)).astype(dtype), rng.integers(-3, 4, (m, d_out)).astype(dtype)) for m in rows
        )
    )


@pytest.mark.parametrize("parts", [(10,), (3, 5, 2)])
@pytest.mark.parametrize(("d_in", "d_out"), [(30, 7), (5, 40), (40, 16), (1, 3)])
@pytest.mark.parametrize("numbers", [1, 16, 100])
def test_each_slice_is_that_of_the_product(parts, d_in, d_out, numbers):
    factors = some_factors(np.random.default_rng(0), d_in, d_out, parts)
    flat, blocks = factors.product().reshape(-1), factors.flat
    for start in range(0, factors.size, numbers):
        assert (blocks[start : start + numbers] == flat[start : start + numbers]).all()


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("shape", [(300, 512), (300, 500), (5, 40_000), (512, 3)])
def test_an_update_by_factors_is_that_by_the_product(optimizer, shape):
    """To the bit, since the products are exact."""
    rng = np.random.default_rng(0)
    factors = some_factors(rng, *shape, dtype=np.float32)
    ends = []
    for grad in (factors, factors.product()):
        params = {"W": np.linspace(-1, 1, factors.size, dtype=np.float32).reshape(shape)}
        slots = optimizer.init(params)
        for _ in range(3):
            optimizer.update(params, {"W": grad}, slots)
        ends.append([params, {name: slot for name, slot in slots.items() if name != "step"}])
    assert same_bits(*ends)


def test_the_norm_of_factors_is_that_of_the_product_and_clipping_scales_it():
    factors = some_factors(np.random.default_rng(0), 300, 100)
    product = factors.product()
    norm = optim.clip_by_norm({"W": factors}, 1.0)
    assert norm == pytest.approx(np.linalg.norm(product), rel=1e-12)
    assert_close(factors.product(), product / norm, 1e-12)


@pytest.mark.parametrize(
    ("x", "dy", "finite"),
    [(1.0, 1.0, True), (np.nan, 1.0, False), (1.0, np.inf, False), (1e30, 1e30, False), (1e30, 1e-30, True)],
)
def test_a_product_that_is_not_finite_is_found_without_making_it(x, dy, finite):
    factors = Factors(((np.full((3, 50), x, np.float32), np.full((3, 70), dy, np.float32)),))
    with np.errstate(all="ignore"):
        assert factors.is_finite() == finite
        assert (first_non_finite_gradient({"affine_1": {"W": factors}}) is None) == finite


def test_a_product_whose_bound_overflows_and_which_does_not_is_finite():
    x, dy = np.zeros((2, 40), np.float32), np.zeros((2, 50), np.float32)
    x[0], dy[1] = 1e30, 1e30
    assert Factors(((x, dy),)).is_finite()


@pytest.mark.parametrize("micro_batch", [None, 5])
@pytest.mark.parametrize("clip_norm", [None, 0.05])
def test_training_by_factors_is_the_same_within_rounding(micro_batch, clip_norm):
    model = Sequential([L.Flatten(), L.Affine(64), L.ReLU(), L.Affine(10)])
    data, ends = blobs(60, (8, 8, 2)), []
    for factored in (True, False):
        params = model.init((8, 8, 2), np.random.default_rng(0), np.float64)
        fit(model, params, data, optimizer=optim.SGD(0.1), batch_size=20, micro_batch=micro_batch, progress=False,
            clip_norm=clip_norm, factored=factored)  # fmt: skip
        ends.append(params)
    for a, b in zip(*map(tree.leaves, ends), strict=True):
        np.testing.assert_allclose(a, b, rtol=0, atol=1e-12)


def test_a_step_that_overflows_is_refused_before_the_update():
    model = Sequential([L.Flatten(), L.Affine(64), L.Affine(10)])
    data = blobs(20, (8, 8, 2))
    data.x = data.x.astype(np.float32) * np.float32(1e30)
    params = model.init((8, 8, 2), np.random.default_rng(0))
    params["affine_1"]["W"] *= 1e-36
    params["affine_2"]["W"] *= 1e9
    before = tree.copy(params)
    with np.errstate(all="ignore"), pytest.raises(NonFiniteLoss):
        fit(model, params, data, optimizer=optim.SGD(), batch_size=20, micro_batch=5, progress=False, factored=True)
    assert same_bits(params, before)


@pytest.mark.parametrize("optimizer", OPTIMIZERS, ids=lambda one: type(one).__name__)
@pytest.mark.parametrize("micro_batch", [None, 4, 5])
@pytest.mark.parametrize("units", [1024, 1000])
def test_the_bill_of_a_factored_step_is_that_of_the_ledger(optimizer, micro_batch, units):
    rng, model = (
        np.random.default_rng(0),
        Sequential([L.Affine(units), L.ReLU(), L.Affine(units), L.ReLU(), L.Affine(10)]),
    )
    params = model.init((256,), rng)
    x, labels = rng.standard_normal((16, 256), dtype=np.float32), rng.integers(0, 10, 16)
    options = {"optimizer": optimizer, "micro_batch": micro_batch, "factored": True}
    bill = memory.bill(model, (256,), batch_size=16, **options)
    comparison = memory.ledger(model, params, x, labels, **options).compare(bill)
    assert "products" not in {moment.name for moment in bill.moments}
    assert comparison.agree, str(comparison)
    assert bill.peak < memory.bill(model, (256,), batch_size=16, **(options | {"factored": False})).peak - 2**21


def test_gradients_hand_on_the_factors():
    model = models.mlp()
    params = model.init((8, 8, 1), np.random.default_rng(0))
    x, labels = np.ones((12, 8, 8, 1), np.float32), np.arange(12) % 10
    assert isinstance(gradients(model, params, x, labels, factored=True)[1]["affine_1"]["W"], Factors)
    assert isinstance(gradients(model, params, x, labels)[1]["affine_1"]["W"], np.ndarray)
