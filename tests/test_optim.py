import copy
import dataclasses
import math
import tracemalloc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dlcourse import optim, tree

OPTIMIZERS = (
    optim.SGD,
    optim.Momentum,
    optim.Nesterov,
    optim.AdaGrad,
    optim.AdaDelta,
    optim.RMSprop,
    optim.Adam,
    optim.AdamW,
)
COPIES = dict(zip(OPTIMIZERS, (0, 1, 1, 1, 2, 1, 2, 2), strict=True))

# Twenty steps from (0.5, -1, 2) with the gradient (cos i, sin 2i, 0.1 i - 1) at step i, made with PyTorch 2.13.0 in
# float64. torch.optim's SGD with lr=0.05, with momentum=0.9, with nesterov=True; the others with their default lr.
PYTORCH = [
    (optim.SGD(0.05), [0.47301957165335, -1.04538604452715, 1.95]),
    (optim.Momentum(0.05), [0.680800346442901, -1.16029039711304, 2.98948039674937]),
    (optim.Nesterov(0.05), [0.63573988345196, -1.18964740192889, 2.84053235707443]),
    (optim.AdaGrad(), [0.499072076852707, -1.00578918040467, 2.0085519674033]),
    (optim.AdaDelta(), [0.497096745193157, -1.00289798546324, 1.99258823662835]),
    (optim.RMSprop(), [0.48929883520924, -1.05850967037796, 2.07546912850072]),
    (optim.Adam(), [0.500584461652976, -1.00154809403445, 2.0085459071819]),
    (optim.AdamW(weight_decay=0), [0.500584461652976, -1.00154809403445, 2.0085459071819]),
    (optim.SGD(0.05, weight_decay=0.1), [0.423076565968831, -0.948531012432739, 1.74563058315415]),
    (optim.Momentum(0.05, weight_decay=0.1), [0.364850871363547, -0.597280705661947, 1.53795209394376]),
    (optim.Nesterov(0.05, weight_decay=0.1), [0.300674606623272, -0.603476420215223, 1.28805580404872]),
    (optim.AdaGrad(weight_decay=0.1), [0.494414419823811, -0.997308139041853, 1.9883868807409]),
    (optim.AdaDelta(weight_decay=0.1), [0.492957031314831, -0.995754141274022, 1.97182267253601]),
    (optim.RMSprop(weight_decay=0.1), [0.442813547523969, -0.97243901872434, 1.85144065732921]),
    (optim.Adam(weight_decay=0.1), [0.499235602283724, -0.998970012001567, 2.00394699245971]),
    (optim.AdamW(weight_decay=0.1), [0.49958488994917, -0.999547501692445, 2.00453543095074]),
]


def small(dtype=np.float32, seed=0):
    """A nested tree of parameters, with buffers and a list, and gradients for its trainable part."""
    rng = np.random.default_rng(seed)
    params = {
        "conv": {"W": rng.standard_normal((3, 3, 2, 4)), "b": rng.standard_normal(4)},
        "block": {"norm": {"gamma": rng.standard_normal(4), "buffers": {"mean": np.ones(4)}}},
        "list": [{"W": rng.standard_normal((2, 3))}, None],
        "relu": {},
        "scalar": rng.standard_normal(()),
    }
    params = tree.map_leaves(lambda p: np.asarray(p, dtype), params)
    grads = tree.map_leaves(lambda p: np.asarray(rng.standard_normal(p.shape), dtype), tree.trainable(params))
    return params, grads


def bits(t):
    return {name: leaf.tobytes() for name, leaf in tree.items(t)}


@pytest.mark.parametrize(
    ("opt", "expected"), PYTORCH, ids=lambda case: repr(case) if not isinstance(case, list) else ""
)
def test_twenty_steps_are_those_of_pytorch(opt, expected):
    for dtype, tolerance in ((np.float64, 1e-13), (np.float32, 2e-6)):
        params = {"p": np.array([0.5, -1.0, 2.0], dtype)}
        slots = opt.init(params)
        for i in range(1, 21):
            gradient = np.array([math.cos(i), math.sin(2 * i), 0.1 * i - 1], dtype)
            opt.update(params, {"p": gradient}, slots)
        np.testing.assert_allclose(params["p"], expected, rtol=tolerance)


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_first_field_is_the_learning_rate(make):
    assert make(0.25).lr == 0.25


