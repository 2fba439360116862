import functools
import math
import tracemalloc
import warnings

import numpy as np
import pytest
from helpers import assert_close
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcourse import losses
from dlcourse.gradcheck import gradient_error

LOSSES = (losses.softmax_cross_entropy, losses.binary_cross_entropy, losses.mean_squared_error)
DTYPES = (np.float32, np.float64)
Z = np.array([[0.5, -1.0, 2.0], [1.0, 0.0, -0.5]])
SOFT = np.array([[0.2, 0.3, 0.5], [0.0, 1.0, 0.0]])
BINARY = np.array([[1.0, 0.0, 0.25], [0.0, 1.0, 0.0]])

# Made with PyTorch 2.13.0 in float64: torch.nn.functional.cross_entropy, binary_cross_entropy_with_logits, mse_loss.
PYTORCH = {
    "labels": (
        functools.partial(losses.softmax_cross_entropy, labels=np.array([0, 2])),
        1.85284004038255,
        [
            [-0.412354803929982, 0.0195562866353437, 0.392798517294638],
            [0.314265859605881, 0.115611948811075, -0.429877808416956],
        ],
    ),
    "smoothed labels": (
        functools.partial(losses.softmax_cross_entropy, labels=np.array([0, 2]), label_smoothing=0.1),
        1.81950670704922,
        [
            [-0.379021470596648, 0.00288961996867706, 0.376131850627971],
            [0.297599192939215, 0.0989452821444079, -0.396544475083622],
        ],
    ),
    "soft targets": (
        functools.partial(losses.softmax_cross_entropy, labels=SOFT),
        1.45284004038255,
        [
            [-0.0123548039299817, -0.130443713364656, 0.142798517294638],
            [0.314265859605881, -0.384388051188925, 0.0701221915830442],
        ],
    ),
    "smoothed soft targets": (
        functools.partial(losses.softmax_cross_entropy, labels=SOFT, label_smoothing=0.1),
        1.45950670704922,
        [
            [-0.0190214705966483, -0.132110380031323, 0.151131850627971],
            [0.297599192939215, -0.351054717855592, 0.0534555249163776],
        ],
    ),
    "binary": (
        functools.partial(losses.binary_cross_entropy, targets=BINARY),
        0.815792089166596,
        [
            [-0.0629234447996909, 0.0448235702283325, 0.105132846329647],
            [0.121843096438334, -0.0833333333333333, 0.0629234447996909],
        ],
    ),
    "squares": (
        functools.partial(losses.mean_squared_error, targets=BINARY),
        1.09375,
        [
            [-0.166666666666667, -0.333333333333333, 0.583333333333333],
            [0.333333333333333, -0.333333333333333, -0.166666666666667],
        ],
    ),
}


def targets_for(loss, shape, rng):
    """Targets of the usual kind: class numbers, or an array of the outputs' shape in [0, 1]."""
    if loss is losses.softmax_cross_entropy:
        return rng.integers(0, shape[-1], shape[:-1])
    return rng.random(shape)


@pytest.mark.parametrize("case", PYTORCH)
def test_losses_and_gradients_are_those_of_pytorch(case):
    f, loss, gradient = PYTORCH[case]
    found, dlogits = f(Z)
    assert found == pytest.approx(loss, rel=1e-13)
    assert_close(dlogits, gradient, 1e-12)
    found, dlogits = f(Z.astype(np.float32))
    assert found == pytest.approx(loss, rel=1e-6)
    assert_close(dlogits, gradient, 3e-6)


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize(("row", "label"), [([[1000, 0, -1000]], [1]), ([1000, 0, -1000], 1)])
def test_cross_entropy_of_logits_of_a_thousand_is_exact_and_silent(dtype, row, label):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        loss, dlogits = losses.softmax_cross_entropy(np.array(row, dtype), np.array(label))
    assert loss == 1000
    np.testing.assert_array_equal(dlogits.reshape(-1), [1, -1, 0])


@pytest.mark.parametrize("dtype", DTYPES)
def test_binary_cross_entropy_of_logits_of_a_thousand_is_exact_and_silent(dtype):
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        loss, dlogits = losses.binary_cross_entropy(np.array([[1000], [-1000]], dtype), np.array([[0], [0]]))
    assert loss == 500
    np.testing.assert_array_equal(dlogits, [[0.5], [0]])


