"""The ledger by layer and by moment: workspace, peaks, who needs what is kept, and where a bill is wrong."""

from dataclasses import dataclass

import numpy as np
import pytest
from helpers import blobs

from dlcourse import layers as L
from dlcourse import losses, memory, models, optim, tree
from dlcourse.gradients import Batch, batch_gradients
from dlcourse.memory.ledger import Watch
from dlcourse.model import Sequential

KIB = 1024
CNN = models.small_cnn()
EVERY_KIND = Sequential(
    [
        *(L.Conv2D(8, 3, padding=1), L.BatchNorm(), L.ReLU(), L.AvgPool2D(2), L.Dropout(0.3)),
        *(L.Conv2D(8, (3, 1), stride=(2, 1)), L.LayerNorm(), L.GELU(), L.MaxPool2D(2, stride=1), L.Flatten()),
        *(L.Affine(40), L.BatchNorm(), L.Tanh(), L.Affine(30), L.Sigmoid(), L.Affine(30), L.LeakyReLU(), L.Affine(10)),
    ]
)
NESTED = Sequential([Sequential([L.Conv2D(8, 3, padding=1), L.ReLU()]), L.Flatten(), Sequential([L.Affine(10)])])


def both(model, in_shape, batch, *, dtype="float32", **options):
    """-> bill, ledger of one step."""
    params = model.init(in_shape, rng=np.random.default_rng(0), dtype=np.dtype(dtype))
    data = blobs(batch, in_shape)
    ledger = memory.ledger(model, params, data.x, data.y, **options)
    return memory.bill(model, in_shape, batch_size=batch, dtype=dtype, **options), ledger


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("batch", [2, 7, 64])
def test_workspace_of_every_layer_is_what_the_bill_predicts(batch, dtype):
    bill, ledger = both(EVERY_KIND, (15, 17, 3), batch, dtype=dtype, optimizer=optim.Adam())
    far = {
        row.name: (row.workspace, mine.workspace)
        for row, mine in zip(bill.rows, ledger.rows, strict=True)
        if not 0 <= mine.workspace - row.workspace < 8 * KIB
    }
    assert far == {}
    assert ledger.compare(bill).off == {}


@pytest.mark.parametrize("first", [L.ReLU(), L.AvgPool2D(2), L.Conv2D(8, 3, padding=1), L.BatchNorm(), L.MaxPool2D(2)])
def test_workspace_of_a_first_layer_is_that_of_a_backward_without_dx(first):
    bill, ledger = both(Sequential([first, L.Flatten(), L.Affine(10)]), (32, 32, 16), 60)
    assert ledger.compare(bill).off == {}


@pytest.mark.parametrize("batch", [1, 7, 100])
def test_every_moment_of_cifar_cnn_is_what_the_bill_predicts(batch):
    bill, ledger = both(models.cifar_cnn(), (32, 32, 3), batch, optimizer=optim.Adam())
    assert list(ledger.moments) == [moment.name for moment in bill.moments]
    assert ledger.peak_at == bill.peak_at
    comparison = ledger.compare(bill)
    assert comparison.agree, comparison.off
    assert all(0 <= measured - predicted < 64 * KIB for predicted, measured in comparison.moments.values())


@pytest.mark.parametrize("micro_batch", [None, 3, 25, 40, 50])
def test_moments_of_a_step_in_micro_batches_hold_the_sum_of_the_gradients_too(micro_batch):
    bill, ledger = both(CNN, (32, 32, 3), 50, micro_batch=micro_batch, optimizer=optim.Momentum())
    assert ledger.compare(bill).off == {}
    assert abs(max(ledger.moments.values()) - ledger.peak) < 64 * KIB


def test_several_workers_have_rows_and_a_peak_but_no_moments():
    bill, ledger = both(CNN, (32, 32, 3), 60, micro_batch=20, workers=2)
    assert ledger.moments == {} and ledger.peak_at == ""
    assert ledger.compare(bill).off == {}
    assert "and each moment" not in str(ledger.compare(bill))


def test_inner_layers_have_rows_and_moments_by_their_whole_name():
    bill, ledger = both(NESTED, (24, 24, 3), 30)
    assert "sequential_1/relu_1, backward" in ledger.moments
    assert ledger.compare(bill).off == {}
    # Flatten gives a view of what ReLU keeps, and Affine keeps the view.
    assert ledger.kept[1].needed_by == ("sequential_2/affine_1", "sequential_1/relu_1")


def test_the_table_has_the_columns_of_the_bill():
    bill, ledger = both(EVERY_KIND, (15, 17, 3), 7, optimizer=optim.Adam())
    heads = [str(table).splitlines()[0].split() for table in (bill, ledger)]
    assert heads[0] == heads[1] == ["layer", *memory.KINDS, "buffers"]
    assert f"in {ledger.peak_at}; unattributed: 0 bytes" in str(ledger)
    assert f"in {ledger.peak_at}; unattributed: 0 bytes" in ledger._repr_html_()


