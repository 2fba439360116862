"""Recompute: the bits of the plain chain, in fewer saved bytes."""

import numpy as np
import pytest

from dlcourse import layers as L
from dlcourse import memory, optim, tree
from dlcourse.gradients import gradients
from dlcourse.layers.blocks import generator_of, generator_state
from dlcourse.losses import softmax_cross_entropy
from dlcourse.model import Sequential
from dlcourse.train import fit

BLOCKS = {
    "dropout and batch norm": lambda: [L.Affine(24), L.BatchNorm(), L.ReLU(), L.Dropout(0.3), L.Affine(16), L.Tanh()],
    "nothing drawn": lambda: [L.Affine(24), L.ReLU(), L.Affine(16)],
    "one layer": lambda: [L.Affine(16)],
    "begins without parameters": lambda: [L.ReLU(), L.Dropout(0.5), L.Affine(16)],
    "a recompute inside": lambda: [L.Affine(8), L.Recompute([L.Affine(24), L.Dropout(0.3), L.ReLU()]), L.Affine(16)],
}


def both(block):
    """-> the network with the block's layers in the chain, and with them in a Recompute."""
    ends = lambda middle: Sequential([L.Flatten(), L.Affine(20), *middle, L.ReLU(), L.Affine(5)])
    return ends(block()), ends([L.Recompute(block())])


def as_inner(params, names):
    """The chain's parameters under the names of the other network."""
    flat = [leaf for _, leaf in tree.items(params)]
    return tree.unflatten(dict(zip([name for name, _ in tree.items(names)], flat, strict=True)), names)


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("cut", [{}, {"micro_batch": 4, "workers": 2}])
def test_loss_and_gradients_are_those_of_the_plain_chain_to_the_bit(name, cut):
    plain, small = both(BLOCKS[name])
    params = plain.init((3, 4), np.random.default_rng(0))
    inner = as_inner(params, small.init((3, 4), np.random.default_rng(0)))
    x = np.random.default_rng(1).standard_normal((12, 3, 4), dtype=np.float32)
    labels = np.arange(12) % 5
    loss, grads = gradients(plain, params, x, labels, **cut)
    loss_again, grads_again = gradients(small, inner, x, labels, **cut)
    assert loss == loss_again
    for one, other in zip(tree.leaves(grads), tree.leaves(grads_again), strict=True):
        assert np.array_equal(one, other)


def test_running_statistics_move_once_and_by_the_first_pass():
    plain, small = both(BLOCKS["dropout and batch norm"])
    start = plain.init((3, 4), np.random.default_rng(0))
    inner = as_inner(start, small.init((3, 4), np.random.default_rng(0)))
    data = type(
        "Data",
        (),
        {"x": np.random.default_rng(1).standard_normal((40, 3, 4), dtype=np.float32), "y": np.arange(40) % 5},
    )
    for model, params in ((plain, start), (small, inner)):
        fit(model, params, data, optimizer=optim.Adam(), epochs=2, batch_size=10, micro_batch=5, progress=False)
    for one, other in zip(tree.leaves(start), tree.leaves(inner), strict=True):
        assert np.array_equal(one, other)


def test_the_input_and_the_state_are_all_that_is_kept():
    layer = L.Recompute(BLOCKS["dropout and batch norm"]())
    params = layer.init((20,), np.random.default_rng(0))
    x = np.ones((6, 20), np.float32)
    _, saved = layer.forward(params, x, train=True, rng=np.random.default_rng(0))
    assert saved["x"] is x
    assert saved["state"].nbytes == 48
    assert tree.nbytes(saved["statistics"]) == 2 * 24 * 4
    assert (
        L.Recompute([L.Affine(3), L.ReLU()]).forward(
            {"affine_1": {"W": np.ones((20, 3), np.float32), "b": np.zeros(3, np.float32)}}, x, train=True
        )[1]
        is x
    )


@pytest.mark.parametrize("name", BLOCKS)
@pytest.mark.parametrize("cut", [{}, {"micro_batch": 64}])
def test_the_bill_knows_it(name, cut):
    model = Sequential([L.Affine(64), L.Recompute([*BLOCKS[name](), L.Affine(64)]), L.ReLU(), L.Affine(5)])
    params = model.init((96,), np.random.default_rng(0))
    x, labels = np.random.default_rng(1).standard_normal((256, 96), dtype=np.float32), np.arange(256) % 5
    bill = memory.bill(model, (96,), batch_size=256, optimizer=optim.Adam(), **cut)
    comparison = memory.ledger(model, params, x, labels, optimizer=optim.Adam(), **cut).compare(bill)
    assert comparison.agree, comparison


