"""What one layer does and another does not."""

import re

import numpy as np
import pytest
from helpers import channels_last

from dlcourse import layers as L
from dlcourse import tree

RNG = np.random.default_rng


# Configuration.

WRONG_CONFIG = [
    (lambda: L.Conv2D(8, 3, stride=0), "Conv2D: stride must be an integer of at least 1, got 0"),
    (lambda: L.Conv2D(8, 3, stride=(1, 0)), "Conv2D: stride must be an integer of at least 1, got 0"),
    (lambda: L.Conv2D(8, 3, padding=-1), "Conv2D: padding must be an integer of at least 0, got -1"),
    (lambda: L.Conv2D(8, 3, padding="same"), "Conv2D: padding must be an integer of at least 0, got 'same'"),
    (lambda: L.Conv2D(8, (3, 3, 3)), "Conv2D: kernel_size must be an integer or two, (height, width), got (3, 3, 3)"),
    (lambda: L.Conv2D(8, 2.5), "Conv2D: kernel_size must be an integer of at least 1, got 2.5"),
    (lambda: L.Conv2D(0, 3), "Conv2D: filters must be an integer of at least 1, got 0"),
    (lambda: L.Conv2D(True, 3), "Conv2D: filters must be an integer of at least 1, got True"),
    (lambda: L.Conv2D(8, 3, dilation=0), "Conv2D: dilation must be an integer of at least 1, got 0"),
    (lambda: L.MaxPool2D(2, padding=2), "MaxPool2D: padding (2, 2) is more than half of kernel_size (2, 2)"),
    (lambda: L.AvgPool2D(0), "AvgPool2D: kernel_size must be an integer of at least 1, got 0"),
    (lambda: L.Affine(-3), "Affine: units must be an integer of at least 1, got -3"),
    (lambda: L.Dropout(1.0), "Dropout: rate must be in [0, 1), got 1.0"),
    (lambda: L.Dropout(float("nan")), "Dropout: rate must be in [0, 1), got nan"),
    (lambda: L.Dropout("half"), "Dropout: rate must be a number, got 'half'"),
    (lambda: L.LeakyReLU(-0.1), "LeakyReLU: slope must be in [0, 1], got -0.1"),
    (lambda: L.BatchNorm(momentum=2), "BatchNorm: momentum must be in [0, 1], got 2.0"),
    (lambda: L.LayerNorm(eps=0), "LayerNorm: eps must be in [1e-12, 1], got 0.0"),
]


@pytest.mark.parametrize(("make", "message"), WRONG_CONFIG)
def test_wrong_configuration_names_the_layer_the_value_and_what_would_be_right(make, message):
    with pytest.raises((ValueError, TypeError), match=re.escape(message)):
        make()


def test_sizes_are_stored_as_two_plain_integers():
    layer = L.Conv2D(np.int64(8), np.int32(3), stride=[1, 2])
    assert layer == L.Conv2D(8, (3, 3), stride=(1, 2))
    assert {type(number) for number in (layer.filters, *layer.kernel_size, *layer.stride)} == {int}
    assert L.MaxPool2D(2).stride == (2, 2)


def test_numbers_of_numpy_become_python_floats_and_leave_float32_as_it_is():
    third = np.float64(1 / 3)
    for layer in (L.Dropout(third), L.LeakyReLU(third), L.BatchNorm(third, third), L.LayerNorm(third)):
        assert {type(value) for value in vars(layer).values()} == {float}
        params = layer.init((4,), RNG(0))
        x = RNG(0).standard_normal((3, 4), dtype=np.float32)
        y, saved = layer.forward(params, x, train=True, rng=RNG(0))
        dx, grads = layer.backward(params, saved, y)
        arrays = [leaf for leaf in tree.leaves([y, saved, dx, grads]) if leaf.dtype.kind == "f"]
        assert {array.dtype for array in arrays} == {np.dtype(np.float32)}


# Shapes.