@pytest.mark.parametrize("make", OPTIMIZERS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_parameters_and_slots_keep_their_dtype_under_numpy_scalars(make, dtype):
    params, grads = small(dtype)
    opt = make(lr=np.float64(0.1), weight_decay=np.float64(0.1))
    assert all(type(getattr(opt, field.name)) is float for field in dataclasses.fields(opt))
    slots = opt.init(params)
    slots["step"] = np.int64(0)
    opt.update(params, grads, slots, lr=np.float64(0.2))
    assert {leaf.dtype for leaf in tree.leaves(params)} == {np.dtype(dtype)}
    assert type(slots.pop("step")) is int
    assert {leaf.dtype for leaf in tree.leaves(slots)} <= {np.dtype(dtype)}


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_slots_are_plain_trees_of_zeros_and_a_step(make):
    params, _ = small()
    slots = make().init(params)
    assert slots.pop("step") == 0
    assert len(slots) == COPIES[make] == make().plan().slot_copies
    for slot in slots.values():
        flat, trainable = tree.flatten(slot), tree.flatten(tree.trainable(params))
        assert {name: leaf.shape for name, leaf in flat.items()} == {n: leaf.shape for n, leaf in trainable.items()}
        assert not any(leaf.any() for leaf in flat.values())
    assert tree.nbytes(slots) == COPIES[make] * tree.nbytes(tree.trainable(params))


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_an_update_changes_every_parameter_in_place_and_nothing_else(make):
    params, grads = small()
    opt = make(lr=0.1, weight_decay=0.1)
    slots = opt.init(params)
    arrays, before, gradients = tree.leaves(params), bits(params), bits(grads)
    opt.update(params, grads, slots)
    assert slots["step"] == 1
    assert all(a is b for a, b in zip(arrays, tree.leaves(params), strict=True))
    assert bits(grads) == gradients
    same = {name for name, value in bits(params).items() if value == before[name]}
    assert same == {name for name in before if "buffers" in name}


@pytest.mark.parametrize("make", OPTIMIZERS)
@given(sizes=st.lists(st.integers(0, 40), min_size=1, max_size=3), block=st.integers(1, 50), seed=st.integers(0, 9))
@settings(max_examples=15)
def test_blocks_do_not_change_a_bit(make, sizes, block, seed):
    rng = np.random.default_rng(seed)
    params = {str(i): rng.standard_normal(size).astype(np.float32) for i, size in enumerate(sizes)}
    other = tree.copy(params)
    opt = make(weight_decay=0.1)
    slots, other_slots = opt.init(params), opt.init(other)
    for _ in range(3):
        grads = tree.map_leaves(lambda p: rng.standard_normal(p.shape).astype(np.float32), params)
        opt.update(params, grads, slots)
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(optim, "BLOCK_NUMBERS", block)
            opt.update(other, grads, other_slots)
    assert bits(params) == bits(other)


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_run_that_is_resumed_is_the_same_to_the_bit(make):
    params, grads = small()
    opt = make()
    slots = opt.init(params)
    for _ in range(3):
        opt.update(params, grads, slots)
    saved = copy.deepcopy((params, slots))
    opt.update(params, grads, slots)
    opt.update(saved[0], grads, saved[1])
    assert bits(params) == bits(saved[0])


def adam_after_ten_steps():
    opt = optim.Adam(1e-3)
    params = {"p": np.zeros(1)}
    slots = opt.init(params)
    for _ in range(10):
        opt.update(params, {"p": np.ones(1)}, slots)
    return opt, params, slots


def test_adam_goes_on_falling_after_a_resume_with_its_step_and_moments():
    opt, params, slots = adam_after_ten_steps()
    params, slots = copy.deepcopy((params, slots))
    before = params["p"][0]
    opt.update(params, {"p": np.array([-0.1])}, slots)
    assert before - params["p"][0] == pytest.approx(8.8046e-4, rel=1e-5)


def test_adam_that_lost_its_step_and_moments_rises_instead():
    opt, params, _ = adam_after_ten_steps()
    before = params["p"][0]
    opt.update(params, {"p": np.array([-0.1])}, opt.init(params))
    assert params["p"][0] - before == pytest.approx(1e-3, rel=1e-5)


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_learning_rate_given_to_update_holds_for_that_step_alone(make):
    params, grads = small()
    other = tree.copy(params)
    slow, fast = make(lr=0.1), make(lr=0.5)
    slow.update(params, grads, slow.init(params), lr=0.5)
    fast.update(other, grads, fast.init(other))
    assert bits(params) == bits(other)
    assert slow.lr == 0.1


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_learning_rate_of_zero_changes_no_parameter(make):
    params, grads = small()
    before = bits(params)
    opt = make(lr=0, weight_decay=0.1)
    opt.update(params, grads, opt.init(params))
    assert bits(params) == before


def test_decay_that_is_decoupled_shrinks_without_a_gradient():
    params = {"p": np.full(3, 2.0)}
    opt = optim.AdamW(0.1, weight_decay=0.5)
    opt.update(params, {"p": np.zeros(3)}, opt.init(params))
    np.testing.assert_allclose(params["p"], 2 * (1 - 0.1 * 0.5))


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_each_optimizer_goes_down_a_valley(make):
    params = {"p": np.array([1.0, -2.0])}
    steepness = np.array([1.0, 10.0])
    opt = make(**({"lr": 0.02} if make is not optim.AdaDelta else {}))
    slots = opt.init(params)
    heights = []
    for _ in range(200):
        heights.append(float((steepness * params["p"] ** 2).sum() / 2))
        opt.update(params, {"p": steepness * params["p"]}, slots)
    assert heights[-1] < 0.9 * heights[0]


@pytest.mark.parametrize("make", OPTIMIZERS)
def test_a_gradient_that_is_a_transposed_view_gives_the_same(make):
    rng = np.random.default_rng(0)
    params, opt = {"W": rng.standard_normal((200, 150))}, make()
    other, gradient = tree.copy(params), rng.standard_normal((150, 200)).T
    opt.update(params, {"W": gradient}, opt.init(params))
    opt.update(other, {"W": gradient.copy()}, opt.init(other))
    assert bits(params) == bits(other)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("decay", [0.0, 0.1])
@pytest.mark.parametrize("make", OPTIMIZERS)
def test_the_plan_names_all_that_an_update_allocates(make, decay, dtype):
    params = {"W": np.ones((600, 500), dtype), "b": np.ones(7, dtype), "list": [np.ones(40_000, dtype)]}
    grads, opt = tree.copy(params), make(weight_decay=decay)
    slots = opt.init(params)
    peak = traced_peak(lambda: opt.update(params, grads, slots))
    assert 0 <= peak - opt.plan(dtype).workspace < 4096
    assert peak < params["W"].nbytes / 3


def traced_peak(f):
    """Bytes at the peak of f() over what was there before, Python's own small objects among them."""
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


WRONG = [
    ("missing", ValueError, "SGD: parameter 'conv/b' has no gradient"),
    ("extra", ValueError, "SGD: there is a gradient of 'conv/c', and no parameter of that name"),
    ("shape", ValueError, r"SGD: the gradient of 'conv/b' has shape \(1, 4\); the parameter has \(4,\)"),
    ("dtype", TypeError, "SGD: the gradient of 'conv/b' is float64; the parameter is float32"),
    ("order", ValueError, "SGD: parameter 'conv/W' is not C-contiguous"),
    ("frozen", ValueError, "SGD: parameter 'conv/W' is read-only"),
    ("integer", TypeError, "SGD: parameter 'conv/W' is int64; it must be float32 or float64"),
]


@pytest.mark.parametrize(("fault", "error", "message"), WRONG)
def test_what_does_not_fit_is_named_before_anything_is_changed(fault, error, message):
    params, grads = small()
    opt = optim.SGD()
    slots = opt.init(params)
    if fault == "missing":
        del grads["conv"]["b"]
    elif fault == "extra":
        grads["conv"]["c"] = np.ones(1, np.float32)
    elif fault == "shape":
        grads["conv"]["b"] = grads["conv"]["b"][None]
    elif fault == "dtype":
        grads["conv"]["b"] = grads["conv"]["b"].astype(np.float64)
    elif fault == "order":
        params["conv"]["W"] = np.asfortranarray(params["conv"]["W"])
    elif fault == "frozen":
        params["conv"]["W"].flags.writeable = False
    elif fault == "integer":
        params["conv"]["W"] = params["conv"]["W"].astype(np.int64)
    before = bits(params)
    with pytest.raises(error, match=message):
        opt.update(params, grads, slots)
    assert bits(params) == before
    assert slots == {"step": 0}


def test_parameters_that_could_not_be_updated_are_refused_by_init():
    with pytest.raises(ValueError, match="Adam: parameter 'a/W' is not C-contiguous"):
        optim.Adam().init({"a": {"W": np.ones((3, 2), np.float32).T}})


def test_slots_of_another_optimizer_are_refused():
    params, grads = small()
    with pytest.raises(ValueError, match=r"Adam: slots are \['step', 'velocity'\]; they must be \['m', 'step', 'v'\]"):
        optim.Adam().update(params, grads, optim.Momentum().init(params))


def test_slots_of_another_network_are_refused():
    params, grads = small()
    slots = optim.Adam().init(params)
    slots["v"]["conv"]["b"] = np.zeros(5, np.float32)
    with pytest.raises(ValueError, match=r"Adam: the slot 'v' of 'conv/b' has shape \(5,\)"):
        optim.Adam().update(params, grads, slots)
    assert slots["step"] == 0


@pytest.mark.parametrize(
    ("make", "field", "value", "span"),
    [
        (optim.SGD, "lr", -0.1, "at least 0"),
        (optim.SGD, "lr", math.nan, "at least 0"),
        (optim.SGD, "weight_decay", -1, "at least 0"),
        (optim.Momentum, "momentum", 1.0, r"in \[0, 1\)"),
        (optim.Adam, "beta1", 1.5, r"in \[0, 1\)"),
        (optim.AdamW, "beta2", -0.1, r"in \[0, 1\)"),
        (optim.Adam, "eps", 0, "above 0"),
        (optim.RMSprop, "alpha", 1, r"in \[0, 1\)"),
        (optim.AdaDelta, "rho", math.inf, r"in \[0, 1\)"),
    ],
)
def test_a_setting_out_of_range_is_named_with_its_range(make, field, value, span):
    with pytest.raises(ValueError, match=rf"{make.__name__}: {field} is {value}; it must be {span}"):
        make(**{field: value})


def test_a_setting_that_is_no_number_is_an_error():
    with pytest.raises(TypeError, match="Adam: lr is 'fast'; it must be a number"):
        optim.Adam("fast")


def test_a_wrong_learning_rate_of_a_step_changes_nothing():
    params, grads = small()
    slots = optim.SGD().init(params)
    with pytest.raises(ValueError, match="SGD: lr is -1"):
        optim.SGD().update(params, grads, slots, lr=-1)
    assert slots["step"] == 0


def test_an_optimizer_is_frozen_and_comparable():
    with pytest.raises(dataclasses.FrozenInstanceError):
        optim.Adam().lr = 0.1
    assert optim.Adam(1) == optim.Adam(1.0) != optim.Adam(2)
    assert dataclasses.replace(optim.Adam(), lr=2) == optim.Adam(2)


@given(scale=st.floats(0.01, 1e6), max_norm=st.floats(0.01, 1e6), seed=st.integers(0, 99))
@settings(max_examples=30)
def test_clipped_gradients_keep_their_direction_and_have_at_most_the_norm(scale, max_norm, seed):
    _, grads = small(np.float64, seed)
    grads = tree.map_leaves(lambda g: np.asarray(g * scale), grads)
    before = np.concatenate([g.ravel() for g in tree.leaves(grads)])
    norm = optim.clip_by_norm(grads, max_norm)
    after = np.concatenate([g.ravel() for g in tree.leaves(grads)])
    assert norm == pytest.approx(np.linalg.norm(before), rel=1e-12)
    assert np.linalg.norm(after) == pytest.approx(min(norm, max_norm), rel=1e-12)
    np.testing.assert_allclose(after * max(norm / max_norm, 1), before, rtol=1e-12)


def test_clipping_leaves_gradients_below_the_norm_as_they_are():
    _, grads = small()
    before = bits(grads)
    norm = optim.clip_by_norm(grads, 1e9)
    assert type(norm) is float
    assert bits(grads) == before


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_a_norm_that_is_not_finite_is_returned_and_changes_nothing(bad):
    _, grads = small()
    grads["conv"]["b"][0] = bad
    before = bits(grads)
    assert not math.isfinite(optim.clip_by_norm(grads, 1.0))
    assert bits(grads) == before


@pytest.mark.parametrize("max_norm", [0, -1, math.nan])
def test_the_norm_to_clip_to_must_be_above_zero(max_norm):
    with pytest.raises(ValueError, match="max_norm is"):
        optim.clip_by_norm({}, max_norm)


def test_a_norm_is_summed_in_float64():
    grads = {"a": np.full(100_000, 1e25, np.float32), "b": np.ones((100, 300), np.float32).T}
    assert optim.clip_by_norm(grads, 1e30) == pytest.approx(1e25 * math.sqrt(100_000), rel=1e-6)
    np.testing.assert_array_equal(grads["b"], 1)


def test_clipping_allocates_one_block_whatever_the_gradients_are():
    grads = {"a": np.ones(300_000, np.float32), "b": np.ones((500, 600))}
    assert traced_peak(lambda: optim.clip_by_norm(grads, 1.0)) < 8 * optim.BLOCK_NUMBERS + 4096
