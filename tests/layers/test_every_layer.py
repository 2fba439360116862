"""What holds for every layer: its contract, and its plan. The list of layers is `helpers.CASES`."""

import dataclasses
import gc
import tracemalloc

import numpy as np
import pytest
from helpers import WITH_PARAMS, by_name, same_bits

from dlcourse import tree
from dlcourse.memory.traced import traced_array_bytes

KIB = 1024
DTYPES = (np.float32, np.float64)


def run(case, *, batch=3, dtype=np.float32, train=True, shape=None, seed=0):
    """-> params, x, y, saved, dy of a layer."""
    rng = np.random.default_rng(seed)
    params = case.layer.init(shape or case.small, rng, dtype)
    x = rng.standard_normal((batch, *(shape or case.small))).astype(dtype)
    y, saved = case.layer.forward(params, x, train=train, rng=np.random.default_rng(1))
    dy = rng.standard_normal(y.shape).astype(dtype)
    return params, x, y, saved, dy


@pytest.mark.parametrize("case", **by_name())
def test_config_is_frozen_compares_by_value_and_holds_no_array(case):
    with pytest.raises(dataclasses.FrozenInstanceError):
        case.layer.new_field = 1
    assert case.layer == dataclasses.replace(case.layer)
    assert hash(case.layer) == hash(dataclasses.replace(case.layer))
    before = dict(vars(case.layer))
    params, _, _, saved, dy = run(case)
    case.layer.backward(params, saved, dy)
    assert vars(case.layer) == before
    assert not any(isinstance(value, np.ndarray | np.generic) for value in before.values())


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [1, 3])
@pytest.mark.parametrize("train", [False, True])
@pytest.mark.parametrize("case", **by_name())
def test_output_has_the_shape_that_out_shape_says_and_the_dtype_of_the_parameters(case, batch, dtype, train):
    if batch == 1 and train and case.name in ("batch_norm", "batch_norm_features"):
        batch = 2  # one value a channel has no variance
    params, _, y, saved, _ = run(case, batch=batch, dtype=dtype, train=train)
    assert y.shape == (batch, *case.layer.out_shape(case.small))
    arrays = [y, *tree.leaves(params), *(leaf for leaf in tree.leaves(saved) if leaf.dtype.kind == "f")]
    assert {array.dtype for array in arrays} == {np.dtype(dtype)}
    if not train:
        assert saved is None


@pytest.mark.parametrize("case", **by_name())
def test_gradients_have_the_names_shapes_and_dtype_of_the_trainable_parameters(case):
    for dtype in DTYPES:
        params, x, _, saved, dy = run(case, dtype=dtype)
        dx, grads = case.layer.backward(params, saved, dy)
        assert dx.shape == x.shape
        assert dx.dtype == dtype
        expected = {name: (p.shape, p.dtype) for name, p in tree.items(tree.trainable(params))}
        assert {name: (g.shape, g.dtype) for name, g in tree.items(grads)} == expected


@pytest.mark.parametrize("case", **by_name())
def test_forward_changes_neither_input_nor_parameters(case):
    rng = np.random.default_rng(0)
    params = case.layer.init(case.small, rng)
    x = rng.standard_normal((3, *case.small), dtype=np.float32)
    before = tree.copy([params, x])
    for train in (False, True):
        case.layer.forward(params, x, train=train, rng=rng)
        assert same_bits([params, x], before)


@pytest.mark.parametrize("case", **by_name())
def test_backward_changes_dy_only_where_it_is_its_own(case):
    params, x, _, saved, dy = run(case)
    before = tree.copy([params, x, saved, dy])
    dx, grads = case.layer.backward(params, saved, dy)
    assert same_bits([params, x, saved, dy], before)
    own_dx, own_grads = case.layer.backward(params, saved, dy.copy(), overwrite_dy=True)
    assert same_bits([own_dx, own_grads], [dx, grads])
    assert same_bits([params, x, saved], before[:3])


@pytest.mark.parametrize("case", **by_name())
def test_without_need_of_dx_there_is_none_and_the_gradients_are_the_same(case):
    params, _, _, saved, dy = run(case)
    _, grads = case.layer.backward(params, saved, dy)
    for overwrite_dy in (False, True):
        dx, alone = case.layer.backward(params, saved, dy.copy(), need_dx=False, overwrite_dy=overwrite_dy)
        assert dx is None
        assert same_bits(alone, grads)


@pytest.mark.parametrize("case", **by_name())
def test_saved_is_arrays_in_dicts_lists_and_tuples(case):
    _, _, _, saved, _ = run(case)

    def check(node):
        if isinstance(node, dict):
            assert all(isinstance(key, str) for key in node)
            for child in node.values():
                check(child)
        elif isinstance(node, list | tuple):
            for child in node:
                check(child)
        else:
            assert node is None or type(node) is np.ndarray

    check(saved)


@pytest.mark.parametrize("case", **by_name())
def test_backward_needs_nothing_but_params_saved_and_dy(case):
    params, _, _, saved, dy = run(case)
    expected = case.layer.backward(params, saved, dy)
    run(case, seed=5)  # another input through the same layer
    again = dataclasses.replace(case.layer).backward(tree.copy(params), tree.copy(saved), dy.copy())
    assert same_bits(list(again), list(expected))