def test_softmax_subtracts_each_rows_own_maximum():
    y = losses.softmax(np.array([[0, 0, 0], [1, 2, 3], [1000, 0, 0]], np.float32))
    np.testing.assert_allclose(y, [[1 / 3] * 3, [0.0900306, 0.2447285, 0.6652410], [1, 0, 0]], rtol=1e-5)
    assert y.dtype == np.float32


def test_softmax_of_one_row_without_a_batch_axis():
    np.testing.assert_allclose(losses.softmax(np.array([1.0, 2, 3])), [0.0900306, 0.2447285, 0.6652410], rtol=1e-6)


def test_softmax_of_a_square_batch_has_rows_that_sum_to_one():
    y = losses.softmax(np.random.default_rng(0).standard_normal((4, 4)))
    np.testing.assert_allclose(y.sum(axis=1), 1)
    assert np.abs(y.sum(axis=0) - 1).max() > 0.05


def test_a_small_loss_is_not_lost_to_the_precision_of_float32():
    loss, _ = losses.softmax_cross_entropy(np.array([[25, 0]], np.float32), np.array([0]))
    assert loss == pytest.approx(math.exp(-25), rel=1e-4)
    loss, _ = losses.binary_cross_entropy(np.array([[25]], np.float32), np.array([[1]]))
    assert loss == pytest.approx(math.exp(-25), rel=1e-4)


@given(
    shape=st.lists(st.integers(1, 4), min_size=2, max_size=3).map(tuple),
    soft=st.booleans(),
    smoothing=st.sampled_from([0.0, 0.2]),
    seed=st.integers(0, 99),
)
@settings(max_examples=40)
def test_gradient_of_cross_entropy_is_its_derivative(shape, soft, smoothing, seed):
    rng = np.random.default_rng(seed)
    logits = rng.standard_normal(shape) * 3
    labels = losses.softmax(rng.standard_normal(shape)) if soft else rng.integers(0, shape[-1], shape[:-1])
    f = functools.partial(losses.softmax_cross_entropy, labels=labels, label_smoothing=smoothing, total=1.7)
    assert gradient_error(lambda z: f(z)[0], logits, f(logits)[1]) < 1e-6


