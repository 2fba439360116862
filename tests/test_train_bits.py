"""What is equal to the last bit, and what only up to rounding."""

import functools
import threading

import numpy as np
import pytest
from helpers import blobs, same_bits

from dlcourse import layers as L
from dlcourse import losses, optim, train, tree
from dlcourse.inputs import as_input
from dlcourse.model import Sequential
from dlcourse.train import evaluate, fit, gradients

CONV = (L.Conv2D(4, 3, padding=1), L.ReLU(), L.MaxPool2D(2))
DROPOUT = Sequential([*CONV, L.Dropout(0.25), L.Flatten(), L.Affine(24), L.ReLU(), L.Dropout(0.5), L.Affine(10)])
PLAIN = Sequential([*CONV, L.Flatten(), L.Affine(24), L.LayerNorm(), L.ReLU(), L.Affine(10)])
NORMALIZED = Sequential([*CONV, L.BatchNorm(), L.Flatten(), L.Affine(24), L.BatchNorm(), L.ReLU(), L.Affine(10)])
DATA = blobs(500)


def train_for_20_steps(model, *, dtype=np.float32, optimizer=None, data=DATA, **options):
    """-> params, the loss of each step: 4 epochs of 5 batches of 100."""
    params = model.init((8, 8, 1), rng=np.random.default_rng(0), dtype=dtype)
    options = {"batch_size": 100, "epochs": 4, "micro_batch": 16, "seed": 3} | options
    history = fit(model, params, data, optimizer=optimizer or optim.Adam(lr=2e-3), progress=False, **options)
    return params, history.step_loss


@functools.cache
def one_worker(model):
    params, losses_of_steps = train_for_20_steps(model)
    assert len(losses_of_steps) == 20
    return params, losses_of_steps


@pytest.mark.parametrize("model", [DROPOUT, PLAIN, NORMALIZED], ids=["dropout", "plain", "normalized"])
@pytest.mark.parametrize("workers", [1, 2, 4])
def test_the_number_of_workers_changes_no_bit_in_20_steps(model, workers):
    params, losses_of_steps = train_for_20_steps(model, workers=workers)
    expected, expected_losses = one_worker(model)
    assert losses_of_steps == expected_losses
    assert same_bits(params, expected)


def test_a_repeated_run_is_equal_to_the_bit_and_another_seed_is_not():
    params, _ = train_for_20_steps(DROPOUT, workers=2)
    assert same_bits(params, one_worker(DROPOUT)[0])
    assert not same_bits(train_for_20_steps(DROPOUT, seed=4)[0], params)


def test_a_validation_in_between_changes_no_bit():
    params, _ = train_for_20_steps(DROPOUT, validation=blobs(30, seed=8), workers=2)
    assert same_bits(params, one_worker(DROPOUT)[0])


def largest_difference(a, b):
    return max(float(np.abs(x - y).max()) for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True))


def test_cutting_a_batch_differently_changes_one_float32_step_by_rounding_alone():
    options = {"data": blobs(100), "epochs": 1, "optimizer": optim.SGD(lr=0.1)}
    tens, _ = train_for_20_steps(PLAIN, micro_batch=10, **options)
    whole, _ = train_for_20_steps(PLAIN, micro_batch=100, **options)
    assert 0 < largest_difference(tens, whole) < 1e-6


@pytest.mark.parametrize("optimizer", [optim.SGD(lr=0.1), optim.Adam(lr=1e-3)])
def test_cutting_a_batch_differently_changes_20_float64_steps_by_rounding_alone(optimizer):
    tens, _ = train_for_20_steps(PLAIN, micro_batch=10, dtype=np.float64, optimizer=optimizer)
    whole, _ = train_for_20_steps(PLAIN, micro_batch=100, dtype=np.float64, optimizer=optimizer)
    assert 0 < largest_difference(tens, whole) < 1e-10


def test_gradients_do_not_depend_on_workers_or_on_who_drew_before():
    params = DROPOUT.init((8, 8, 1), rng=np.random.default_rng(0))
    batch = functools.partial(gradients, DROPOUT, params, DATA.x[:100], DATA.y[:100], micro_batch=9, seed=1, step=5)
    loss, grads = batch()
    for workers in (2, 3, 4, 12, 50):
        other_loss, other = batch(workers=workers)
        assert other_loss == loss
        assert same_bits(other, grads)