def test_as_the_first_layer_it_makes_no_dx():
    model = Sequential([L.Recompute([L.Affine(300), L.ReLU(), L.Affine(300)]), L.Affine(5)])
    params = model.init((200,), np.random.default_rng(0))
    x, labels = np.random.default_rng(1).standard_normal((400, 200), dtype=np.float32), np.arange(400) % 5
    comparison = memory.ledger(model, params, x, labels).compare(memory.bill(model, (200,), batch_size=400))
    assert comparison.agree, comparison


def test_64_layers_in_blocks_of_8_keep_a_quarter_and_less():
    layers = [layer for _ in range(64) for layer in (L.Affine(64), L.ReLU())]
    blocks = [L.Recompute(layers[i : i + 16]) for i in range(0, 128, 16)]
    plain, small = Sequential([*layers, L.Affine(10)]), Sequential([*blocks, L.Affine(10)])
    rng = np.random.default_rng(0)
    params = plain.init((64,), rng)
    x, labels = rng.standard_normal((1024, 64), dtype=np.float32), np.arange(1024) % 10
    inner = as_inner(params, small.init((64,), rng))
    ledgers = [memory.ledger(model, own, x, labels) for model, own in ((plain, params), (small, inner))]
    # The block that is being run again has its arrays at the same time: that is in its workspace.
    kept = [max(ledger.moments.values()) - ledger.total("params") - ledger.total("data") for ledger in ledgers]
    assert kept[0] >= 3.5 * kept[1], kept
    assert ledgers[0].total("saved") >= 7 * ledgers[1].total("saved")
    assert not ledgers[1].compare(memory.bill(small, (64,), batch_size=1024)).off
    for one, other in zip(
        tree.leaves(gradients(plain, params, x, labels)), tree.leaves(gradients(small, inner, x, labels)), strict=True
    ):
        assert np.array_equal(one, other)


def test_a_generator_goes_on_from_its_state():
    rng = np.random.default_rng(3)
    rng.random(5, np.float32)  # half a draw is left over
    again = generator_of(generator_state(rng))
    assert np.array_equal(rng.random(9, np.float32), again.random(9, np.float32))


@pytest.mark.parametrize(
    ("layers", "error", "text"),
    [
        ([], TypeError, "expected layers"),
        (L.ReLU(), TypeError, "expected layers"),
        ([L.ReLU], TypeError, "layer 1 is"),
        ([type("Mine", (), {"forward": None})()], TypeError, "'mine_1' must be derived from Layer"),
    ],
)
def test_what_is_no_chain_of_layers_is_refused(layers, error, text):
    with pytest.raises(error, match=text):
        L.Recompute(layers)


def test_an_error_names_the_inner_layer():
    model = Sequential([L.Recompute([L.Affine(3), L.Conv2D(2, 3)])])
    with pytest.raises(ValueError, match=r"Recompute 'recompute_1': Conv2D 'conv2d_1': "):
        model.init((5,), np.random.default_rng(0))
    drawing = Sequential([L.Recompute([L.Dropout(0.5)])])
    with pytest.raises(TypeError, match="MT19937"):
        drawing.forward({}, np.ones((2, 3), np.float32), train=True, rng=np.random.Generator(np.random.MT19937(0)))


def test_evaluation_keeps_nothing_and_draws_nothing():
    layer = L.Recompute(BLOCKS["dropout and batch norm"]())
    params = layer.init((20,), np.random.default_rng(0))
    y, saved = layer.forward(params, np.ones((6, 20), np.float32))
    assert saved is None
    assert y.shape == (6, 16)


def test_softmax_and_a_view_at_the_end_are_no_trouble():
    layer = L.Recompute([L.ReLU(), L.Flatten()])
    x = np.random.default_rng(0).standard_normal((4, 3, 2), dtype=np.float32)
    y, saved = layer.forward({}, x, train=True)
    _, dy = softmax_cross_entropy(y, np.zeros(4, int))
    dx, _ = layer.backward({}, saved, dy)
    assert dx.shape == x.shape
