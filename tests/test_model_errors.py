import re

import numpy as np
import pytest
from helpers import CASES, NESTED, by_name, forward

from dlcourse import layers as L
from dlcourse.gradients import gradients
from dlcourse.model import Sequential

RNG = np.random.default_rng


@pytest.mark.parametrize(
    ("in_shape", "message"),
    [
        ((4, 4), "Conv2D 'conv2d_1': expected images (H, W, C), got inputs of shape (4, 4)"),
        ((2, 2, 3), "Conv2D 'conv2d_2': kernel_size 5 is larger than the padded input (4, 4); add padding or"),
    ],
)
def test_an_error_names_the_layer_in_init_bill_and_forward(in_shape, message):
    model = Sequential([L.Conv2D(2, 3, padding=1), L.Conv2D(2, 5, padding=1), L.Flatten(), L.Affine(2)])
    params = model.init((8, 8, 3), rng=RNG(0))
    for run in (
        lambda: model.init(in_shape, rng=RNG(0)),
        lambda: model.out_shape(in_shape),
        lambda: model.forward(params, np.ones((1, *in_shape), np.float32)),
    ):
        with pytest.raises(ValueError, match=re.escape(message)):
            run()


def test_an_error_inside_a_nested_sequential_names_the_way_to_it():
    model = Sequential([L.ReLU(), Sequential([L.Conv2D(2, 3)])])
    with pytest.raises(ValueError, match="Conv2D 'sequential_1/conv2d_1': kernel_size 3 is larger"):
        model.init((2, 2, 1), rng=RNG(0))
    params = model.init((4, 4, 1), rng=RNG(0))
    with pytest.raises(ValueError, match=r"Conv2D 'sequential_1/conv2d_1': W has shape \(3, 3, 1, 2\)"):
        model.forward(params, np.ones((1, 4, 4, 2), np.float32))


@pytest.mark.parametrize(
    ("x", "error", "message"),
    [
        (np.ones((2, 5), np.int64), TypeError, "Affine 'affine_1': expected a float array, got int64"),
        (np.ones((2, 5), object), TypeError, "Affine 'affine_1': expected a float array, got object"),
        (np.ones((2, 5), np.uint8), TypeError, "dlcourse.inputs.as_input turns uint8 images into floats"),
        ([[1.0] * 5], TypeError, "expected a NumPy array, got list"),
        (
            np.ones((0, 5), np.float32),
            ValueError,
            "expected a batch of at least one input, got an array of shape (0, 5)",
        ),
        (np.float32(1), TypeError, "expected a NumPy array, got float32"),
        (
            np.ones((2, 4), np.float32),
            ValueError,
            "Affine 'affine_1': W has shape (5, 3); an input of shape (4,) needs (4, 3)",
        ),
    ],
)
def test_a_wrong_input_gets_one_clear_error(x, error, message):
    model = Sequential([L.Affine(3)])
    params = model.init((5,), rng=RNG(0))
    with pytest.raises(error, match=re.escape(message)):
        model.forward(params, x)


@pytest.mark.parametrize("case", **by_name(CASES))
def test_an_upstream_of_another_shape_is_refused_with_both_shapes(case):
    model = Sequential([case.layer])
    params, _, y, saved, _ = forward(model, case.small)
    for shape in ((4, *[1] * (y.ndim - 1)), (1, *y.shape[1:]), y.shape[1:], (*y.shape, 1), (8, *y.shape[1:]), ()):
        if shape != y.shape:
            with pytest.raises(ValueError, match=re.escape(f"dy has shape {shape}; y has {y.shape}")):
                model.backward(params, saved, np.ones(shape, np.float32))


def test_a_loss_that_forgets_an_axis_is_refused():
    model = Sequential([L.Affine(3), L.Dropout(0.0)])
    params = model.init((5,), rng=RNG(0))
    with pytest.raises(ValueError, match=re.escape("dy has shape (4, 1); y has (4, 3)")):
        gradients(model, params, np.ones((4, 5)), np.zeros(4, int), loss=lambda y, t, total=None: (0.0, y[:, :1]))


def test_what_is_no_params_and_what_is_no_array_is_refused_in_words():
    model = Sequential([L.Affine(3)])
    params = model.init((5,), rng=RNG(0))
    x = np.ones((2, 5), np.float32)
    for wrong in (None, [params]):
        with pytest.raises(TypeError, match="params must be a dict by the layers' names, as init gives it"):
            model.forward(wrong, x)
    with pytest.raises(TypeError, match="expected dy as a NumPy array, got list"):
        model.backward(params, model.forward(params, x, train=True)[1], [[1.0] * 3] * 2)


def test_missing_parameters_are_named():
    model = Sequential([L.Affine(3), L.ReLU(), L.Affine(2)])
    params = model.init((5,), rng=RNG(0))
    x = np.ones((2, 5), np.float32)
    without = {"affine_1": params["affine_1"]}
    with pytest.raises(ValueError, match="Affine 'affine_2': 'W' is missing from its parameters"):
        model.forward(without, x)


def test_backward_without_a_training_forward_or_after_a_release_says_so():
    params, x, _, saved, dy = forward(NESTED, (5,))
    with pytest.raises(ValueError, match="run forward with train=True"):
        NESTED.backward(params, NESTED.forward(params, x)[1], dy)
    NESTED.backward(params, saved, dy, release=True)
    with pytest.raises(ValueError, match=r"nothing is saved of sequential_2/affine_1; .* no second backward"):
        NESTED.backward(params, saved, dy)


@pytest.mark.parametrize("wrong", [L.ReLU, 3, None, "relu"])
def test_what_is_not_a_layer_is_refused(wrong):
    with pytest.raises(TypeError, match=r"Sequential: layer 2 is .*give a layer"):
        Sequential([L.Affine(3), wrong])
