from unittest import mock

import numpy as np
import pytest
from helpers import assert_close, channels_last, conv_by_loops
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcourse import kernels
from dlcourse.gradcheck import gradient_error
from dlcourse.kernels import conv

BLOCKS = (1, 500, 1 << 20)  # bytes of columns: an image a block, two or three with a rest, all at once


@st.composite
def convolutions(draw):
    """-> (x shape, W shape, window) of a convolution whose window fits at least once."""
    kernel = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    padding = (draw(st.integers(0, 2)), draw(st.integers(0, 2)))
    dilation = (draw(st.integers(1, 2)), draw(st.integers(1, 2)))
    stride = (draw(st.integers(1, 3)), draw(st.integers(1, 3)))
    reach = [d * (k - 1) + 1 for k, d in zip(kernel, dilation, strict=True)]
    h, w = (draw(st.integers(max(1, r - 2 * p), r + 3)) for r, p in zip(reach, padding, strict=True))
    n, c, f = draw(st.integers(1, 3)), draw(st.integers(1, 2)), draw(st.integers(1, 2))
    strip = (
        {"strip": draw(st.sampled_from((1, 200, 500)))} if draw(st.booleans()) else {}
    )  # some rows of an image at a time
    return (n, h, w, c), (*kernel, c, f), {"stride": stride, "padding": padding, "dilation": dilation, **strip}


def arrays(case, seed=0):
    x_shape, W_shape, window = case
    rng = np.random.default_rng(seed)
    return rng.standard_normal(x_shape), rng.standard_normal(W_shape), rng.standard_normal(W_shape[-1]), window


@given(convolutions(), st.sampled_from(BLOCKS))
@settings(max_examples=40)
def test_convolution_equals_loops_over_every_window(case, block):
    x, W, b, window = arrays(case)
    with mock.patch.object(conv, "BLOCK_BYTES", block):
        y = kernels.conv2d(x, W, b, **window)
    window.pop("strip", None)
    assert_close(y, conv_by_loops(x, W, b, **window), 1e-12)


def gradient_errors(case, block, backward=kernels.conv2d_backward):
    x, W, b, window = arrays(case)
    with mock.patch.object(conv, "BLOCK_BYTES", block):
        y = kernels.conv2d(x, W, b, **window)
        dy = np.random.default_rng(1).standard_normal(y.shape)
        dx, dW, db = backward(dy, x, W, **window)
        return [
            gradient_error(lambda x: kernels.conv2d(x, W, b, **window), x, dx, upstream=dy),
            gradient_error(lambda W: kernels.conv2d(x, W, b, **window), W, dW, upstream=dy),
            gradient_error(lambda b: kernels.conv2d(x, W, b, **window), b, db, upstream=dy),
        ]


@given(convolutions(), st.sampled_from(BLOCKS))
@settings(max_examples=25)
def test_gradients_of_convolution(case, block):
    assert max(gradient_errors(case, block)) < 1e-6


CASE = ((2, 5, 4, 2), (3, 2, 2, 3), {"stride": (2, 1), "padding": (1, 1), "dilation": (1, 2)})


def with_dx(change):
    def backward(dy, x, W, **window):
        dx, dW, db = kernels.conv2d_backward(dy, x, W, **window)
        return change(dx), dW, db

    return backward


def forward_kernel_turned_for_dx(dy, x, W, **window):
    return kernels.conv2d_backward(dy, x, W[::-1, ::-1], **window)


def a_tap_left_out(dy, x, W, **window):
    W = W.copy()
    W[1, 1] = 0
    return kernels.conv2d_backward(dy, x, W, **window)


def last_image_left_out(dy, x, W, **window):
    dy = dy.copy()
    dy[-1] = 0
    return kernels.conv2d_backward(dy, x, W, **window)


def bias_of_one_row(dy, x, W, **window):
    dx, dW, _ = kernels.conv2d_backward(dy, x, W, **window)
    return dx, dW, dy[:, 0].sum(axis=(0, 1))


WRONG = (
    forward_kernel_turned_for_dx,
    a_tap_left_out,
    last_image_left_out,
    bias_of_one_row,
    with_dx(lambda dx: 1.001 * dx),
    with_dx(lambda dx: np.roll(dx, 1, axis=2)),
)


@pytest.mark.parametrize("wrong", WRONG)
def test_gradient_check_of_convolution_turns_red_under_a_wrong_backward(wrong):
    assert max(gradient_errors(CASE, 1 << 20)) < 1e-6
    assert max(gradient_errors(CASE, 1 << 20, wrong)) > 1e-4