def test_a_kernel_larger_than_its_padded_input_is_refused():
    message = "kernel_size 5 is larger than the padded input (4, 4); add padding or take a smaller kernel"
    for layer in (L.Conv2D(8, 5, padding=1), L.MaxPool2D(5, padding=1), L.AvgPool2D(5, padding=1)):
        with pytest.raises(ValueError, match=re.escape(message)):
            layer.out_shape((2, 2, 3))
    with pytest.raises(ValueError, match=re.escape("kernel_size 3 with dilation (2, 2) reaches over (5, 5), which")):
        L.Conv2D(8, 3, dilation=2).out_shape((4, 9, 3))


def test_windows_that_do_not_divide_leave_out_the_rest():
    assert L.Conv2D(2, 7, stride=3, padding=2).out_shape((16, 16, 3)) == (5, 5, 2)
    assert L.MaxPool2D(2).out_shape((5, 7, 3)) == (2, 3, 3)
    assert L.Conv2D(2, (3, 1), stride=(2, 1), padding=(1, 0), dilation=(2, 1)).out_shape((9, 4, 1)) == (4, 4, 2)


@pytest.mark.parametrize("layer", [L.Conv2D(8, 3), L.MaxPool2D(2), L.AvgPool2D(2)])
@pytest.mark.parametrize("in_shape", [(12,), (4, 4), (2, 4, 4, 3)])
def test_only_images_fit_layers_of_images(layer, in_shape):
    with pytest.raises(ValueError, match=re.escape(f"expected images (H, W, C), got inputs of shape {in_shape}")):
        layer.out_shape(in_shape)


def test_affine_wants_images_flattened():
    with pytest.raises(ValueError, match=re.escape("got images of shape (8, 8, 1); put Flatten() before it")):
        L.Affine(10).out_shape((8, 8, 1))


@pytest.mark.parametrize(
    ("layer", "made_for", "given", "message"),
    [
        (L.Affine(2), (4,), (5,), "W has shape (4, 2); an input of shape (5,) needs (5, 2)"),
        (
            L.Conv2D(2, 1),
            (4, 4, 3),
            (4, 4, 1),
            "W has shape (1, 1, 3, 2); an input of shape (4, 4, 1) needs (1, 1, 1, 2)",
        ),
        (L.BatchNorm(), (4, 4, 3), (4, 4, 1), "gamma has shape (3,); an input of shape (4, 4, 1) needs (1,)"),
        (L.LayerNorm(), (4,), (5,), "gamma has shape (4,); an input of shape (5,) needs (5,)"),
    ],
)
def test_an_input_of_another_size_than_the_parameters_were_made_for_is_refused(layer, made_for, given, message):
    with pytest.raises(ValueError, match=re.escape(message)):
        layer.forward(layer.init(made_for, RNG(0)), np.ones((2, *given), np.float32))


# Initial parameters.


def test_weights_come_from_the_initializer_and_biases_are_zero():
    layer = L.Conv2D(64, 3)
    params = layer.init((8, 8, 16), RNG(0))
    assert params["W"].shape == (3, 3, 16, 64)
    np.testing.assert_allclose(params["W"].std(), np.sqrt(2 / (9 * 16)), rtol=0.05)
    assert not params["b"].any()
    ones = L.Affine(3, init_W=lambda rng, shape, dtype: np.ones(shape, dtype)).init((2,), RNG(0))
    np.testing.assert_array_equal(ones["W"], np.ones((2, 3)))


# Dropout.


def test_dropout_draws_only_in_training_and_asks_for_a_generator():
    x = np.ones((2, 3), np.float32)
    y, saved = L.Dropout(0.5).forward({}, x)
    assert y is x
    assert saved is None
    with pytest.raises(ValueError, match="needs rng"):
        L.Dropout(0.5).forward({}, x, train=True)


def test_dropout_keeps_the_mean_and_one_byte_an_element():
    x = np.ones((100, 1000), np.float32)
    y, saved = L.Dropout(0.3).forward({}, x, train=True, rng=RNG(0))
    np.testing.assert_allclose(y.mean(), 1, atol=0.01)
    assert tree.nbytes(saved) == x.size


