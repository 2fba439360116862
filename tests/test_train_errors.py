"""What training refuses, and a loss that is not a number. Nothing is lost: parameters stay those of the step before."""

import re
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import same_bits
from train_runs import DATA, NET, new, run

from dlcourse import layers as L
from dlcourse import optim, train, tree
from dlcourse.inputs import as_input
from dlcourse.model import Sequential
from dlcourse.train import NonFiniteLoss, gradients

# A loss that is not a number.


@pytest.mark.parametrize("micro_batch", [None, 30])
def test_nan_in_the_data_stops_training_and_leaves_the_parameters_of_the_step_before(micro_batch):
    x = as_input(DATA.x)
    x[77] = np.nan
    order = np.concatenate([rows for _, rows in train.batch_rows(250, 100, 1, seed=0)])
    step = int(np.flatnonzero(order == 77)[0]) // 100 + 1
    good = []
    params = new()
    with pytest.raises(NonFiniteLoss) as caught:
        run(
            SimpleNamespace(x=x, y=DATA.y),
            params=params,
            micro_batch=micro_batch,
            callbacks=[lambda step: good.append(tree.copy(step.params))],
        )
    assert re.match(rf"epoch 1, step {step}: the loss is nan; first in the input, micro-batch \d", str(caught.value))
    assert same_bits(params, good[-1] if good else new())


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value")
def test_the_first_layer_whose_output_is_not_finite_is_named():
    model = Sequential([L.Flatten(), L.Affine(4), Sequential([L.ReLU(), L.Affine(3), L.Affine(2)]), L.Affine(10)])
    params = new(model)
    params["sequential_1/affine_1"]["W"][:] = 1e38
    before = tree.copy(params)
    with pytest.raises(
        NonFiniteLoss, match="epoch 1, step 1: the loss is nan; first in the output of Affine 'sequential_1/affine_1'"
    ):
        run(model=model, params=params)
    assert same_bits(params, before)


def test_a_parameter_that_is_not_finite_is_named():
    params = new()
    params["affine_2"]["b"][3] = np.inf
    with pytest.raises(NonFiniteLoss, match="first in the parameter affine_2/b, before this step"):
        run(params=params)


def test_a_loss_that_is_not_finite_by_itself_is_named():
    with pytest.raises(NonFiniteLoss, match=r"the loss is inf; first in the loss itself"):
        run(loss=lambda logits, labels, total: (np.inf, np.zeros_like(logits)))


@pytest.mark.filterwarnings("ignore:overflow", "ignore:invalid value", "ignore:divide by zero")
def test_a_learning_rate_that_is_far_too_large_ends_in_an_error_and_not_in_nan():
    with pytest.raises(NonFiniteLoss, match=r"epoch \d+, step \d+: the loss is (nan|inf); first in"):
        run(epochs=50, optimizer=optim.SGD(lr=1e30))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"micro_batch": 0}, "micro_batch must be an integer of at least 1, got 0"),
        ({"micro_batch": 2.5}, "micro_batch must be an integer of at least 1, got 2.5"),
        ({"workers": 0}, "workers must be an integer of at least 1, got 0"),
        ({"labels": DATA.y[:3]}, "x has 4 samples and labels has 3; they must be as many"),
        ({"x": DATA.x[:0], "labels": DATA.y[:0]}, "the batch is empty: expected at least one sample"),
        ({"labels": np.array([0, 1, 10, 2])}, "label 10 in row 2; labels must be 0 to 9"),
        ({"labels": np.array([0, 1, 3, -1])}, "label -1 in row 3; labels must be 0 to 9"),
        ({"labels": np.array([0, 1, 3, -1]), "micro_batch": 2, "workers": 2}, "label -1 in row 3; labels must be"),
    ],
)
def test_a_wrong_batch_gets_one_clear_error(options, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        gradients(NET, new(), **({"x": DATA.x[:4], "labels": DATA.y[:4]} | options))


# Input that is wrong.


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"batch_size": 0}, "batch_size must be an integer of at least 1, got 0"),
        ({"epochs": -1}, "epochs must be an integer of at least 1, got -1"),
        ({"epochs": 1.5}, "epochs must be an integer of at least 1, got 1.5"),
        ({"workers": 0}, "workers must be an integer of at least 1, got 0"),
        ({"micro_batch": True}, "micro_batch must be an integer of at least 1, got True"),
        ({"checkpoint_every": 0}, "checkpoint_every must be an integer of at least 1, got 0"),
        ({"early_stop": 1}, "early_stop watches the validation loss: give validation=… too"),
        ({"clip_norm": 0}, "clip_norm must be above 0, got 0"),
    ],
)
def test_a_wrong_option_gets_one_clear_error_and_changes_nothing(options, message):
    params = new()
    with pytest.raises(ValueError, match=re.escape(message)):
        run(params=params, **options)
    assert same_bits(params, new())


X, Y = DATA.x, DATA.y
WRONG_DATA = [
    (X[:0], Y[:0], ValueError, "set is empty: expected at least one sample"),
    (X, Y[:-1], ValueError, "samples and its .y has 249; they must be as many"),
    (X.tolist(), Y, TypeError, ".x must be a NumPy array, got list"),
    (X, Y.tolist(), TypeError, ".y must be a NumPy array, got list"),
    (X.astype(object), Y, TypeError, "inputs have dtype object"),
    (X > 100, Y, TypeError, "inputs have dtype bool"),
    (X.astype(np.int64), Y, TypeError, "Affine 'affine_1': expected a float array, got int64"),
    (X[:, :4], Y, ValueError, "Affine 'affine_1': W has shape (64, "),
    (X, Y + 1, ValueError, "labels must be 0 to 9"),
    (X, Y.astype(object), TypeError, "labels are object"),
    (X, Y.astype(float), TypeError, "class numbers and must be integers"),
]


@pytest.mark.parametrize(("x", "y", "error", "message"), WRONG_DATA)
def test_wrong_data_gets_one_clear_error_and_changes_nothing(x, y, error, message):
    params = new()
    with pytest.raises(error, match=re.escape(message)):
        run(SimpleNamespace(x=x, y=y), params=params, batch_size=250)
    assert same_bits(params, new())


@pytest.mark.parametrize(("x", "y", "error", "message"), WRONG_DATA[:6])
def test_wrong_validation_data_is_found_before_the_first_step(x, y, error, message):
    params = new()
    with pytest.raises(error, match=re.escape(message)):
        run(params=params, validation=SimpleNamespace(x=x, y=y))
    assert same_bits(params, new())


def test_parameters_of_two_dtypes_are_refused():
    params = new()
    params["affine_1"]["b"] = params["affine_1"]["b"].astype(np.float64)
    with pytest.raises(TypeError, match="parameters must have one dtype, got float32, float64"):
        gradients(NET, params, DATA.x[:4], DATA.y[:4])
