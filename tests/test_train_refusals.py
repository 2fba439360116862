"""What a training refuses before its first step, and what it notices before it changes anything."""

import re
from functools import partial
from types import SimpleNamespace

import numpy as np
import pytest

from dlcourse import layers as L
from dlcourse import losses, memory, optim, tree
from dlcourse.model import Sequential
from dlcourse.train import NonFiniteLoss, evaluate, fit

RNG = np.random.default_rng(0)
X, Y = RNG.standard_normal((20, 4)).astype(np.float32), RNG.integers(0, 3, 20)
MODEL = Sequential([L.Affine(5), L.ReLU(), L.Affine(3)])
DATA = SimpleNamespace(x=X, y=Y)


def new():
    return MODEL.init((4,), np.random.default_rng(0))


def train(data=DATA, params=None, **options):
    return fit(
        MODEL, new() if params is None else params, data, **{"optimizer": optim.SGD(), "progress": False} | options
    )


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"seed": None}, ValueError, "seed must be an integer of at least 0, got None"),
        ({"seed": -1}, ValueError, "seed must be an integer of at least 0, got -1"),
        ({"batch_size": None}, ValueError, "batch_size must be an integer of at least 1, got None"),
        ({"checkpoint_every": 5}, ValueError, "checkpoint_every needs a folder"),
        ({"optimizer": optim.Adam}, TypeError, "such as optim.Adam(lr=1e-3)"),
        ({"optimizer": "adam"}, TypeError, "got 'adam'"),
        ({"schedule": 3}, TypeError, "schedule must be a function, got 3"),
        ({"augment": 5}, TypeError, "augment must be a function, got 5"),
        ({"clip_norm": 0}, ValueError, "clip_norm must be above 0, got 0"),
        ({"clip_norm": "1"}, ValueError, "clip_norm must be above 0, got '1'"),
        ({"callbacks": [print, 3]}, TypeError, "a callback must be a function, got 3"),
        ({"callbacks": [None]}, TypeError, "a callback must be a function, got None"),
        ({"callbacks": print}, TypeError, "callbacks must be a list of functions, got <built-in"),
        ({"callbacks": 3}, TypeError, "callbacks must be a list of functions, got 3"),
        ({"schedule": lambda step: "fast"}, ValueError, "schedule(0) must give a number"),
        ({"schedule": lambda step: None}, TypeError, "schedule(0) must give a number"),
        ({"schedule": lambda step: 1 - step}, ValueError, "schedule(4) is -3.0; the factor"),
        ({"batch_size": np.float64(5)}, ValueError, "batch_size must be an integer of at least 1"),
        ({"loss": "mse"}, TypeError, "loss must be a function, such as losses.softmax_cross_entropy, got 'mse'"),
        ({"data": (X, Y)}, TypeError, "the data must have .x and .y, as datasets.Split(x, y) has; got tuple"),
        ({"validation": [X, Y]}, TypeError, "the validation must have .x and .y"),
        ({"data": SimpleNamespace(x=X, y=Y.astype(str))}, TypeError, "labels are <U21; they must be numbers"),
    ],
)
def test_a_wrong_option_is_named_before_anything_is_done(options, error, message):
    params = new()
    with pytest.raises(error, match=re.escape(message)):
        train(**{"params": params, "epochs": 5, "batch_size": 20, "callbacks": [pytest.fail]} | options)
    assert all(np.array_equal(a, b) for a, b in zip(tree.leaves(params), tree.leaves(new()), strict=True))


@pytest.mark.parametrize("loss", [losses.softmax_cross_entropy, partial(losses.softmax_cross_entropy)])
def test_a_label_outside_the_classes_is_found_before_training_and_its_row_is_named(loss):
    labels = Y.copy()
    labels[19] = 7
    params = new()
    with pytest.raises(ValueError, match=r"label 7 in row 19; labels must be 0 to 2"):
        train(SimpleNamespace(x=X, y=labels), params=params, loss=loss, batch_size=4)
    assert np.array_equal(params["affine_1"]["W"], new()["affine_1"]["W"])


BINARY = np.eye(3)[Y]


