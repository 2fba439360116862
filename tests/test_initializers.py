import functools
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcourse import initializers
from dlcourse.initializers import fans, glorot, he, normal, ones, zeros

ALL = (he, glorot, normal, ones, zeros)


def rng(seed=0):
    return np.random.default_rng(seed)


@pytest.mark.parametrize(
    ("shape", "expected"),
    [((20, 30), (20, 30)), ((3, 3, 32, 64), (288, 576)), ((5, 1, 2, 7), (10, 35)), ((4, 2, 3), (8, 12))],
)
def test_fans_count_the_kernel_and_the_channels(shape, expected):
    assert fans(shape) == expected


@pytest.mark.parametrize("shape", [(500, 400), (3, 3, 60, 300)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_weights_have_the_spread_of_the_papers(shape, dtype):
    fan_in, fan_out = fans(shape)
    for W, std in (
        (he(rng(), shape, dtype), math.sqrt(2 / fan_in)),
        (glorot(rng(), shape, dtype), math.sqrt(2 / (fan_in + fan_out))),
        (normal(rng(), shape, dtype), 0.01),
        (functools.partial(normal, std=0.3)(rng(), shape, dtype), 0.3),
    ):
        assert W.std() == pytest.approx(std, rel=0.02)
        assert abs(W.mean()) < 0.02 * std


def test_he_keeps_the_size_of_activations_through_twenty_layers_of_relu():
    x, generator = rng(1).standard_normal((200, 256)), rng()
    for _ in range(20):
        x = np.maximum(x @ he(generator, (256, 256), np.float64), 0)
    assert 0.3 < (x**2).mean() < 3


@given(shape=st.lists(st.integers(1, 6), min_size=2, max_size=4).map(tuple), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_glorot_stays_within_its_limit(shape, seed):
    W = glorot(rng(seed), shape, np.float64)
    assert np.abs(W).max() <= math.sqrt(6 / sum(fans(shape)))


@pytest.mark.parametrize("initializer", ALL)
@pytest.mark.parametrize("dtype", [np.float32, np.float64, "float32"])
def test_weights_have_shape_and_dtype_and_repeat_with_the_seed(initializer, dtype):
    W = initializer(rng(), (3, 3, 2, 4), dtype)
    assert W.shape == (3, 3, 2, 4)
    assert W.dtype == dtype
    assert W.flags.c_contiguous
    np.testing.assert_array_equal(W, initializer(rng(), (3, 3, 2, 4), dtype))
    assert initializer in (ones, zeros) or np.ptp(W) > 0


def test_zeros_and_ones_draw_nothing():
    generator = rng()
    assert not zeros(generator, (4,)).any() and (ones(generator, (4,)) == 1).all()
    assert generator.random() == rng().random()


@pytest.mark.parametrize("initializer", ALL)
def test_nothing_is_allocated_but_the_weights(initializer):
    generator, shape = rng(), (600, 500)
    initializer(generator, shape)
    tracemalloc.start()
    try:
        initializer(generator, shape)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        W = initializer(generator, shape)
        assert tracemalloc.get_traced_memory()[1] - before < W.nbytes + 4096
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("shape", [(5,), (), (0, 3), (3, 3, 0, 4)])
def test_a_shape_without_a_fan_is_an_error(shape):
    for initializer in (he, glorot):
        with pytest.raises(ValueError, match=r"has no fan; it needs two axes or more"):
            initializer(rng(), shape)


@pytest.mark.parametrize("initializer", [he, glorot, normal])
@pytest.mark.parametrize("wrong", [0, None, np.random])
def test_the_generator_must_be_one(initializer, wrong):
    with pytest.raises(TypeError, match=r"it must be a generator, such as np\.random\.default_rng\(0\)"):
        initializer(wrong, (2, 3))


@pytest.mark.parametrize("initializer", ALL)
@pytest.mark.parametrize("dtype", [np.float16, int])
def test_the_dtype_must_be_a_float_that_trains(initializer, dtype):
    with pytest.raises(TypeError, match="it must be float32 or float64"):
        initializer(rng(), (2, 3), dtype)


@pytest.mark.parametrize("std", [-1, math.nan])
def test_a_standard_deviation_is_at_least_zero(std):
    with pytest.raises(ValueError, match="std is"):
        initializers.normal(rng(), (2, 3), std=std)
