"""Packed: bits give the same gradients to the bit, halves the same to 8 bits, and the bill knows both."""

import numpy as np
import pytest
from helpers import same_bits

from dlcourse import layers as L
from dlcourse import memory, optim, tree
from dlcourse.gradients import gradients
from dlcourse.layers.packed import upper_halves, whole_floats
from dlcourse.model import Sequential

RNG = np.random.default_rng


def network(wrap):
    layers = [
        L.Conv2D(8, 3),
        L.ReLU(),
        L.MaxPool2D(2),
        L.Dropout(0.3),
        L.Conv2D(9, 3),
        L.LeakyReLU(0.1),
        L.MaxPool2D(2),
    ]
    return Sequential([*map(wrap, layers), L.Flatten(), wrap(L.Affine(30)), wrap(L.ReLU()), L.Affine(10)])


def bits(layer):
    return L.Packed(layer) if isinstance(layer, L.ReLU | L.Dropout) else layer


def everything(layer):
    return layer if isinstance(layer, L.MaxPool2D) else L.Packed(layer)


def one_step(model, dtype=np.float32, **cut):
    params = model.init((20, 20, 3), RNG(0), dtype)
    x, labels = RNG(1).standard_normal((24, 20, 20, 3)).astype(dtype), np.arange(24) % 10
    return gradients(model, params, x, labels, **cut)


def test_names_and_parameters_are_those_of_the_inner_layers():
    plain, packed = network(lambda layer: layer), network(everything)
    assert plain.names == packed.names
    assert same_bits(plain.init((20, 20, 3), RNG(0)), packed.init((20, 20, 3), RNG(0)))


@pytest.mark.parametrize("cut", [{}, {"micro_batch": 5, "workers": 2}])
def test_bits_give_the_same_loss_and_gradients_to_the_bit(cut):
    assert same_bits(list(one_step(network(lambda layer: layer), **cut))[1:], list(one_step(network(bits), **cut))[1:])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_halves_change_no_output_and_gradients_by_less_than_a_hundredth(dtype):
    loss, grads = one_step(network(lambda layer: layer), dtype)
    loss_packed, packed = one_step(network(everything), dtype)
    assert loss == loss_packed
    for name, g in tree.items(grads):
        other = dict(tree.items(packed))[name]
        assert other.dtype == dtype
        assert np.linalg.norm(other - g) < (1e-2 if dtype == np.float32 else 1e-6) * np.linalg.norm(g), name


@pytest.mark.parametrize(("dtype", "kept"), [(np.float32, 7), (np.float64, 20)])
def test_a_float_comes_back_in_the_middle_of_its_step_and_zero_as_zero(dtype, kept):
    x = RNG(0).standard_normal((1000, 7)).astype(dtype)
    x[::3] = 0
    halves = upper_halves(x[:, ::2])  # of a view too
    back = whole_floats(halves, dtype)
    x = x[:, ::2]
    assert halves.nbytes == x.size * x.itemsize // 2
    assert back.dtype == dtype and (back[x == 0] == 0).all()
    off = (back - x)[x != 0] / x[x != 0]
    assert np.abs(off).max() <= 2.0 ** -(kept + 1)
    assert abs(off.mean()) < 2.0 ** -(kept + 5)


@pytest.mark.parametrize("wrap", [bits, everything])
@pytest.mark.parametrize("cut", [{}, {"micro_batch": 8}])
def test_the_bill_of_packed_layers_is_that_of_the_ledger(wrap, cut):
    model = Sequential([*network(wrap).layers])
    params = model.init((60, 60, 3), RNG(0))
    x, labels = RNG(1).standard_normal((32, 60, 60, 3), dtype=np.float32), np.arange(32) % 10
    options = {"optimizer": optim.Adam(), **cut}
    bill = memory.bill(model, (60, 60, 3), batch_size=32, **options)
    comparison = memory.ledger(model, params, x, labels, **options).compare(bill)
    assert comparison.agree, str(comparison)


def test_an_eighth_of_a_byte_waits_where_it_was_four():
    plain, packed = (
        Sequential([layer, L.MaxPool2D(2), L.Flatten(), L.Affine(2)]) for layer in (L.ReLU(), L.Packed(L.ReLU()))
    )
    rows = [memory.bill(model, (8, 8, 32), batch_size=10).rows[0].saved for model in (plain, packed)]
    assert rows == [10 * 8 * 8 * 32 * 4, 10 * 8 * 8 * 32 // 8 + 32]


def test_a_dy_of_another_shape_is_refused():
    layer = L.Packed(L.ReLU())
    _, saved = layer.forward({}, np.ones((3, 7), np.float32), train=True)
    with pytest.raises(ValueError, match=r"dy has shape \(3, 8\); y has \(3, 7\)"):
        layer.backward({}, saved, np.ones((3, 8), np.float32))


def test_evaluation_keeps_nothing_and_dropout_of_nothing_is_the_identity():
    x = np.ones((3, 7), np.float32)
    for layer in (L.ReLU(), L.Dropout(0.0), L.Dropout(0.5)):
        assert L.Packed(layer).forward({}, x)[1] is None
    y, saved = L.Packed(L.Dropout(0.0)).forward({}, x, train=True, rng=RNG(0))
    assert y is x and saved is None
    assert L.Packed(L.Dropout(0.0)).backward({}, saved, x)[0] is x


@pytest.mark.parametrize("layer", [L.MaxPool2D(2), L.BatchNorm(), L.Sigmoid(), 3, L.ReLU])
def test_what_cannot_be_packed_is_refused(layer):
    with pytest.raises(TypeError, match="Packed: expected ReLU, Dropout or a layer that keeps its input"):
        L.Packed(layer)