@pytest.mark.parametrize("part", ["data", "validation"])
@pytest.mark.parametrize("micro_batch", [None, 3])
@pytest.mark.parametrize(
    ("loss", "targets", "message"),
    [
        (losses.softmax_cross_entropy, [0.5, 0.6, 0], r"soft targets of row 17 are \[.*\], with sum 1\.1"),
        (partial(losses.softmax_cross_entropy, label_smoothing=0.1), [2, -1, 0], "soft targets of row 17"),
        (losses.binary_cross_entropy, [0, 1.5, 0], r"target 1\.5 in row 17, at \(1,\); targets must be in \[0, 1\]"),
        (losses.binary_cross_entropy, [0, 0, np.nan], r"target nan in row 17, at \(2,\)"),
        (losses.mean_squared_error, [0, np.inf, 0], r"target inf in row 17, at \(1,\); targets must be finite"),
    ],
)
def test_wrong_targets_are_found_before_training_by_their_row_in_the_data(part, micro_batch, loss, targets, message):
    y = BINARY.copy()
    y[17] = targets
    options = {"data": SimpleNamespace(x=X, y=BINARY), "loss": loss, "batch_size": 4, "micro_batch": micro_batch}
    options |= {part: SimpleNamespace(x=X, y=y), "callbacks": [pytest.fail]}
    with pytest.raises(ValueError, match=rf"the {part}'s \.y: {message}"):
        train(**options)


@pytest.mark.parametrize(
    ("samples", "sizes", "smallest"),
    [
        (21, {"batch_size": 5}, "batch"),
        (21, {"batch_size": 20, "micro_batch": 4}, "micro-batch"),
        (9, {"micro_batch": 4}, "micro-batch"),
    ],
)
def test_a_last_batch_of_one_sample_is_found_before_training_where_a_layer_needs_more(samples, sizes, smallest):
    model = Sequential([L.Affine(8), L.BatchNorm(), L.Affine(3)])
    params = model.init((4,), np.random.default_rng(0))
    before = tree.copy(params)
    data = SimpleNamespace(x=np.ones((samples, 4), np.float32), y=np.arange(samples) % 3)
    with pytest.raises(
        ValueError,
        match=rf"the last {smallest} of an epoch has 1 of {samples} samples\. BatchNorm 'batchnorm_1'.*Choose another",
    ):
        fit(model, params, data, optimizer=optim.SGD(0.1), callbacks=[pytest.fail], progress=False, **sizes)
    assert all(np.array_equal(a, b) for a, b in zip(tree.leaves(params), tree.leaves(before), strict=True))
    data = SimpleNamespace(x=data.x[:8], y=data.y[:8])
    assert fit(model, params, data, optimizer=optim.SGD(0.1), batch_size=4, micro_batch=2, progress=False).step_loss


@pytest.mark.parametrize("model", [L.Affine(3), [L.Affine(3)], Sequential, None])
def test_a_model_that_is_none_is_named(model):
    with pytest.raises(TypeError, match=r"model must be a Sequential, such as Sequential\(\[Affine\(10\)\]\); got "):
        fit(model, {}, DATA, optimizer=optim.SGD(), progress=False)
    with pytest.raises(TypeError, match="model must be a Sequential"):
        evaluate(model, {}, DATA)


def test_validation_that_does_not_fit_is_found_before_training():
    with pytest.raises(ValueError, match=r"W has shape \(4, .*; an input of shape \(6,\) needs \(6, "):
        train(validation=SimpleNamespace(x=np.ones((5, 6), np.float32), y=Y[:5]), callbacks=[pytest.fail])
    with pytest.raises(ValueError, match=r"the validation's \.y: label -1 in row 2; labels must be 0 to 2"):
        train(validation=SimpleNamespace(x=X[:3], y=np.array([0, 1, -1])), callbacks=[pytest.fail])


@pytest.mark.parametrize(
    ("layer", "other", "in_shape"),
    [
        (L.Affine(3), L.Affine(5), (4,)),
        (L.Conv2D(2, 3, padding=1), L.Conv2D(2, 5, padding=1), (8, 8, 2)),
        (L.Conv2D(2, 3), L.Conv2D(4, 3), (8, 8, 2)),
    ],
)
def test_parameters_of_another_network_are_refused_by_the_layer(layer, other, in_shape):
    params = Sequential([other]).init(in_shape, np.random.default_rng(0))
    with pytest.raises(ValueError, match=r"_1': W has shape .* parameters of another network"):
        Sequential([layer]).forward(params, np.ones((2, *in_shape), np.float32))