# BatchNorm: PyTorch 2.13.0, BatchNorm2d(2) in float64 on arange(16) as (2, 2, 2, 2), then on twice that plus one.


def batch_norm_of_aranges():
    layer, x = L.BatchNorm(), channels_last(np.arange(16.0).reshape(2, 2, 2, 2))
    params = layer.init((2, 2, 2), RNG(0), np.float64)
    params["gamma"][:], params["beta"][:] = [2, -1], [0.5, 0.25]
    return layer, params, x


def test_batch_norm_moves_its_running_statistics_as_pytorch_does():
    layer, params, x = batch_norm_of_aranges()
    _, saved = layer.forward(params, x, train=True)
    layer.update_buffers(params, saved)
    np.testing.assert_allclose(params["buffers"]["mean"], [0.55, 0.95])
    np.testing.assert_allclose(params["buffers"]["var"], [2.871428571428572] * 2)
    _, saved = layer.forward(params, 2 * x + 1, train=True)
    layer.update_buffers(params, layer.statistics(saved))
    np.testing.assert_allclose(params["buffers"]["mean"], [1.695, 2.855])
    np.testing.assert_allclose(params["buffers"]["var"], [10.47, 10.47])
    y, _ = layer.forward(params, x)
    expected = [
        [[-0.547673960808391, 0.070422771231957], [0.688519503272306, 1.306616235312655]],
        [[-0.1038603790931, -0.412908745113274], [-0.721957111133448, -1.031005477153623]],
    ]
    np.testing.assert_allclose(y[0], channels_last([expected])[0], rtol=1e-12)


def test_batch_norm_changes_nothing_until_its_statistics_are_applied():
    layer, params, x = batch_norm_of_aranges()
    before = tree.copy(params)
    _, saved = layer.forward(params, x, train=True)
    layer.backward(params, saved, x)
    np.testing.assert_equal(params, before)


def test_batch_norm_state_has_one_value_a_channel():
    params = L.BatchNorm().init((32, 32, 3), RNG(0))
    assert {leaf.shape for leaf in tree.leaves(params)} == {(3,)}
    assert tree.count(params) == 6  # gamma and beta; running statistics are not trained
    assert len(tree.buffers(params)) == 2


def test_batch_norm_of_one_value_a_channel_is_refused_in_training_alone():
    layer = L.BatchNorm()
    params, x = layer.init((4,), RNG(0)), np.ones((1, 4), np.float32)
    layer.forward(params, x)
    with pytest.raises(ValueError, match="needs more than one value a channel"):
        layer.forward(params, x, train=True)


def test_layer_norm_is_the_same_in_training_and_evaluation_and_for_each_sample_alone():
    layer, x = L.LayerNorm(), RNG(0).standard_normal((5, 3, 4))
    params = layer.init((3, 4), RNG(0), np.float64)
    y, _ = layer.forward(params, x)
    np.testing.assert_array_equal(y, layer.forward(params, x, train=True)[0])
    np.testing.assert_array_equal(y[2:3], layer.forward(params, x[2:3])[0])


# What is kept.


def test_activations_keep_the_output_that_the_next_layer_keeps_anyway():
    x = RNG(0).standard_normal((2, 3))
    for layer in (L.ReLU(), L.LeakyReLU(), L.Sigmoid(), L.Tanh()):
        y, saved = layer.forward({}, x, train=True)
        assert saved is y
    assert L.GELU().forward({}, x, train=True)[1] is x


def test_max_pooling_keeps_a_byte_an_output_and_not_its_input():
    x = RNG(0).standard_normal((10, 8, 8, 4), dtype=np.float32)
    y, saved = L.MaxPool2D(2).forward({}, x, train=True)
    assert saved["index"].dtype == np.uint8
    assert tree.nbytes(saved) == y.size + 16


def test_flatten_copies_nothing():
    x = np.ones((2, 3, 4))
    y, saved = L.Flatten().forward({}, x, train=True)
    assert y.base is x
    dx, _ = L.Flatten().backward({}, saved, y)
    assert np.shares_memory(dx, x)
    assert dx.shape == x.shape
