"""What holds for every kernel: its signature, `out`, `need_dx`, dtypes, inputs, and what it refuses."""

import inspect
import tracemalloc

import numpy as np
import pytest

from dlcourse import kernels

RNG = np.random.default_rng
WINDOW = {"kernel": (2, 3), "stride": (1, 2), "padding": (1, 0)}
CONV = {"stride": (2, 1), "padding": (1, 1), "dilation": (1, 2)}


def arrays(dtype=np.float32, n=3):
    """{name of an argument: an array that fits the others}. y is an output of a sigmoid, dy like y."""
    rng = RNG(0)

    def draw(*shape):
        return rng.standard_normal(shape).astype(dtype)

    x = draw(n, 5, 6, 4)
    pooled, index = kernels.max_pool2d(x, **WINDOW)
    W, b, gamma = draw(3, 2, 4, 5), draw(5), draw(4)
    conv = kernels.conv2d(x, W, b, **CONV)
    return {
        "x": x, "dy": draw(*x.shape), "y": kernels.sigmoid(draw(*x.shape)), "keep": x > 0, "gamma": gamma, "beta": draw(4),
        "mean": draw(4), "var": draw(4) ** 2, "means": draw(n, 5, 6, 1), "vars": draw(n, 5, 6, 1) ** 2, "W": draw(4, 5), "b": b,
        "dy_affine": draw(n, 5, 6, 5), "conv_W": W, "dy_conv": draw(*conv.shape), "dy_pool": draw(*pooled.shape), "index": index,
    }  # fmt: skip


STATISTICS = ("x", "gamma", "mean", "var")
CALLS = {  # kernel: (names of its arrays, options)
    "affine": (("x", "W", "b"), {}),
    "affine_backward": (("dy_affine", "x", "W"), {}),
    "avg_pool2d": (("x",), WINDOW),
    "avg_pool2d_backward": (("dy_pool",), {"in_hw": (5, 6), **WINDOW}),
    "batch_norm": (("x", "gamma", "beta"), {"eps": 1e-5}),
    "batch_norm_backward": (("dy", *STATISTICS), {"eps": 1e-5}),
    "batch_norm_inference": (("x", "gamma", "beta", "mean", "var"), {"eps": 1e-5}),
    "conv2d": (("x", "conv_W", "b"), CONV),
    "conv2d_backward": (("dy_conv", "x", "conv_W"), CONV),
    "dropout": (("x",), {"rate": 0.4, "rng": None}),
    "dropout_backward": (("dy", "keep"), {"rate": 0.4}),
    "gelu": (("x",), {}),
    "gelu_backward": (("dy", "x"), {}),
    "layer_norm": (("x", "gamma", "beta"), {"eps": 1e-5}),
    "layer_norm_backward": (("dy", "x", "gamma", "means", "vars"), {"eps": 1e-5}),
    "leaky_relu": (("x",), {"slope": 0.1}),
    "leaky_relu_backward": (("dy", "y"), {"slope": 0.1}),
    "max_pool2d": (("x",), WINDOW),
    "max_pool2d_backward": (("dy_pool", "index"), {"in_hw": (5, 6), **WINDOW}),
    "relu": (("x",), {}),
    "relu_backward": (("dy", "y"), {}),
    "sigmoid": (("x",), {}),
    "sigmoid_backward": (("dy", "y"), {}),
    "tanh": (("x",), {}),
    "tanh_backward": (("dy", "y"), {}),
}
OUT_MAY_BE_DY = ("relu_backward", "leaky_relu_backward", "dropout_backward")
IN_SIGNATURE = {"dy_affine": "dy", "dy_conv": "dy", "dy_pool": "dy", "conv_W": "W", "means": "mean", "vars": "var"}


def run(name, given, **more):
    """-> the results, always as a tuple."""
    names, options = CALLS[name]
    if "rng" in options:
        options = options | {"rng": RNG(1)}
    results = getattr(kernels, name)(*(given[argument] for argument in names), **options, **more)
    return results if isinstance(results, tuple) else (results,)


def test_every_kernel_is_here():
    public = {
        name for name, f in vars(kernels).items() if inspect.isfunction(f) and "out" in inspect.signature(f).parameters
    }
    assert public == CALLS.keys()
    assert {f"{name}_backward" for name in public if not name.endswith("_backward")} - public == {
        "batch_norm_inference_backward"
    }


