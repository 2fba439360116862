"""What comes into the bill, the ledger and `gradients`: NumPy's numbers, and what is refused."""

import json

import numpy as np
import pytest
from helpers import blobs

from dlcourse import layers as L
from dlcourse import memory, models, optim, tree
from dlcourse.gradients import gradients
from dlcourse.model import Sequential


def test_numpy_numbers_are_numbers():
    plain = memory.bill(
        Sequential([L.Conv2D(64, 3, padding=1)]), (2048, 2048, 3), batch_size=100, micro_batch=50, workers=2
    )
    shape = tuple(np.array([2048, 2048, 3], np.int32))
    sizes = {"batch_size": np.int32(100), "micro_batch": np.int16(50), "workers": np.uint8(2)}
    bill = memory.bill(Sequential([L.Conv2D(64, 3, padding=1)]), shape, **sizes)
    assert bill.peak == plain.peak > 2**31
    assert json.loads(json.dumps(bill.to_dict())) == plain.to_dict()
    assert memory.bill(Sequential([L.Conv2D(64, 3, padding=1)]), np.array([2048, 2048, 3]), **sizes).peak == plain.peak


def test_numpy_numbers_cut_a_batch_as_numbers_do():
    model, data = models.mlp(), blobs(30)
    params = model.init((8, 8, 1), np.random.default_rng(0))
    plain = gradients(model, params, data.x, data.y, micro_batch=7, workers=2, seed=3, step=1)
    sizes = {"micro_batch": np.int8(7), "workers": np.int64(2), "seed": np.uint8(3), "step": np.int16(1)}
    other = gradients(model, params, data.x, data.y, **sizes)
    assert plain[0] == other[0]
    assert all(np.array_equal(a, b) for a, b in zip(tree.leaves(plain[1]), tree.leaves(other[1]), strict=True))
    ledger = memory.ledger(model, params, data.x, data.y, micro_batch=np.int8(7), workers=np.int8(1))
    assert ledger.compare(memory.bill(model, (8, 8, 1), batch_size=30, micro_batch=7)).agree


@pytest.mark.parametrize(
    ("model", "options", "message"),
    [
        (models.mlp(), {"optimizer": optim.Adam}, "optimizer must be one of dlcourse.optim, such as optim.Adam"),
        (models.mlp(), {"optimizer": "adam"}, "optimizer must be one of dlcourse.optim, such as optim.Adam"),
        (L.Affine(3), {}, r"model must be a Sequential, such as .*; got Affine"),
        ([L.Affine(3)], {}, r"model must be a Sequential, such as .*; got "),
        (models.mlp, {}, r"model must be a Sequential, such as .*; got "),
        (Sequential, {}, r"model must be a Sequential, such as .*; got "),
    ],
)
def test_what_is_no_network_or_no_optimizer_is_refused_in_words(model, options, message):
    data = blobs(5)
    for run in (
        lambda: memory.bill(model, (8, 8, 1), batch_size=5, **options),
        lambda: memory.admit(model, (8, 8, 1), options.get("optimizer"), budget="1 GiB"),
        lambda: memory.ledger(model, {}, data.x, data.y, **options),
        *([] if options else [lambda: gradients(model, {}, data.x, data.y)]),
    ):
        with pytest.raises(TypeError, match=message):
            run()


@pytest.mark.parametrize("in_shape", [64, None, "ab", (2.5, 3), ((4,), (5,))])
def test_what_is_no_shape_is_refused_in_words(in_shape):
    model = models.mlp()
    for run in (
        lambda: memory.bill(model, in_shape, batch_size=5),
        lambda: model.init(in_shape, np.random.default_rng(0)),
        lambda: model.out_shape(in_shape),
    ):
        with pytest.raises(TypeError, match="in_shape must be the shape of one input without the batch axis, such as"):
            run()


def test_names_of_deferred_layers_are_looked_at():
    model, data = models.mlp(), blobs(12)
    params = model.init((8, 8, 1), np.random.default_rng(0))
    for defer in (["affine_3"], "relu_1", ("affine_1", "flatten_1")):
        for run in (
            lambda defer=defer: gradients(model, params, data.x, data.y, micro_batch=4, defer=defer),
            lambda defer=defer: memory.bill(model, (8, 8, 1), batch_size=12, micro_batch=4, defer=defer),
        ):
            with pytest.raises(ValueError, match="which is no affine layer of this network"):
                run()
    one, other = (gradients(model, params, data.x, data.y, micro_batch=4, defer=d) for d in ("affine_1", ["affine_1"]))
    assert all(np.array_equal(a, b) for a, b in zip(tree.leaves(one[1]), tree.leaves(other[1]), strict=True))


def test_a_bill_is_in_floats():
    with pytest.raises(TypeError, match="dtype is int32; a network computes in floats"):
        memory.bill(models.mlp(), (8, 8, 1), batch_size=5, dtype="int32")


def test_a_size_below_zero_and_a_network_without_layers_are_refused():
    with pytest.raises(ValueError, match="no size may be below 0"):
        memory.bill(models.mlp(), (8, -8, 1), batch_size=5)
    with pytest.raises(ValueError, match="the network has no layers"):
        memory.bill(Sequential([]), (8,), batch_size=5)