# Each kept array says which backward needs it.


def test_an_array_that_two_layers_keep_is_listed_once_with_both():
    _, ledger = both(CNN, (8, 8, 1), 20)
    found = {(kept.layer, kept.dtype, kept.nbytes): kept.needed_by for kept in ledger.kept}
    assert found["input", "float32", 20 * 64 * 4] == ("conv2d_1",)
    assert found["relu_1", "float32", 20 * 64 * 16 * 4] == ("relu_1",)
    assert found["maxpool2d_1", "uint8", 20 * 16 * 16] == ("maxpool2d_1",)
    assert found["relu_3", "float32", 20 * 128 * 4] == ("affine_2", "relu_3")
    assert sum(kept.nbytes for kept in ledger.kept if kept.layer != "input") == ledger.total("saved")
    assert "affine_2, relu_3" in str(ledger.needs())
    assert "affine_2, relu_3" in ledger.needs()._repr_html_()


def test_listing_the_kept_arrays_keeps_none_of_them():
    params = CNN.init((8, 8, 1), rng=np.random.default_rng(0))
    data = blobs(200, (8, 8, 1))
    memory.ledger(CNN, params, data.x, data.y)
    with memory.traced_peak() as traced:
        ledger = memory.ledger(CNN, params, data.x, data.y)
    assert ledger.unattributed == 0
    assert traced.kept < 32 * KIB


# Where the bill is wrong, the comparison says in which layer and in which kind.


@dataclass(frozen=True)
class ForgetsToPlan(L.Tanh):
    """Keeps a second array, and needs an array in backward; its plan names neither."""

    def forward(self, params, x, *, train=False, rng=None):
        y, saved = super().forward(params, x, train=train, rng=rng)
        return y, [saved, np.ones_like(y)] if train else None

    def backward(self, params, saved, dy, **options):
        need = np.ones_like(dy)
        dx, grads = super().backward(params, saved[0], dy, **options)
        return dx * need, grads


def test_a_plan_that_forgets_is_named_by_layer_and_kind():
    model = Sequential([L.Conv2D(8, 3), L.ReLU(), ForgetsToPlan(), L.Flatten(), L.Affine(10)])
    bill, ledger = both(model, (24, 24, 3), 40)
    comparison = ledger.compare(bill)
    activation = 40 * 22 * 22 * 8 * 4
    predicted, measured = comparison.off["forgetstoplan_1: saved"]
    assert measured - predicted == activation
    assert {"forgetstoplan_1: workspace", "forgetstoplan_1, backward", "peak of the step"} <= set(comparison.off)
    assert not any(name.startswith(("relu_1:", "conv2d_1:", "affine_1:")) for name in comparison.off)
    assert f"forgetstoplan_1: saved: predicted {predicted:,} bytes, measured {measured:,}: +{activation:,}" in str(
        comparison
    )
    assert not comparison.agree


def test_a_bill_of_another_network_is_refused():
    _, ledger = both(NESTED, (24, 24, 3), 4)
    with pytest.raises(ValueError, match="not one of this network: only one of the two has affine_1"):
        ledger.compare(memory.bill(CNN, (24, 24, 3), batch_size=4))


def test_a_bill_of_another_dtype_differs_in_every_kind():
    _, ledger = both(CNN, (8, 8, 1), 20, optimizer=optim.Momentum())
    other = memory.bill(CNN, (8, 8, 1), batch_size=20, optimizer=optim.Momentum(), dtype="float64")
    off = ledger.compare(other).off
    assert {"affine_1: params", "affine_1: grads", "affine_1: slots", "relu_1: saved", "input: data"} <= set(off)
    assert "maxpool2d_1: saved" not in off  # an index of one byte in both


def test_rows_are_equal_in_repeated_runs():
    ledgers = [both(CNN, (16, 16, 3), 30, optimizer=optim.Adam())[1] for _ in range(4)]
    for kind in ("params", "grads", "saved", "slots", "data", "buffers"):
        assert len({tuple(getattr(row, kind) for row in one.rows) for one in ledgers}) == 1
    for rows in zip(*(one.rows for one in ledgers), strict=True):
        assert max(row.workspace for row in rows) - min(row.workspace for row in rows) < KIB
    assert max(one.peak for one in ledgers) - min(one.peak for one in ledgers) < KIB


def test_watching_changes_no_gradient():
    params = EVERY_KIND.init((15, 17, 3), rng=np.random.default_rng(0))
    data = blobs(12, (15, 17, 3))
    batch = Batch(data.x, data.y, size=5)
    with memory.traced_peak():
        watched = batch_gradients(EVERY_KIND, params, batch, losses.softmax_cross_entropy, 1, call=Watch().call)
    plain = batch_gradients(EVERY_KIND, params, batch, losses.softmax_cross_entropy, 1)
    assert watched[0] == plain[0]
    assert all(np.array_equal(a, b) for a, b in zip(tree.leaves(watched[1]), tree.leaves(plain[1]), strict=True))