@pytest.mark.parametrize("loss", LOSSES[1:])
@given(shape=st.lists(st.integers(1, 4), min_size=1, max_size=3).map(tuple), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_gradient_of_an_elementwise_loss_is_its_derivative(loss, shape, seed):
    rng = np.random.default_rng(seed)
    y, targets = rng.standard_normal(shape) * 3, rng.random(shape)
    assert gradient_error(lambda y: loss(y, targets)[0], y, loss(y, targets)[1]) < 1e-6


@pytest.mark.parametrize("loss", LOSSES)
@given(n=st.integers(2, 30), cut=st.integers(1, 29), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_parts_with_the_total_of_the_whole_add_up_to_the_whole(loss, n, cut, seed):
    cut = min(cut, n - 1)
    rng = np.random.default_rng(seed)
    y = rng.standard_normal((n, 2, 3))
    targets = targets_for(loss, y.shape, rng)
    whole, dwhole = loss(y, targets)
    first, dfirst = loss(y[:cut], targets[:cut], total=n)
    last, dlast = loss(y[cut:], targets[cut:], total=n)
    assert first + last == pytest.approx(whole, rel=1e-12)
    assert_close(np.concatenate([dfirst, dlast]), dwhole, 1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_is_the_mean_of_the_samples_means(loss):
    rng = np.random.default_rng(0)
    y = rng.standard_normal((5, 4, 3))
    targets = targets_for(loss, y.shape, rng)
    each = [np.mean([loss(y[n, t : t + 1], targets[n, t : t + 1])[0] for t in range(4)]) for n in range(5)]
    assert loss(y, targets)[0] == pytest.approx(np.mean(each), rel=1e-12)


@pytest.mark.parametrize("loss", LOSSES)
def test_blocks_do_not_change_a_loss(loss, monkeypatch):
    rng = np.random.default_rng(0)
    y = rng.standard_normal((37, 5))
    targets = targets_for(loss, y.shape, rng)
    whole, dwhole = loss(y, targets)
    for block in (1, 12, 64):
        monkeypatch.setattr(losses, "BLOCK_NUMBERS", block)
        found, dy = loss(y, targets)
        assert found == pytest.approx(whole, rel=1e-13)
        assert_close(dy, dwhole, 1e-13)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("kind", [np.float64, np.float32, np.int64, np.uint8])
def test_a_gradient_has_the_dtype_of_the_logits_whatever_the_targets_have(loss, dtype, kind):
    targets = np.array([[0, 1, 0], [1, 0, 0]], kind)
    value, dy = loss(Z.astype(dtype), targets)
    assert type(value) is float
    assert dy.dtype == dtype
    assert dy.flags.c_contiguous
    assert loss(Z.astype(dtype), targets, total=np.float64(2))[1].dtype == dtype


@pytest.mark.parametrize("kind", [np.int64, np.int32, np.uint8, np.uint64])
def test_labels_may_be_integers_of_any_width(kind):
    loss, _ = losses.softmax_cross_entropy(Z, np.array([0, 2], kind))
    assert loss == pytest.approx(PYTORCH["labels"][1])


def test_one_hot_targets_are_the_same_as_labels():
    loss, dlogits = losses.softmax_cross_entropy(Z, np.eye(3)[[0, 2]])
    assert loss == pytest.approx(PYTORCH["labels"][1])
    np.testing.assert_array_equal(dlogits, losses.softmax_cross_entropy(Z, np.array([0, 2]))[1])


@pytest.mark.parametrize("loss", LOSSES)
def test_logits_that_are_a_transposed_view_give_the_same(loss):
    y = np.random.default_rng(0).standard_normal((3, 4)).T
    targets = targets_for(loss, y.shape, np.random.default_rng(1))
    np.testing.assert_array_equal(loss(y, targets)[1], loss(y.copy(), targets)[1])


@pytest.mark.parametrize("loss", LOSSES)
def test_a_loss_changes_neither_logits_nor_targets(loss):
    y = Z.copy()
    targets = targets_for(loss, y.shape, np.random.default_rng(1))
    before = targets.copy()
    loss(y, targets)
    np.testing.assert_array_equal(y, Z)
    np.testing.assert_array_equal(targets, before)


@pytest.mark.parametrize("labels", [np.array([1]), np.array([[0.0, 1.0]])])
def test_a_class_that_is_masked_by_minus_infinity_costs_nothing(labels):
    loss, dlogits = losses.softmax_cross_entropy(np.array([[-np.inf, 3.0]]), labels)
    assert loss == 0
    np.testing.assert_array_equal(dlogits, [[0, 0]])


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_logits_that_are_not_finite_give_a_loss_that_is_not_finite_and_no_warning(loss, bad):
    y = Z.astype(np.float32)
    y[1, 0] = bad
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        value, _ = loss(y, targets_for(loss, y.shape, np.random.default_rng(0)))
    assert not math.isfinite(value)


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (np.array([0, 3]), "label 3 in row 1; labels must be 0 to 2: there are 3 outputs"),
        (np.array([-1, 0]), "label -1 in row 0; labels must be 0 to 2"),
        (np.array([0, 1, 2]), r"labels have shape \(3,\); .* \(2,\) or soft targets of shape \(2, 3\)"),
        (np.zeros((2, 2)), r"labels have shape \(2, 2\)"),
        (np.array([[0.2, 0.3, 0.5], [1, 1, 0]]), r"soft targets of row 1 .* sum 2; .* probabilities"),
        (np.array([[2.0, -1, 0], [1, 0, 0]]), r"soft targets of row 0"),
        (np.array([[1, 0, 0], [np.nan, 0, 0]]), r"soft targets of row 1"),
    ],
)
def test_wrong_labels_are_named_with_value_and_place(labels, message):
    with pytest.raises(ValueError, match=message):
        losses.softmax_cross_entropy(Z, labels)


def test_a_wrong_label_of_a_sequence_is_found_at_its_two_indices():
    with pytest.raises(ValueError, match=r"label 9 in row 1, at \(0,\)"):
        losses.softmax_cross_entropy(np.zeros((2, 2, 3)), np.array([[0, 1], [9, 2]]))


def test_a_wrong_row_of_soft_targets_is_counted_over_all_blocks():
    soft = np.full((9000, 2), 0.5)
    soft[8123] = 0.7
    with pytest.raises(ValueError, match="soft targets of row 8123"):
        losses.softmax_cross_entropy(np.zeros((9000, 2)), soft)


@pytest.mark.parametrize("labels", [np.array([0.0, 1.0]), np.array([True, False]), np.array([None, 1]), np.array("ab")])
def test_class_numbers_must_be_integers(labels):
    with pytest.raises(TypeError, match="labels"):
        losses.softmax_cross_entropy(Z, labels)


@pytest.mark.parametrize("loss", LOSSES)
def test_logits_must_be_floats(loss):
    for wrong in (Z.astype(int), Z.astype(object), Z.astype(np.float16)):
        with pytest.raises(TypeError, match="must be float32 or float64"):
            loss(wrong, BINARY)


@pytest.mark.parametrize("loss", LOSSES)
def test_an_empty_batch_is_an_error(loss):
    with pytest.raises(ValueError, match=r"\(0, 3\)"):
        loss(np.zeros((0, 3)), np.zeros((0, 3)))


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("total", [0, -1, math.nan, math.inf])
def test_the_total_must_be_above_zero(loss, total):
    with pytest.raises(ValueError, match="total is"):
        loss(Z, np.eye(3)[:2], total=total)


@pytest.mark.parametrize("smoothing", [-0.1, 1.0, math.nan])
def test_label_smoothing_is_a_share(smoothing):
    with pytest.raises(ValueError, match="label_smoothing is"):
        losses.softmax_cross_entropy(Z, np.array([0, 1]), label_smoothing=smoothing)


@pytest.mark.parametrize("loss", LOSSES[1:])
def test_targets_of_another_shape_are_not_broadcast(loss):
    with pytest.raises(ValueError, match=r"targets have shape \(2,\); .* \(2, 1\)"):
        loss(np.zeros((2, 1)), np.zeros(2))


@pytest.mark.parametrize("bad", [np.nan, 1.5, -0.5, np.inf])
def test_binary_targets_lie_between_zero_and_one(bad):
    with pytest.raises(ValueError, match=rf"target {bad} in row 1, at \(2,\); targets must be in \[0, 1\]"):
        losses.binary_cross_entropy(Z, np.array([[0, 0, 0], [0, 1, bad]]))


@pytest.mark.parametrize("bad", [np.nan, -np.inf])
def test_targets_of_a_regression_are_finite(bad):
    with pytest.raises(ValueError, match=rf"target {bad} in row 1; targets must be finite"):
        losses.mean_squared_error(np.zeros(2), np.array([0, bad]))


def test_object_targets_are_an_error():
    with pytest.raises(TypeError, match="targets are object"):
        losses.mean_squared_error(Z, Z.astype(object))


def traced_peak(f):
    """Bytes at the peak of f() over what was there before. Python's own objects of about 3 KiB are in it."""
    tracemalloc.start()
    try:
        for _ in range(3):
            f()
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        f()
        return tracemalloc.get_traced_memory()[1] - before
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("shape", [(150_000, 2), (30_000, 10), (300, 10, 100), (60, 5000)])
def test_the_plan_names_all_that_a_loss_allocates_beside_its_gradient(loss, dtype, shape):
    rng = np.random.default_rng(0)
    y = rng.standard_normal(shape, dtype=dtype)
    workspace = losses.plan(loss, shape[1:], shape[0], dtype).forward_workspace
    cases = [targets_for(loss, shape, rng), losses.softmax(rng.standard_normal(shape))]
    for targets in cases:
        assert abs(traced_peak(lambda targets=targets: loss(y, targets)) - y.nbytes - workspace) < 4096


def test_the_workspace_does_not_grow_with_the_batch():
    for loss in LOSSES:
        small, large = (losses.plan(loss, (10,), n).forward_workspace for n in (1000, 1_000_000))
        assert small == large < 256 * 1024
        assert losses.plan(loss, (10,), 1).forward_workspace < 600


def test_a_plan_works_for_a_partial_of_a_loss():
    smoothed = functools.partial(functools.partial(losses.softmax_cross_entropy, label_smoothing=0.1), total=3)
    assert losses.plan(smoothed, (10,), 100) == losses.plan(losses.softmax_cross_entropy, (10,), 100)


def test_a_plan_of_an_unknown_loss_is_an_error():
    with pytest.raises(ValueError, match="has no plan: give it an attribute `plan`"):
        losses.plan(print, (10,), 100)


@pytest.mark.parametrize("loss", LOSSES)
def test_a_plan_for_numbers_of_numpy_is_that_for_pythons(loss):
    shape = tuple(np.array([2**20, 2**14], np.int32))
    assert losses.plan(loss, shape, np.int32(8)) == losses.plan(loss, (2**20, 2**14), 8)
    assert type(losses.plan(loss, shape, np.int32(8)).forward_workspace) is int
