"""Gradients of every layer in float64, and a proof for each check that it can fail."""

import numpy as np
import pytest
from helpers import WITH_PARAMS, WRONG_DX, WRONG_GRADS, Wrong, by_name
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcourse import layers as L
from dlcourse.gradcheck import check_layer

ENOUGH = 1e-6  # a right backward is below
RED = 1e-4  # a wrong one is above

few = settings(max_examples=12)


def errors(layer, in_shape, batch=3, seed=0):
    return check_layer(layer, in_shape, batch, np.random.default_rng(seed))


@pytest.mark.parametrize("case", **by_name())
def test_gradients_are_right(case):
    assert max(errors(case.layer, case.small).values()) < ENOUGH


@pytest.mark.parametrize("fault", WRONG_DX)
@pytest.mark.parametrize("case", **by_name())
def test_gradient_check_turns_red_under_a_wrong_dx(case, fault):
    assert errors(Wrong(case.layer, fault), case.small)["x"] > RED


@pytest.mark.parametrize("fault", WRONG_GRADS)
@pytest.mark.parametrize("case", **by_name(WITH_PARAMS))
def test_gradient_check_turns_red_under_wrong_gradients_of_the_parameters(case, fault):
    found = errors(Wrong(case.layer, fault), case.small)
    assert found.pop("x") < ENOUGH
    assert min(found.values()) > RED


@given(st.lists(st.integers(1, 4), min_size=1, max_size=2).map(tuple), st.integers(1, 4), st.integers(1, 3))
@few
def test_gradients_of_affine_on_any_number_of_axes(in_shape, units, batch):
    assert max(errors(L.Affine(units), in_shape, batch).values()) < ENOUGH


@st.composite
def windows(draw, dilations=(1,)):
    """-> (in_shape, kernel_size, options) of a window that fits; sizes as one integer or as two."""

    def size(low, high):
        pairs = st.tuples(st.integers(low, high), st.integers(low, high))
        return draw(st.one_of(st.integers(low, high), pairs))

    kernel, stride = size(1, 3), size(1, 3)
    dilation = draw(st.sampled_from(dilations))
    both = (kernel, kernel) if isinstance(kernel, int) else kernel
    padding = tuple(draw(st.integers(0, k // 2)) for k in both)
    rest = (draw(st.integers(0, 3)), draw(st.integers(0, 3)))
    h, w = (max(1, dilation * (k - 1) + 1 - 2 * p) + r for k, p, r in zip(both, padding, rest, strict=True))
    return (h, w, draw(st.integers(1, 2))), kernel, {"stride": stride, "padding": padding}, dilation


@given(windows(dilations=(1, 2)), st.integers(1, 2), st.integers(1, 2))
@few
def test_gradients_of_convolution_for_any_window(window, filters, batch):
    in_shape, kernel, options, dilation = window
    layer = L.Conv2D(filters, kernel, dilation=dilation, **options)
    assert max(errors(layer, in_shape, batch).values()) < ENOUGH


@given(windows(), st.integers(1, 2), st.sampled_from([L.MaxPool2D, L.AvgPool2D]))
@few
def test_gradients_of_pooling_for_any_window(window, batch, kind):
    in_shape, kernel, options, _ = window
    assert max(errors(kind(kernel, **options), in_shape, batch).values()) < ENOUGH


@given(st.lists(st.integers(1, 3), min_size=0, max_size=2).map(tuple), st.integers(2, 4), st.integers(2, 3))
@few
def test_gradients_of_normalization_on_any_number_of_axes(axes, channels, batch):
    for layer in (L.BatchNorm(eps=1e-3), L.LayerNorm(eps=1e-3)):
        assert max(errors(layer, (*axes, channels), batch).values()) < ENOUGH


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=3).map(tuple),
    st.sampled_from([L.ReLU(), L.LeakyReLU(0.3), L.Sigmoid(), L.Tanh(), L.GELU(), L.Dropout(0.5), L.Flatten()]),
)
@settings(max_examples=25)
def test_gradients_of_layers_without_parameters_for_any_shape(in_shape, layer):
    assert max(errors(layer, in_shape, 2).values()) < ENOUGH