@pytest.mark.parametrize("case", **by_name())
def test_the_same_generator_gives_the_same_parameters_and_output(case):
    first, second = run(case), run(case)
    assert same_bits(list(first), list(second))


@pytest.mark.parametrize("case", **by_name(WITH_PARAMS))
def test_float64_input_and_upstream_become_float32_where_the_parameters_are(case):
    params, x, _, _, dy = run(case)
    y, saved = case.layer.forward(params, x.astype(np.float64), train=True)
    dx, grads = case.layer.backward(params, saved, dy.astype(np.float64))
    kept = [leaf for leaf in tree.leaves([y, saved, dx, grads]) if leaf.dtype.kind == "f"]
    assert {array.dtype for array in kept} == {np.dtype(np.float32)}


@pytest.mark.parametrize("case", **by_name())
def test_integers_objects_and_lists_are_refused(case):
    if case.name in ("flatten", "dropout_of_nothing"):
        return  # they hand on what they get
    params, x, *_ = run(case)
    for wrong in (np.zeros(x.shape, np.int64), np.zeros(x.shape, object), x.tolist()):
        with pytest.raises(TypeError, match="expected a float array"):
            case.layer.forward(params, wrong, train=True, rng=np.random.default_rng(0))


# The plan, in bytes. Kept bytes are exact, a workspace within 32 KiB: small statistics, and windows that padding cuts.
# A ufunc that casts or repeats an operand does so in a buffer of 8,192 numbers, which is no array; here it is made small.

TOLERANCE = 32 * KIB


def measured(f):
    """-> (what f returned, bytes of the arrays that it left, most bytes traced above its beginning).

    The lower peak of two runs: now and then Python enlarges a table of its own in one of them, by megabytes."""
    peaks = []
    for _ in range(2):
        result = None
        before_arrays, (before, _) = traced_array_bytes(), tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        result = f()
        peaks.append(tracemalloc.get_traced_memory()[1] - before)
    return result, traced_array_bytes() - before_arrays, min(peaks)


@pytest.fixture
def tracing():
    gc.disable()  # nothing here makes cycles, and a collection before each measurement costs more than all of it
    before = np.setbufsize(16)
    tracemalloc.start()
    yield
    tracemalloc.stop()
    np.setbufsize(before)
    gc.enable()


def owner(array):
    return next(iter(tree.owners(array)))


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("case", **by_name())
def test_plan_is_what_training_uses(case, batch, dtype, tracing):
    if batch == 1 and case.name == "batch_norm_features":
        batch = 2  # one value a channel has no variance
    layer, rng = case.layer, np.random.default_rng(0)
    plan = layer.plan(case.large, batch=batch, dtype=dtype)
    params = layer.init(case.large, rng, dtype)
    x = rng.standard_normal((batch, *case.large)).astype(dtype)
    run(case, dtype=dtype)  # whatever is made once and kept for ever is there now

    (y, saved), left, peak = measured(lambda: layer.forward(params, x, train=True, rng=rng))
    own = {key: array for key, array in tree.owners(saved).items() if key not in (owner(x), owner(y))}
    assert (owner(x) in tree.owners(saved)) == plan.saves_input
    assert plan.saves_output == (owner(y) in tree.owners(saved) and not plan.output_is_input)
    assert (owner(x) == owner(y)) == plan.output_is_input
    assert sum(array.nbytes for array in own.values()) == plan.own
    y_bytes = 0 if plan.output_is_input else y.nbytes
    assert left == y_bytes + plan.own
    assert abs(peak - left - plan.forward_workspace) <= TOLERANCE

    for overwrite_dy in (False, True):
        dy = rng.standard_normal(y.shape).astype(dtype)
        (dx, grads), left, peak = measured(
            lambda dy=dy, mine=overwrite_dy: layer.backward(params, saved, dy, overwrite_dy=mine)
        )
        shared = np.may_share_memory(dx, dy)
        assert shared <= plan.dx_is_dy
        if overwrite_dy:
            assert shared == plan.dx_is_dy
        assert left == (0 if shared else dx.nbytes) + tree.nbytes(grads)
        assert abs(peak - left - plan.backward_workspace) <= TOLERANCE
    dy = rng.standard_normal(y.shape).astype(dtype)
    (_, grads), left, peak = measured(lambda: layer.backward(params, saved, dy, need_dx=False))
    assert left == tree.nbytes(grads)
    assert peak - left <= plan.backward_workspace + TOLERANCE


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("batch", [1, 7])
@pytest.mark.parametrize("case", **by_name())
def test_plan_is_what_evaluation_uses(case, batch, dtype, tracing):
    layer, rng = case.layer, np.random.default_rng(0)
    plan = layer.plan(case.large, batch=batch, dtype=dtype, train=False)
    params = layer.init(case.large, rng, dtype)
    x = rng.standard_normal((batch, *case.large)).astype(dtype)
    run(case, dtype=dtype, train=False)
    (y, saved), left, peak = measured(lambda: layer.forward(params, x))
    assert saved is None
    assert (plan.saves_input, plan.saves_output, plan.own) == (False, False, 0)
    assert (owner(x) == owner(y)) == plan.output_is_input
    assert left == (0 if plan.output_is_input else y.nbytes)
    assert abs(peak - left - plan.forward_workspace) <= TOLERANCE
