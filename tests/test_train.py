import functools
import threading
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import assert_close, same_bits
from train_runs import DATA, NET, TEST, new, run

from dlcourse import datasets, losses, models, optim, schedules, train, tree
from dlcourse import layers as L
from dlcourse.inputs import as_input
from dlcourse.model import Sequential
from dlcourse.train import evaluate, fit, gradients

# Gradients of a batch.


def test_gradients_are_those_of_one_forward_and_backward():
    params, x = new(), as_input(DATA.x[:20])
    loss, grads = gradients(NET, params, DATA.x[:20], DATA.y[:20])
    logits, saved = NET.forward(params, x, train=True)
    expected, dlogits = losses.softmax_cross_entropy(logits, DATA.y[:20])
    assert loss == expected
    assert same_bits(grads, NET.backward(params, saved, dlogits)[1])


def test_gradients_change_nothing():
    params, x, y = new(models.small_cnn()), DATA.x[:30].copy(), DATA.y[:30].copy()
    before = tree.copy([params, x, y])
    state = np.random.get_state()[1].copy()  # noqa: NPY002
    gradients(models.small_cnn(), params, x, y, micro_batch=7, workers=2)
    assert same_bits([params, x, y], before)
    np.testing.assert_array_equal(np.random.get_state()[1], state)  # noqa: NPY002


@pytest.mark.parametrize("micro_batch", [1, 7, 19, 20, 100])
@pytest.mark.parametrize("loss", [losses.softmax_cross_entropy, losses.mean_squared_error])
def test_micro_batches_add_up_to_the_whole_batch(micro_batch, loss):
    params, x = new(dtype=np.float64), DATA.x[:20]
    labels = DATA.y[:20] if loss is losses.softmax_cross_entropy else np.eye(10)[DATA.y[:20]]
    whole = gradients(NET, params, x, labels, loss=loss)
    parts = gradients(NET, params, x, labels, loss=loss, micro_batch=micro_batch)
    assert parts[0] == pytest.approx(whole[0], rel=1e-12)
    for name, g in tree.items(whole[1]):
        assert_close(tree.flatten(parts[1])[name], g, 1e-12)


def test_a_micro_batch_draws_from_the_seed_the_step_and_its_index():
    model = Sequential([L.Flatten(), L.Dropout(0.5), L.Affine(10)])
    params = new(model)
    batch = functools.partial(gradients, model, params, DATA.x[:20], DATA.y[:20], micro_batch=10)
    first = batch(seed=1, step=2)
    assert same_bits(batch(seed=1, step=2)[1], first[1])
    for other in (batch(seed=2, step=2), batch(seed=1, step=3)):
        assert not same_bits(other[1], first[1])
    twice = np.concatenate([DATA.x[:10]] * 2), np.concatenate([DATA.y[:10]] * 2)
    halves = gradients(model, params, *twice, micro_batch=10, seed=1)[1]
    once = gradients(model, params, twice[0][:10], twice[1][:10], seed=1)[1]
    assert not same_bits(halves, once)  # the second half of a batch drops other units than the first


def test_an_error_in_a_thread_comes_out_and_leaves_no_thread_behind():
    params, before = new(), threading.active_count()
    with pytest.raises(
        ValueError, match=r"Affine 'affine_1': W has shape \(64, .*; an input of shape \(81,\) needs \(81, "
    ):
        gradients(NET, params, np.zeros((8, 9, 9, 1), np.uint8), DATA.y[:8], micro_batch=2, workers=2)
    assert threading.active_count() == before


# The order of the samples.