def test_a_gradient_that_is_not_finite_stops_before_the_update_and_names_the_layer(tmp_path):
    x = np.ones((4, 2), np.float32)
    x[0] = 1e14  # the loss is finite; GELU's backward overflows
    model = Sequential([L.Affine(2), L.GELU(), L.Affine(2)])
    params = model.init((2,), np.random.default_rng(1))
    before = tree.copy(params)
    data = SimpleNamespace(x=x, y=np.array([0, 1, 0, 1]))
    with (
        pytest.warns(RuntimeWarning),
        pytest.raises(
            NonFiniteLoss, match=r"epoch 1, step 1: the loss is 6\.\d+e\+13, but .* the gradient of affine_1/"
        ),
    ):
        fit(model, params, data, optimizer=optim.SGD(lr=1e-30), batch_size=4, progress=False, checkpoint=tmp_path)
    assert all(np.array_equal(a, b) for a, b in zip(tree.leaves(params), tree.leaves(before), strict=True))
    assert list(tmp_path.iterdir()) == []


def test_large_finite_gradients_are_not_taken_for_infinite_ones():
    from dlcourse.diagnose import first_non_finite_gradient

    assert first_non_finite_gradient({"a": {"W": np.full(3, 1e30, np.float32)}}) is None
    assert "b/W" in first_non_finite_gradient({"a": {"W": np.full(3, np.inf)}, "b": {"W": np.array([1, np.nan])}})


def test_a_folder_that_cannot_hold_checkpoints_is_refused_before_the_first_step(tmp_path):
    (tmp_path / "file").write_text("not a folder")
    with pytest.raises(OSError, match=r"checkpoints cannot be written to .*file"):
        train(checkpoint=tmp_path / "file", callbacks=[pytest.fail])


def test_early_stop_counts_a_validation_loss_that_is_nan_as_no_lower():
    history = train(epochs=20, early_stop=2, optimizer=optim.SGD(lr=0), validation=SimpleNamespace(x=X * np.nan, y=Y))
    assert len(history.epochs) == 3
    assert history.stopped


def test_a_checkpoint_tells_other_inputs_from_these_wherever_they_differ(tmp_path):
    train(checkpoint=tmp_path)
    with pytest.raises(OSError, match="some_inputs"):
        train(SimpleNamespace(x=X * 2, y=Y), checkpoint=tmp_path)
    x = np.random.default_rng(0).standard_normal((150, 4)).astype(np.float32)
    data = SimpleNamespace(x=x, y=np.arange(150) % 3)
    train(data, checkpoint=tmp_path / "many")
    x[7, 0] += 1
    with pytest.raises(OSError, match="all_inputs"):
        train(data, checkpoint=tmp_path / "many")


def test_a_schedule_may_be_an_object_of_a_class_that_stands_in_a_function():
    class Half:
        def __call__(self, step):
            return 0.5

    assert train(schedule=Half()).step_loss == train(schedule=lambda step: 0.5).step_loss


def test_what_a_killed_process_left_of_a_checkpoint_is_removed_and_that_of_a_live_one_is_not(tmp_path):
    import os

    dead, alive = tmp_path / "latest.99999999.partial", tmp_path / f"latest.{os.getppid()}.partial"
    dead.touch()
    alive.touch()
    train(checkpoint=tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"latest.safetensors", alive.name}


@pytest.mark.parametrize("wrong", [2.5, 0, "3"])
def test_the_bill_refuses_a_batch_size_that_is_no_whole_number(wrong):
    with pytest.raises(ValueError, match="batch_size must be an integer of at least 1"):
        memory.bill(MODEL, (4,), batch_size=wrong)


def test_dropout_says_which_kind_of_generator_it_needs():
    with pytest.raises(TypeError, match=r"needs rng=numpy.random.default_rng.* got RandomState"):
        L.Dropout(0.5).forward({}, X, train=True, rng=np.random.RandomState(0))
