import re
import weakref
from dataclasses import dataclass

import numpy as np
import pytest
from helpers import NESTED, forward, same_bits

from dlcourse import kernels, losses, models, tree
from dlcourse import layers as L
from dlcourse.gradcheck import check_layer
from dlcourse.model import Sequential, plainly
from dlcourse.plan import Plan
from dlcourse.workers import one_blas_thread

RNG = np.random.default_rng

SMALL = Sequential(
    [
        *(L.Conv2D(3, 3, padding=1), L.BatchNorm(), L.ReLU(), L.MaxPool2D(2), L.Dropout(0.3)),
        *(L.Conv2D(2, (2, 1), stride=(1, 2)), L.LeakyReLU(), L.AvgPool2D(1), L.Flatten()),
        *(L.Affine(4), L.LayerNorm(), L.GELU(), L.Affine(3), L.Tanh(), L.Sigmoid()),
    ]
)


def test_layers_are_named_by_their_kind_and_count():
    assert SMALL.names[:6] == ("conv2d_1", "batchnorm_1", "relu_1", "maxpool2d_1", "dropout_1", "conv2d_2")
    params = NESTED.init((5,), rng=RNG(0))
    assert [name for name, _ in tree.items(params)] == [
        "affine_1/W", "affine_1/b", "sequential_1/sequential_1/affine_1/W", "sequential_1/sequential_1/affine_1/b",
        "sequential_1/sequential_1/batchnorm_1/gamma", "sequential_1/sequential_1/batchnorm_1/beta",
        "sequential_1/sequential_1/batchnorm_1/buffers/mean", "sequential_1/sequential_1/batchnorm_1/buffers/var",
        "sequential_2/affine_1/W", "sequential_2/affine_1/b",
    ]  # fmt: skip


def test_the_network_of_the_story_has_its_2168362_parameters():
    params = models.cifar_cnn().init((32, 32, 3), rng=RNG(0))
    assert tree.count(params) == 2_168_362
    assert params["affine_1"]["W"].size + params["affine_1"]["b"].size == 2_097_664
    assert {leaf.dtype for leaf in tree.leaves(params)} == {np.dtype(np.float32)}


@pytest.mark.parametrize("name", models.MODELS)
def test_named_networks_have_the_parameters_that_their_docstrings_say(name):
    text = models.MODELS[name].__doc__
    in_shape = (32, 32, 3) if "(32, 32, 3)" in text else (8, 8, 1)
    said = re.search(r"([\d,]+)\s+parameters", text)[1].replace(",", "")
    assert tree.count(models.MODELS[name]().init(in_shape, rng=RNG(0))) == int(said)


def test_parameters_come_from_the_generator_alone():
    first, second = (SMALL.init((6, 6, 2), rng=RNG(3)) for _ in range(2))
    assert same_bits(first, second)
    assert not same_bits(first, SMALL.init((6, 6, 2), rng=RNG(4)))


@pytest.mark.parametrize(("model", "in_shape"), [(SMALL, (6, 6, 2)), (NESTED, (5,))])
def test_gradients_of_a_whole_network_are_right(model, in_shape):
    assert max(check_layer(model, in_shape, 3, RNG(0)).values()) < 1e-6


def test_gradient_check_of_a_whole_network_turns_red_when_one_layer_is_wrong(monkeypatch):
    right = kernels.leaky_relu_backward
    monkeypatch.setattr(kernels, "leaky_relu_backward", lambda dy, y, slope, **how: right(dy, y, slope=0.0, **how))
    assert check_layer(SMALL, (6, 6, 2), 3, RNG(0))["conv2d_1/W"] > 1e-4