def test_evaluation_does_not_depend_on_workers():
    params, _ = one_worker(NORMALIZED)
    expected = evaluate(NORMALIZED, params, DATA, batch_size=33)
    assert evaluate(NORMALIZED, params, DATA, batch_size=33, workers=4) == expected


@pytest.mark.parametrize("workers", [1, 3])
def test_running_statistics_follow_the_order_of_the_micro_batches(workers):
    model, opt = NORMALIZED, optim.SGD(lr=0.1)
    params = model.init((8, 8, 1), rng=np.random.default_rng(0))
    by_hand = tree.copy(params)
    data = blobs(90)
    fit(model, params, data, optimizer=opt, batch_size=90, micro_batch=20, workers=workers, progress=False)

    _, rows = next(train.batch_rows(90, 90, 1, seed=0))
    total, kept = None, []
    for start in range(0, 90, 20):
        part = rows[start : start + 20]
        logits, saved = model.forward(by_hand, as_input(data.x[part]), train=True)
        kept.append(saved)
        _, dlogits = losses.softmax_cross_entropy(logits, data.y[part], total=90)
        _, grads = model.backward(by_hand, saved, dlogits)
        total = grads if total is None else tree.map_leaves(np.add, total, grads)
    opt.update(by_hand, total, opt.init(by_hand))
    for saved in kept:
        model.update_buffers(by_hand, saved)
    assert same_bits(params, by_hand)


def test_batch_norm_in_another_order_would_give_other_statistics():
    # The test above can fail: the running mean weights the last micro-batch most.
    layer = L.BatchNorm()
    statistics = [{"mean": np.full(2, m, np.float32), "unbiased_var": np.ones(2, np.float32)} for m in (1.0, 5.0)]
    forth, back = (layer.init((2,), np.random.default_rng(0)) for _ in range(2))
    for one, other in zip(statistics, reversed(statistics), strict=True):
        layer.update_buffers(forth, one)
        layer.update_buffers(back, other)
    assert not same_bits(forth, back)


def test_every_parameter_gradient_slot_and_loss_of_a_training_stays_float32(monkeypatch):
    opt = optim.AdamW(lr=np.float64(1e-3), weight_decay=np.float64(0.1))
    slots_seen, grads_seen = [], []
    right = train.batch_gradients

    def spy(*args, **kwargs):
        found = right(*args, **kwargs)
        grads_seen.extend(tree.leaves(found[1]))
        return found

    monkeypatch.setattr(train, "batch_gradients", spy)
    model = Sequential([*CONV, L.BatchNorm(np.float64(0.1)), L.Dropout(np.float64(0.2)), L.Flatten(), L.Affine(10)])
    params = model.init((8, 8, 1), rng=np.random.default_rng(0))
    data = type("Data", (), {"x": as_input(DATA.x, np.float64), "y": DATA.y})
    fit(
        model, params, data, optimizer=opt, micro_batch=30, workers=2, progress=False, clip_norm=np.float64(1e-3),
        schedule=lambda step: np.float64(0.5), callbacks=[lambda step: slots_seen.append(step.slots)],
    )  # fmt: skip
    arrays = [leaf for slots in slots_seen for leaf in tree.leaves(slots) if isinstance(leaf, np.ndarray)]
    assert {a.dtype for a in [*arrays, *grads_seen, *tree.leaves(params)]} == {np.dtype(np.float32)}
    assert type(slots_seen[-1]["step"]) is int


def test_a_training_keeps_its_threads_from_step_to_step():
    seen = set()

    def loss(logits, labels, *, total=None):
        seen.add(threading.current_thread().name)  # numbers are given anew when a thread has ended
        return losses.softmax_cross_entropy(logits, labels, total=total)

    model = Sequential([L.Flatten(), L.Affine(10)])
    before = threading.active_count()
    params = model.init((8, 8, 1), rng=np.random.default_rng(0))
    fit(
        model, params, DATA, optimizer=optim.SGD(lr=0.1), loss=loss, micro_batch=10, workers=2, epochs=2, progress=False
    )
    assert len(seen) == 2
    assert threading.active_count() == before
