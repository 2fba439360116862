import numpy as np
import pytest
from helpers import channels_last, pool_by_loops
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcourse import kernels
from dlcourse.gradcheck import away_from_kinks, gradient_error


@st.composite
def pools(draw):
    """-> (x shape, window): padding at most half of the kernel, and the window fits at least once."""
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    padding = tuple(draw(st.integers(0, k // 2)) for k in kernel)
    stride = (draw(st.integers(1, 4)), draw(st.integers(1, 4)))
    h, w = (draw(st.integers(max(1, k - 2 * p), k + 3)) for k, p in zip(kernel, padding, strict=True))
    shape = (draw(st.integers(1, 2)), h, w, draw(st.integers(1, 2)))
    return shape, {"kernel": kernel, "stride": stride, "padding": padding}


@given(pools())
@settings(max_examples=40)
def test_max_pooling_equals_loops_over_every_window(case):
    shape, window = case
    x = away_from_kinks(np.random.default_rng(0), shape)
    y, _ = kernels.max_pool2d(x, **window)
    np.testing.assert_array_equal(y, pool_by_loops(lambda inside, taps: max(inside), x, **window))


@given(pools(), st.booleans())
@settings(max_examples=40)
def test_mean_pooling_equals_loops_over_every_window(case, count_padding):
    shape, window = case
    x = away_from_kinks(np.random.default_rng(0), shape)

    def mean(inside, taps):
        return sum(inside) / (taps if count_padding else len(inside))

    y = kernels.avg_pool2d(x, **window, count_padding=count_padding)
    np.testing.assert_allclose(y, pool_by_loops(mean, x, **window), rtol=1e-13, atol=1e-13)


def error_of_max_pool(case, backward=kernels.max_pool2d_backward):
    shape, window = case
    x = away_from_kinks(np.random.default_rng(0), shape)
    y, index = kernels.max_pool2d(x, **window)
    dy = np.random.default_rng(1).standard_normal(y.shape)
    dx = backward(dy, index, in_hw=shape[1:3], **window)
    return gradient_error(lambda x: kernels.max_pool2d(x, **window)[0], x, dx, upstream=dy)


def error_of_avg_pool(case, count_padding, backward=kernels.avg_pool2d_backward):
    shape, window = case
    x = away_from_kinks(np.random.default_rng(0), shape)
    y = kernels.avg_pool2d(x, **window, count_padding=count_padding)
    dy = np.random.default_rng(1).standard_normal(y.shape)
    dx = backward(dy, in_hw=shape[1:3], **window, count_padding=count_padding)
    return gradient_error(lambda x: kernels.avg_pool2d(x, **window, count_padding=count_padding), x, dx, upstream=dy)


@given(pools())
@settings(max_examples=30)
def test_gradient_of_max_pooling(case):
    assert error_of_max_pool(case) < 1e-6


@given(pools(), st.booleans())
@settings(max_examples=30)
def test_gradient_of_mean_pooling(case, count_padding):
    assert error_of_avg_pool(case, count_padding) < 1e-6


CASE = ((2, 5, 4, 2), {"kernel": (3, 2), "stride": (1, 1), "padding": (1, 1)})


def scaled(dy, index, **window):
    return kernels.max_pool2d_backward(1.001 * dy, index, **window)


def to_the_first_tap_always(dy, index, **window):
    return kernels.max_pool2d_backward(dy, np.zeros_like(index), **window)


def last_row_dropped(dy, index, **window):
    dx = kernels.max_pool2d_backward(dy, index, **window)
    dx[:, -1] = 0
    return dx


def one_window_a_pixel(dy, index, *, in_hw, **window):
    """The gradient is written instead of added: overlapping windows lose all but the last."""
    dx = np.zeros((len(dy), *in_hw, dy.shape[3]))
    for place in np.ndindex(dy.shape):
        one = np.zeros_like(dy)
        one[place] = dy[place]
        part = kernels.max_pool2d_backward(one, index, in_hw=in_hw, **window)
        dx[part != 0] = part[part != 0]
    return dx


@pytest.mark.parametrize("wrong", [scaled, to_the_first_tap_always, last_row_dropped, one_window_a_pixel])
def test_gradient_check_of_max_pooling_turns_red_under_a_wrong_backward(wrong):
    assert error_of_max_pool(CASE) < 1e-6
    assert error_of_max_pool(CASE, wrong) > 1e-4


def padding_counted_the_other_way(dy, *, count_padding, **window):
    return kernels.avg_pool2d_backward(dy, count_padding=not count_padding, **window)


def not_divided(dy, **window):
    kernel = window["kernel"]
    return kernels.avg_pool2d_backward(dy, **window) * kernel[0] * kernel[1]


def turned(dy, **window):
    return kernels.avg_pool2d_backward(dy[:, ::-1], **window)


@pytest.mark.parametrize("count_padding", [True, False])
@pytest.mark.parametrize("wrong", [padding_counted_the_other_way, not_divided, turned])
def test_gradient_check_of_mean_pooling_turns_red_under_a_wrong_backward(wrong, count_padding):
    assert error_of_avg_pool(CASE, count_padding) < 1e-6
    assert error_of_avg_pool(CASE, count_padding, wrong) > 1e-4


def test_gradient_of_ties_goes_to_the_first_and_sums_to_one():
    x = np.array([0.6, 0.6, 0.3]).reshape(1, 1, 3, 1)
    window = {"kernel": (1, 3), "stride": (1, 3)}
    y, index = kernels.max_pool2d(x, **window)
    dx = kernels.max_pool2d_backward(np.ones_like(y), index, in_hw=(1, 3), **window)
    np.testing.assert_array_equal(dx.ravel(), [1, 0, 0])


@given(pools(), st.integers(1, 2))
@settings(max_examples=30)
def test_no_gradient_is_made_or_lost_by_ties(case, values):
    shape, window = case
    x = np.random.default_rng(0).integers(0, values, shape).astype(np.float64)
    y, index = kernels.max_pool2d(x, **window)
    dy = np.random.default_rng(1).standard_normal(y.shape)
    dx = kernels.max_pool2d_backward(dy, index, in_hw=shape[1:3], **window)
    np.testing.assert_allclose(dx.sum(), dy.sum(), atol=1e-12)


def test_overlapping_windows_add_their_gradients():
    x = np.zeros((1, 3, 3, 1))
    x[0, 1, 1] = 9
    window = {"kernel": (2, 2), "stride": (1, 1)}
    y, index = kernels.max_pool2d(x, **window)
    dx = kernels.max_pool2d_backward(np.ones_like(y), index, in_hw=(3, 3), **window)
    assert dx[0, 1, 1, 0] == 4
    assert dx.sum() == 4


def test_max_pooling_of_ties_over_padding_equals_pytorch():
    # PyTorch 2.13.0: functional.max_pool2d(x, 2, stride=1, padding=1), upstream 1…16: ties go to the first there too.
    x = channels_last([[[[-1.0, -1, -5], [-1, -2, -2], [-7, -2, -2]]]])
    window = {"kernel": (2, 2), "stride": (1, 1), "padding": (1, 1)}
    y, index = kernels.max_pool2d(x, **window)
    expected = [[-1, -1, -1, -5], [-1, -1, -1, -2], [-1, -1, -2, -2], [-7, -2, -2, -2]]
    np.testing.assert_array_equal(y, channels_last([[expected]]))
    dx = kernels.max_pool2d_backward(np.arange(1.0, 17).reshape(y.shape), index, in_hw=(3, 3), **window)
    np.testing.assert_array_equal(dx, channels_last([[[[14, 10, 4], [19, 11, 20], [13, 29, 16]]]]))


AVERAGES = {  # PyTorch 2.13.0: functional.avg_pool2d(x, (2, 3), stride=(2, 1), padding=1, count_include_pad=…)
    True: (
        [[0.5, 1, 1.5, 7 / 6], [5, 8, 9, 19 / 3]],
        [[0.5, 1, 1.5, 7 / 6], [11 / 6, 3, 3.5, 2.5], [11 / 6, 3, 3.5, 2.5]],
    ),
    False: (
        [[1.5, 2, 3, 3.5], [7.5, 8, 9, 9.5]],
        [[7 / 6, 13 / 6, 11 / 3, 3], [2.25, 41 / 12, 25 / 6, 19 / 6], [2.25, 41 / 12, 25 / 6, 19 / 6]],
    ),
}


@pytest.mark.parametrize("count_padding", [True, False])
def test_mean_pooling_equals_pytorch_whether_padding_counts_or_not(count_padding):
    x = np.arange(1.0, 13).reshape(1, 3, 4, 1)
    window = {"kernel": (2, 3), "stride": (2, 1), "padding": (1, 1), "count_padding": count_padding}
    y = kernels.avg_pool2d(x, **window)
    expected, expected_dx = AVERAGES[count_padding]
    np.testing.assert_allclose(y[0, :, :, 0], expected, rtol=1e-13)
    dx = kernels.avg_pool2d_backward(np.arange(1.0, 9).reshape(y.shape), in_hw=(3, 4), **window)
    np.testing.assert_allclose(dx[0, :, :, 0], expected_dx, rtol=1e-13)


def test_nan_comes_through_max_pooling():
    x = np.zeros((1, 4, 4, 1))
    x[0, 1, 0] = np.nan
    y, _ = kernels.max_pool2d(x, kernel=(2, 2), stride=(2, 2))
    np.testing.assert_array_equal(y[0, :, :, 0], [[np.nan, 0], [0, 0]])


def test_index_takes_one_byte_up_to_256_taps():
    assert kernels.index_dtype((16, 16)) == np.uint8
    assert kernels.index_dtype((16, 17)) == np.uint16
    x = away_from_kinks(np.random.default_rng(0), (1, 17, 16, 1))
    window = {"kernel": (17, 16), "stride": (1, 1)}
    y, index = kernels.max_pool2d(x, **window)
    dx = kernels.max_pool2d_backward(np.ones_like(y), index, in_hw=(17, 16), **window)
    assert y.item() == x.max()
    assert dx.ravel()[x.argmax()] == dx.sum() == 1


def test_out_takes_the_result():
    x = away_from_kinks(np.random.default_rng(0), (2, 4, 4, 3))
    out = np.empty((2, 2, 2, 3))
    assert kernels.max_pool2d(x, kernel=(2, 2), stride=(2, 2), out=out)[0] is out
    np.testing.assert_array_equal(out, kernels.max_pool2d(x, kernel=(2, 2), stride=(2, 2))[0])
    assert kernels.avg_pool2d(x, kernel=(2, 2), stride=(2, 2), out=out) is out
    np.testing.assert_array_equal(out, kernels.avg_pool2d(x, kernel=(2, 2), stride=(2, 2)))