@pytest.mark.parametrize(("model", "in_shape"), [(SMALL, (6, 6, 2)), (NESTED, (5,))])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_every_activation_gradient_and_saved_array_has_the_dtype_of_the_parameters(model, in_shape, dtype):
    params, _, y, saved, dy = forward(model, in_shape, dtype=dtype)
    dx, grads = model.backward(params, saved, dy)
    floats = [leaf for leaf in tree.leaves([params, y, saved, dx, grads]) if leaf.dtype.kind == "f"]
    assert {array.dtype for array in floats} == {np.dtype(dtype)}
    assert grads.keys() == tree.trainable(params).keys()


@pytest.mark.parametrize("first", [L.ReLU(), L.Tanh(), L.GELU(), L.Dropout(0.5), L.Flatten(), L.BatchNorm()])
def test_float64_input_and_upstream_become_float32_at_the_door(first):
    model = Sequential([first, L.Affine(3), L.ReLU()])
    params = model.init((4,), rng=RNG(0))
    x = RNG(0).standard_normal((5, 4))
    y, saved = model.forward(params, x, train=True, rng=RNG(0))
    dx, grads = model.backward(params, saved, np.ones(y.shape))
    floats = [leaf for leaf in tree.leaves([y, saved, dx, grads]) if leaf.dtype.kind == "f"]
    assert {array.dtype for array in floats} == {np.dtype(np.float32)}
    assert x.dtype == np.float64


def test_evaluation_keeps_nothing_and_draws_nothing():
    params, x, *_ = forward(SMALL, (6, 6, 2))
    y, saved = SMALL.forward(params, x)
    assert saved is None
    np.testing.assert_array_equal(y, SMALL.forward(params, x)[0])


def test_forward_and_backward_change_nothing_that_is_not_theirs():
    params, x, y, saved, dy = forward(SMALL, (6, 6, 2))
    before = tree.copy([params, x, y, saved, dy])
    first = SMALL.backward(params, saved, dy)
    assert same_bits([params, x, y, saved, dy], before)
    assert same_bits(list(SMALL.backward(params, saved, dy)), list(first))


@pytest.mark.parametrize(
    "end",
    [
        [L.ReLU()],
        [L.LeakyReLU(), L.ReLU()],
        [L.Dropout(0.5)],
        [L.ReLU(), L.Flatten()],  # Flatten hands on a view of dy
        [L.ReLU(), L.Dropout(0.0)],
        [Sequential([L.ReLU(), L.Flatten()]), L.Flatten()],
    ],
)
def test_layers_that_write_over_their_upstream_never_write_over_the_callers(end):
    model = Sequential([L.Affine(4), *end])
    params, _, _, saved, dy = forward(model, (5,))
    before = dy.copy()
    first = model.backward(params, saved, dy)
    np.testing.assert_array_equal(dy, before)
    assert same_bits(list(model.backward(params, saved, dy.copy(), overwrite_dy=True)), list(first))


def test_upstream_may_be_given_away():
    params, _, _, saved, dy = forward(SMALL, (6, 6, 2))
    expected = SMALL.backward(params, saved, dy)
    assert same_bits(list(SMALL.backward(params, saved, dy.copy(), overwrite_dy=True)), list(expected))


def test_a_nested_sequential_is_the_same_as_a_flat_one():
    flat = Sequential([L.Affine(4), L.ReLU(), L.Affine(3), L.Tanh()])
    nested = Sequential([Sequential([L.Affine(4), Sequential([L.ReLU()])]), L.Affine(3), Sequential([L.Tanh()])])
    params, x, y, saved, dy = forward(flat, (5,))
    assert nested.names == (
        "sequential_1/affine_1",
        "sequential_1/sequential_1/relu_1",
        "affine_1",
        "sequential_2/tanh_1",
    )
    own = {"sequential_1/affine_1": params["affine_1"], "affine_1": params["affine_2"]}
    other, other_saved = nested.forward(own, x, train=True)
    np.testing.assert_array_equal(other, y)
    dx, grads = flat.backward(params, saved, dy)
    for release in (False, True):
        other_dx, other_grads = nested.backward(own, other_saved, dy, release=release)
        assert same_bits(other_grads["sequential_1/affine_1"], grads["affine_1"])
        assert same_bits(other_grads["affine_1"], grads["affine_2"])
        assert release or same_bits(other_dx, dx)