def test_columns_left_dirty_by_the_block_before_do_not_reach_the_next():
    with mock.patch.object(conv, "BLOCK_BYTES", 1):
        x, W, b, window = arrays(((5, 4, 4, 2), (3, 3, 2, 2), {"padding": (1, 1)}))
        by_image = kernels.conv2d(x, W, b, **window)
        dx, _, _ = kernels.conv2d_backward(by_image, x, W, **window)
    assert_close(by_image, kernels.conv2d(x, W, b, **window), 1e-13)
    assert_close(dx, kernels.conv2d_backward(by_image, x, W, **window)[0], 1e-12)


def test_pixels_that_no_window_reaches_have_gradient_zero():
    x = np.arange(25.0).reshape(1, 5, 5, 1)
    W, b = np.ones((2, 2, 1, 1)), np.zeros(1)
    y = kernels.conv2d(x, W, b, stride=(2, 2))
    np.testing.assert_array_equal(y[0, :, :, 0], [[12, 20], [52, 60]])
    dx, _, _ = kernels.conv2d_backward(np.ones_like(y), x, W, stride=(2, 2))
    expected = np.ones((5, 5))
    expected[-1] = expected[:, -1] = 0
    np.testing.assert_array_equal(dx[0, :, :, 0], expected)


def test_a_stride_that_does_not_divide_gives_dx_of_the_input_size():
    assert kernels.out_size(16, 7, 3, 2) == 5
    x, W = np.ones((1, 16, 16, 1)), np.ones((7, 7, 1, 1))
    window = {"stride": (3, 3), "padding": (2, 2)}
    y = kernels.conv2d(x, W, np.zeros(1), **window)
    assert y.shape == (1, 5, 5, 1)
    assert kernels.conv2d_backward(y, x, W, **window)[0].shape == x.shape


def test_convolution_equals_pytorch():
    # PyTorch 2.13.0, float64: functional.conv2d(x, W, b, stride=(2, 1), padding=(1, 2), dilation=(1, 3)) of aranges.
    x, W = np.arange(24.0).reshape(1, 4, 6, 1), np.arange(1.0, 7.0).reshape(3, 2, 1, 1)
    window = {"stride": (2, 1), "padding": (1, 2), "dilation": (1, 3)}
    y = kernels.conv2d(x, W, np.array([0.5]), **window)
    expected = [[46.5, 56.5, 96.5, 114.5, 132.5, 54.5, 62.5], [180.5, 192.5, 336.5, 357.5, 378.5, 159.5, 168.5]]
    np.testing.assert_allclose(y, channels_last([[expected]]))
    dx, dW, db = kernels.conv2d_backward((np.arange(14.0) % 5).reshape(y.shape), x, W, **window)
    expected_dx = [[6, 9, 16, 8, 15, 16], [14, 19, 33, 22, 26, 26], [12, 8, 15, 22, 9, 4], [20, 12, 23, 34, 15, 6]]
    np.testing.assert_allclose(dx, channels_last([[expected_dx]]))
    np.testing.assert_allclose(dW[:, :, 0, 0], [[80, 85], [155, 185], [275, 305]])
    np.testing.assert_allclose(db, [26])


def test_images_in_another_memory_order_give_the_same():
    x, W, b, _ = arrays(((2, 4, 5, 3), (3, 3, 3, 2), {}))
    first = np.ascontiguousarray(x.transpose(0, 3, 1, 2)).transpose(0, 2, 3, 1)  # (N, C, H, W) in memory
    assert_close(kernels.conv2d(first, W, b), kernels.conv2d(x, W, b), 1e-13)
    assert_close(kernels.conv2d(x[:, ::-1, ::-1], W, b), conv_by_loops(x[:, ::-1, ::-1], W, b), 1e-13)


def test_out_takes_the_result_and_refuses_memory_that_is_not_in_one_piece():
    x, W, b, _ = arrays(((2, 4, 5, 3), (3, 3, 3, 2), {}))
    out = np.empty((2, 2, 3, 2))
    assert kernels.conv2d(x, W, b, out=out) is out
    np.testing.assert_array_equal(out, kernels.conv2d(x, W, b))
    with pytest.raises(ValueError):
        kernels.conv2d(x, W, b, out=np.empty((2, 2, 2, 3)).transpose(0, 1, 3, 2))


def test_dx_is_not_made_where_it_is_not_needed():
    x, W, b, window = arrays(CASE)
    dy = kernels.conv2d(x, W, b, **window)
    _, dW, db = kernels.conv2d_backward(dy, x, W, **window)
    none, dW_alone, db_alone = kernels.conv2d_backward(dy, x, W, **window, need_dx=False)
    assert none is None
    np.testing.assert_array_equal(dW, dW_alone)
    np.testing.assert_array_equal(db, db_alone)