def test_every_sample_is_seen_once_an_epoch_in_another_order_each_time():
    batches = list(train.batch_rows(1000, 300, 3, seed=0))
    assert [step for step, _ in batches] == list(range(12))
    assert [len(rows) for _, rows in batches] == [300, 300, 300, 100] * 3
    epochs = [np.concatenate([rows for step, rows in batches if step // 4 == epoch]) for epoch in range(3)]
    for order in epochs:
        np.testing.assert_array_equal(np.sort(order), np.arange(1000))
    assert not np.array_equal(epochs[0], epochs[1])


@pytest.mark.parametrize("first", [0, 1, 4, 7, 11, 12])
def test_the_order_goes_on_from_any_step_as_it_was(first):
    whole = list(train.batch_rows(1000, 300, 3, seed=5))
    rest = list(train.batch_rows(1000, 300, 3, seed=5, first=first))
    assert len(rest) == 12 - first
    assert all(a[0] == b[0] and np.array_equal(a[1], b[1]) for a, b in zip(whole[first:], rest, strict=True))


def test_fit_sees_each_of_1000_samples_three_times_in_three_epochs_and_evaluates_three_times(monkeypatch):
    data = SimpleNamespace(x=np.arange(1000.0, dtype=np.float32).reshape(1000, 1) / 1000, y=np.zeros(1000, int))
    seen, evaluated = [], []
    right = evaluate
    monkeypatch.setattr(train, "evaluate", lambda *args, **kwargs: evaluated.append(1) or right(*args, **kwargs))

    def record(x, rng):
        seen.append((x * 1000).round().astype(int).ravel())
        return x

    model = Sequential([L.Affine(2)])
    _, history = run(
        data, model, new(model, (1,)), epochs=3, batch_size=300, augment=record, validation=data, micro_batch=128
    )
    counts = np.bincount(np.concatenate(seen), minlength=1000)
    assert set(counts) == {3}
    assert len(evaluated) == len(history.epochs) == 3
    assert len(history.step_loss) == 12


def test_the_mean_loss_of_an_epoch_counts_a_short_batch_by_its_size():
    assert train.epoch_mean([0.7, 0.8, 0.9], 522, 256) == pytest.approx(0.752874, abs=5e-7)
    _, history = run(epochs=1, optimizer=optim.SGD(lr=0))
    assert history.epochs[0]["loss"] == pytest.approx(evaluate(NET, new(), DATA).loss, rel=1e-5)


# Training.


def test_training_learns():
    params, history = run(epochs=15, optimizer=optim.Adam(lr=3e-3), validation=TEST)
    assert history.epochs[-1]["val_accuracy"] > 0.9
    assert history.column("loss")[-1] < 0.3 * history.column("loss")[0]
    assert evaluate(NET, params, TEST).accuracy == history.epochs[-1]["val_accuracy"]


def test_history_has_a_loss_a_step_and_a_row_an_epoch_of_plain_numbers():
    _, history = run(validation=TEST)
    assert len(history.step_loss) == 6
    assert {type(value) for value in history.step_loss} == {float}
    assert [set(row) for row in history.epochs] == [{"epoch", "loss", "val_loss", "val_accuracy", "seconds"}] * 2
    assert history.column("epoch") == [1, 2]
    assert {type(value) for row in history.epochs for value in row.values()} == {int, float}
    assert history.stopped is None


def test_early_stop_ends_after_that_many_epochs_without_a_lower_validation_loss():
    _, history = run(epochs=9, optimizer=optim.SGD(lr=0), validation=TEST, early_stop=2)
    assert len(history.epochs) == 3
    assert history.stopped == "no lower validation loss in 2 epochs"
    _, history = run(epochs=4, validation=TEST, early_stop=2)  # it gets better all the time
    assert len(history.epochs) == 4
    assert history.stopped is None


@pytest.mark.parametrize("clip_norm", [1e-3, 1e6, None])
def test_clip_norm_bounds_the_step(clip_norm):
    params, _ = run(epochs=1, batch_size=250, optimizer=optim.SGD(lr=1.0), clip_norm=clip_norm)
    change = tree.map_leaves(lambda after, before: after.astype(np.float64) - before, params, new())
    norm = np.sqrt(sum((leaf**2).sum() for leaf in tree.leaves(change)))
    if clip_norm == 1e-3:
        assert norm == pytest.approx(1e-3, rel=1e-3)
    else:
        assert norm > 0.1


def test_a_schedule_multiplies_the_learning_rate_of_each_step():
    rates = []
    schedule = schedules.WarmUp(2, then=schedules.StepDecay(2, 0.1))
    run(schedule=schedule, callbacks=[lambda step: rates.append(step.lr)])
    assert rates == pytest.approx([0.025, 0.05, 0.05, 0.05, 0.005, 0.005])
    params, _ = run(schedule=lambda step: 0.0)
    assert same_bits(params, new())


def test_augment_gets_each_micro_batch_as_it_is_stored_with_a_generator_of_its_own():
    seen = []

    def augment(x, rng):
        seen.append((x.dtype, x.shape, rng.random()))
        return x[:, ::-1]

    run(epochs=1, augment=augment, micro_batch=60)
    assert {dtype for dtype, _, _ in seen} == {np.dtype(np.uint8)}
    assert [len(shape) and shape[0] for _, shape, _ in seen] == [60, 40, 60, 40, 50]
    assert len({draw for _, _, draw in seen}) == 5


def test_each_callback_is_called_after_each_step_and_true_ends_training():
    steps, ends = [], []

    def end(step):
        ends.append(step.step)
        return step.step == 4

    params, history = run(callbacks=[end, steps.append])
    assert ends == [1, 2, 3, 4]
    assert [step.step for step in steps] == [1, 2, 3, 4]
    assert [step.epoch for step in steps] == [1, 1, 1, 2]
    assert {step.steps for step in steps} == {6}
    assert [step.loss for step in steps] == history.step_loss
    assert all(step.params is params and step.history is history for step in steps)
    assert history.stopped == "a callback ended it after step 4"


def test_a_true_of_numpy_ends_training_as_one_of_python_does():
    for true in (lambda step: np.float32(step.step) == 2, lambda step: np.array(step.step == 2)):
        _, history = run(callbacks=[true])
        assert (len(history.step_loss), history.stopped) == (2, "a callback ended it after step 2")


def test_counts_may_be_numbers_of_numpy_and_the_history_is_of_pythons_numbers(tmp_path):
    def loss(outputs, labels, *, total=None):
        value, d = losses.softmax_cross_entropy(outputs, labels, total=total)
        return np.float32(value), d

    counts = {"epochs": np.int8(2), "batch_size": np.uint8(100), "micro_batch": np.array(60), "workers": np.int64(2)}
    counts |= {"seed": np.uint16(3), "early_stop": np.int8(5), "checkpoint_every": np.int32(2)}
    params, history = run(validation=TEST, clip_norm=np.float32(1), **counts, checkpoint=tmp_path / "a")
    plain = {name: int(count) for name, count in counts.items()}
    expected, _ = run(validation=TEST, clip_norm=1.0, **plain, checkpoint=tmp_path / "b")
    assert same_bits(params, expected)
    numbers = [*history.step_loss, *(value for row in history.epochs for value in row.values())]
    assert {type(number) for number in numbers} == {int, float}
    _, history = run(loss=loss)
    assert {type(value) for value in history.step_loss} == {float}


def test_a_callback_that_returns_something_else_than_true_ends_nothing():
    callbacks = [lambda step: 1, lambda step: "yes", lambda step: np.ones(3), lambda step: step.params]
    callbacks += [lambda step: np.float32(1), lambda step: np.ones(3, bool), lambda step: np.False_]
    _, history = run(callbacks=iter(callbacks))
    assert history.stopped is None
    assert len(history.step_loss) == 6


def test_a_memory_map_on_disk_trains_as_an_array_in_memory_does(tmp_path):
    np.save(tmp_path / "x.npy", DATA.x)
    mapped = SimpleNamespace(x=np.load(tmp_path / "x.npy", mmap_mode="r"), y=DATA.y)
    assert isinstance(mapped.x, np.memmap)
    params, history = run(mapped, validation=mapped)
    expected, expected_history = run(validation=DATA)
    assert same_bits(params, expected)
    assert history.step_loss == expected_history.step_loss


def test_progress_writes_to_the_error_stream_only_where_it_is_asked_for(capsys):
    run()
    assert capsys.readouterr() == ("", "")
    fit(NET, new(), DATA, optimizer=optim.SGD(), progress=True, validation=TEST)
    out, err = capsys.readouterr()
    assert out == ""
    assert "3/3" in err
    assert "validation accuracy=" in err


def test_anything_with_x_and_y_is_data():
    expected, _ = run()
    params, _ = run(datasets.Split(DATA.x, DATA.y))
    assert same_bits(params, expected)


# Evaluation.


@pytest.mark.parametrize("batch_size", [1, 33, 70, 1000])
@pytest.mark.parametrize("workers", [1, 2])
def test_evaluation_is_the_mean_over_all_samples_however_they_are_cut(batch_size, workers):
    params = new()
    logits, _ = NET.forward(params, as_input(TEST.x))
    loss, _ = losses.softmax_cross_entropy(logits, TEST.y)
    found = evaluate(NET, params, TEST, batch_size=batch_size, workers=workers)
    assert found.loss == pytest.approx(loss, rel=1e-5)
    assert found.accuracy == (logits.argmax(axis=1) == TEST.y).mean()


def test_evaluation_changes_nothing_and_drops_nothing():
    model = Sequential([L.Flatten(), L.BatchNorm(), L.Dropout(0.9), L.Affine(10)])
    params = new(model)
    before = tree.copy(params)
    assert evaluate(model, params, TEST) == evaluate(model, params, TEST)
    assert same_bits(params, before)


def accuracy(outputs, labels, loss=losses.softmax_cross_entropy):
    split = SimpleNamespace(x=np.array(outputs, np.float32), y=np.array(labels))
    return evaluate(Sequential([L.Flatten()]), {}, split, loss=loss, batch_size=2).accuracy


def test_evaluation_of_yes_or_no_and_of_numbers():
    answers = [[1.0], [-1.0], [2.0], [3.0]]
    for dtype in (int, float, bool):
        assert accuracy(answers, np.array([[1], [0], [0], [1]], dtype), losses.binary_cross_entropy) == 0.75
    assert accuracy(answers, [[0.9], [0.1], [0.1], [0.9]], losses.binary_cross_entropy) is None
    for targets in ([[5], [900], [0], [1]], [[5.0], [900.0], [0.0], [1.0]]):
        assert accuracy(answers, targets, losses.mean_squared_error) is None
    x = np.array(answers, np.float32)
    found = evaluate(Sequential([L.Flatten()]), {}, SimpleNamespace(x=x, y=x + 1), loss=losses.mean_squared_error)
    assert found.loss == 1


def test_a_target_that_is_one_class_counts_as_that_class_and_probabilities_as_none():
    for dtype in (int, float, bool):
        assert accuracy([[5, 4], [5, 4], [4, 5]], np.array([[1, 0], [1, 0], [1, 0]], dtype)) == pytest.approx(2 / 3)
    assert accuracy([[5, 4], [5, 4], [4, 5]], [[1, 0], [1, 0], [0.9, 0.1]]) is None
    smoothed = functools.partial(losses.softmax_cross_entropy, label_smoothing=0.1)
    assert accuracy([[5, 4], [4, 5]], [0, 0], smoothed) == 0.5


def test_nan_is_never_right():
    assert accuracy([[np.nan, 1, 2], [5, 1, 2]], [0, 0]) == 0.5
    assert accuracy([[1, 2, np.nan], [np.nan] * 3], [1, 0]) == 0
    assert accuracy([[np.nan, 1], [1, 1]], [[0, 1], [1, 0]], losses.binary_cross_entropy) == 0.5
    assert accuracy([[np.nan, 1], [1, 0]], [[1, 0], [1, 0]]) == 0.5


def test_the_accuracy_is_that_of_the_loss_and_a_loss_of_ones_own_may_say_it():
    def own(outputs, labels, *, total=None):
        return losses.softmax_cross_entropy(outputs, labels, total=total)

    assert accuracy([[5, 4], [4, 5]], [0, 0], own) is None
    own.right = lambda outputs, labels: outputs.argmin(axis=-1) == labels
    assert accuracy([[5, 4], [4, 5], [4, 5]], [0, 0, 0], own) == pytest.approx(2 / 3)