# Release.


def arrays_by_layer(saved):
    return {name: [weakref.ref(array) for array in tree.owners(kept).values()] for name, kept in saved.items()}


def test_release_empties_saved_and_gives_the_same_gradients_without_dx():
    params, _, _, saved, dy = forward(SMALL, (6, 6, 2))
    dx, grads = SMALL.backward(params, saved, dy)
    assert dx is not None
    none, released = SMALL.backward(params, saved, dy, release=True)
    assert none is None
    assert saved == {}
    assert same_bits(released, grads)


def test_release_frees_the_arrays_of_each_layer_before_the_next_begins(monkeypatch):
    model = Sequential([L.Affine(4), L.GELU(), L.Affine(4), L.GELU(), L.Affine(3)])
    params, x, y, saved, dy = forward(model, (5,))
    arrays = arrays_by_layer(saved)
    del x, y
    alive = []
    right = kernels.affine_backward

    def spy(*args, **kwargs):
        alive.append([name for name in reversed(arrays) if any(ref() is not None for ref in arrays[name])])
        return right(*args, **kwargs)

    monkeypatch.setattr(kernels, "affine_backward", spy)
    model.backward(params, saved, dy, release=True)
    everything = ["affine_3", "gelu_2", "affine_2", "gelu_1", "affine_1"]
    assert alive == [everything, everything[2:], everything[4:]]
    assert not any(ref() for refs in arrays.values() for ref in refs)


def test_release_reaches_into_a_nested_sequential(monkeypatch):
    model = Sequential([L.Affine(4), Sequential([L.GELU(), L.Affine(4), L.GELU(), L.Affine(3)])])
    params, x, y, saved, dy = forward(model, (5,))
    inner = {name: kept for name, kept in saved.items() if name.startswith("sequential_1/")}
    arrays = [ref for refs in arrays_by_layer(inner).values() for ref in refs]
    del inner
    del x, y
    alive = []
    right = kernels.affine_backward

    def spy(*args, **kwargs):
        alive.append(sum(ref() is not None for ref in arrays))
        return right(*args, **kwargs)

    monkeypatch.setattr(kernels, "affine_backward", spy)
    model.backward(params, saved, dy, release=True)
    assert alive == [4, 2, 0]
    assert saved == {}


def test_without_release_saved_stays():
    params, _, _, saved, dy = forward(NESTED, (5,))
    before = tree.copy(saved)
    NESTED.backward(params, saved, dy)
    assert same_bits(saved, before)


@pytest.mark.parametrize("release", [False, True])
def test_the_first_layer_makes_dx_only_where_it_is_needed(monkeypatch, release):
    asked = []
    right = kernels.affine_backward

    def spy(*args, need_dx=True):
        asked.append(need_dx)
        return right(*args, need_dx=need_dx)

    monkeypatch.setattr(kernels, "affine_backward", spy)
    model = Sequential([L.Affine(4), L.ReLU(), L.Affine(3)])
    params, _, _, saved, dy = forward(model, (5,))
    dx, _ = model.backward(params, saved, dy, need_dx=False, release=release)
    assert dx is None
    assert asked == [True, False]


# Running statistics.


def test_update_buffers_takes_saved_or_the_few_bytes_that_statistics_picks():
    params, _, _, saved, _ = forward(NESTED, (5,))
    picked = NESTED.statistics(saved)
    assert tree.nbytes(picked) == 2 * 3 * 4
    one, other = tree.copy(params), tree.copy(params)
    NESTED.update_buffers(one, saved)
    NESTED.update_buffers(other, picked)
    assert same_bits(one, other)
    assert not same_bits(one, params)
    assert same_bits(tree.trainable(one), tree.trainable(params))
    assert models.mlp().statistics(forward(models.mlp(), (8, 8, 1))[3]) == {}