@pytest.mark.parametrize("name", CALLS)
def test_a_kernel_takes_arrays_by_position_and_options_by_keyword(name):
    names, options = CALLS[name]
    parameters = inspect.signature(getattr(kernels, name)).parameters
    by_position = [p.name for p in parameters.values() if p.kind is p.POSITIONAL_OR_KEYWORD]
    by_keyword = [p.name for p in parameters.values() if p.kind is p.KEYWORD_ONLY]
    assert by_position == [IN_SIGNATURE.get(argument, argument) for argument in names]
    assert set(options) <= set(by_keyword)
    assert by_keyword[-1] == "out" and parameters["out"].default is None
    assert ("need_dx" in by_keyword) == name.endswith("_backward")
    if name.endswith("_backward"):
        forward = inspect.signature(getattr(kernels, name.removesuffix("_backward"))).parameters
        kept = {"y", "mean", "var", "index", "keep"}
        assert by_position[0] == "dy" and set(by_position[1:]) <= forward.keys() | kept


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", CALLS)
def test_out_is_filled_and_returned_with_the_same_bits_and_nothing_else_changes(name, dtype):
    given = arrays(dtype)
    before = {key: array.copy() for key, array in given.items()}
    results = run(name, given)
    assert all(result.dtype == dtype for result in results if result.dtype.kind == "f")
    out = np.full_like(results[0], np.nan)
    into = run(name, given, out=out)
    assert into[0] is out
    for result, other in zip(results, into, strict=True):
        assert other.dtype == result.dtype and other.tobytes() == result.tobytes()
    for key, array in before.items():
        np.testing.assert_array_equal(given[key], array, err_msg=key)
    if name in OUT_MAY_BE_DY:
        dy = given["dy"].copy()
        over = run(name, given | {"dy": dy}, out=dy)
        assert over[0] is dy and dy.tobytes() == results[0].tobytes()


@pytest.mark.parametrize(
    "name", [name for name in CALLS if name != "dropout"]
)  # its draws are as large as y, and gone before
def test_with_out_a_kernel_allocates_that_much_less(name, small_buffers):
    given = arrays(n=500)
    out = run(name, given)[0]
    plain, into = (least_peak(lambda more=more: run(name, given, **more)) for more in ({}, {"out": np.empty_like(out)}))
    assert abs(plain - into - out.nbytes) < 16 * 1024


def least_peak(f):
    """The lower traced peak of two calls: Python makes some things once and keeps them."""
    peaks = []
    for _ in range(2):
        tracemalloc.start()
        f()
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    return min(peaks)


@pytest.fixture
def small_buffers():
    before = np.setbufsize(16)  # a ufunc that casts or repeats an operand does so in a buffer of 8,192 numbers
    yield
    np.setbufsize(before)


@pytest.mark.parametrize("name", [name for name in CALLS if name.endswith("_backward")])
def test_without_need_of_dx_there_is_none_and_the_other_gradients_are_the_same(name):
    given = arrays()
    _, *others = run(name, given)
    dx, *alone = run(name, given, need_dx=False)
    assert dx is None
    assert [array.tobytes() for array in alone] == [array.tobytes() for array in others]


@pytest.mark.parametrize("dtype", [np.uint8, np.int64, bool, object, complex])
@pytest.mark.parametrize("name", CALLS)
def test_anything_but_floats_is_refused_with_what_to_do(name, dtype):
    given = arrays()
    first = CALLS[name][0][0]
    with pytest.raises(TypeError, match=r"expected a float array, got .*; dlcourse.inputs.as_input turns uint8 images"):
        run(name, given | {first: np.ones(given[first].shape, dtype)})
    with pytest.raises(TypeError, match="expected a float array, got list"):
        run(name, given | {first: given[first].tolist()})


# Sums of many rows.

MANY = 2**20


@pytest.mark.parametrize("shape", [(MANY, 2), (100, 32, 32, 4), (102_399, 3), (17, 1), (16, 5), (1, 3), (257, 256)])
def test_a_sum_of_many_rows_keeps_its_digits(shape):
    rows, tenth = int(np.prod(shape[:-1])), float(np.float32(0.1))
    np.testing.assert_allclose(kernels.sum_rows(np.full(shape, 0.1, np.float32)) / (rows * tenth), 1, rtol=1e-6)
    whole = RNG(0).integers(-8, 8, shape)
    exact = whole.reshape(-1, shape[-1]).sum(axis=0)
    np.testing.assert_array_equal(kernels.sum_rows(whole.astype(np.float32)), exact)


def test_gradients_of_a_bias_and_of_a_scale_keep_the_digits_of_many_rows():
    dy = np.full((MANY, 2), 0.1, np.float32)
    x, one, zero, two = (
        np.ones_like(dy),
        np.ones((MANY, 1), np.float32),
        np.zeros((MANY, 1), np.float32),
        np.ones(2, np.float32),
    )
    images, W = dy.reshape(1024, 32, 32, 2), np.ones((1, 1, 2, 2), np.float32)
    options = {"eps": 1e-12, "need_dx": False}
    found = [
        kernels.affine_backward(dy, x, W[0, 0], need_dx=False)[2],
        kernels.conv2d_backward(images, images, W, need_dx=False)[2],
        *kernels.batch_norm_backward(dy, x, two, 0 * two, two, **options)[1:],
        *kernels.layer_norm_backward(dy, x, two, zero, one, **options)[1:],
    ]
    for total in found:
        np.testing.assert_allclose(total / (MANY * float(np.float32(0.1))), 1, rtol=1e-6)


@pytest.mark.parametrize("shape", [(100, 32, 32, 4), (2_000_000, 1), (2_000_000, 2), (3, 5)])
@pytest.mark.parametrize("value", [0.1, -7.3, 1e4])
def test_batch_norm_of_equal_numbers_is_zero(shape, value):
    ones, zeros = np.ones(shape[-1], np.float32), np.zeros(shape[-1], np.float32)
    y, mean, var = kernels.batch_norm(np.full(shape, value, np.float32), ones, zeros, eps=1e-5)
    assert not y.any() and not var.any()
    np.testing.assert_array_equal(mean, np.float32(value))