# The hook.


def test_every_layer_is_called_through_the_hook_in_order():
    moments = []

    def call(moment, function, *arguments, **options):
        moments.append((moment, type(function.__self__).__name__))
        return plainly(moment, function, *arguments, **options)

    model = Sequential([L.Affine(4), Sequential([L.ReLU()])])
    params = model.init((5,), rng=RNG(0))
    y, saved = model.forward(params, np.ones((2, 5), np.float32), train=True, call=call)
    dx, grads = model.backward(params, saved, y, call=call)
    names = [("affine_1", "Affine"), ("sequential_1/relu_1", "ReLU")]
    forward = [(f"{name}, forward", kind) for name, kind in names]
    assert moments == [*forward, *[(f"{name}, backward", kind) for name, kind in reversed(names)]]
    assert same_bits([dx, grads], list(model.backward(params, saved, y)))


def test_a_hook_that_gives_another_result_changes_what_the_next_layer_gets():
    model = Sequential([L.Affine(4), L.ReLU(), L.Tanh()])
    params = model.init((5,), rng=RNG(0))

    def broken(moment, function, *arguments, **options):
        y, kept = plainly(moment, function, *arguments, **options)
        return (y * np.nan, kept) if moment == "relu_1, forward" else (y, kept)

    assert np.isnan(model.forward(params, np.ones((2, 5), np.float32), call=broken)[0]).all()


@dataclass(frozen=True)
class Plain:
    """A layer as a reader writes it: the five methods, no base."""

    factor: float = 2.0

    def init(self, in_shape, rng, dtype=np.float32):
        return {"c": np.full(in_shape[-1:], self.factor, dtype)}

    def out_shape(self, in_shape):
        return in_shape

    def forward(self, params, x, *, train=False, rng=None):
        return x * params["c"], x if train else None

    def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
        return dy * params["c"] if need_dx else None, {"c": (dy * saved).reshape(-1, dy.shape[-1]).sum(0)}

    def plan(self, *in_shapes, batch, dtype, train=True):
        nbytes = batch * int(np.prod(in_shapes[0])) * np.dtype(dtype).itemsize
        return Plan(saves_input=train, backward_workspace=nbytes)


def test_a_plain_class_is_a_layer():
    model = Sequential([L.Flatten(), L.Affine(3), Plain(), Sequential([Plain(3.0)])])
    assert model.names == ("flatten_1", "affine_1", "plain_1", "sequential_1/plain_1")
    assert max(check_layer(model, (2, 2), 3, RNG(0)).values()) < 1e-6
    params = model.init((4,), rng=RNG(0))
    with pytest.raises(ValueError, match="Plain 'plain_1': operands could not be broadcast"):
        model.forward(params | {"plain_1": {"c": np.ones(7, np.float32)}}, np.ones((2, 4), np.float32))


# The step of the story.


def test_a_step_of_cifar_cnn_keeps_less_than_48_mib_at_batch_100_all_of_it_float32():
    model = models.cifar_cnn()
    params = model.init((32, 32, 3), rng=RNG(0))
    x = RNG(1).standard_normal((100, 32, 32, 3), dtype=np.float32)
    with one_blas_thread():
        logits, saved = model.forward(params, x, train=True, rng=RNG(2))
    kept = {key: array for key, array in tree.owners(saved).items() if key not in tree.owners(x)}
    assert 40 * 2**20 < sum(array.nbytes for array in kept.values()) <= 48 * 2**20
    _, dlogits = losses.softmax_cross_entropy(logits, np.zeros(100, int))
    with one_blas_thread():
        dx, grads = model.backward(params, saved, dlogits)
    floats = [leaf for leaf in tree.leaves([logits, saved, dlogits, dx, grads]) if leaf.dtype.kind == "f"]
    assert {array.dtype for array in floats} == {np.dtype(np.float32)}
