"""Adam in bytes, and Adafactor."""

import math

import numpy as np
import pytest

from dlcourse import datasets, memory, models, optim, tree
from dlcourse.optim.small import M_CODE, SCALED, V_CODE, Adafactor, Adam8bit
from dlcourse.train import evaluate, fit


def network(seed=0, dtype=np.float32):
    rng = np.random.default_rng(seed)
    shapes = {"conv": (3, 3, 4, 5), "W": (70, 300), "b": (300,), "one": (1,), "scalar": ()}
    draw = {name: rng.standard_normal(shape).astype(dtype) for name, shape in shapes.items()}
    return {"layer": draw}, {
        "layer": {name: np.asarray(rng.standard_normal(p.shape), dtype) for name, p in draw.items()}
    }


@pytest.mark.parametrize("code", [M_CODE, V_CODE])
@pytest.mark.parametrize("size", [1, 255, 256, 257, 1000])
def test_a_number_comes_back_within_a_step_of_the_code_and_zero_stays_zero(code, size):
    rng = np.random.default_rng(size)
    x = rng.standard_normal(size).astype(np.float32)
    x = x if code.signed else x * x
    x[::7] = 0
    rows = -(-size // SCALED)
    room = np.zeros((rows, SCALED), np.float32)
    room.reshape(-1)[:size] = x
    codes, scales = np.empty(size, np.uint8), np.empty(rows, np.float32)
    dither = rng.integers(0, 2**23, (rows, SCALED), np.int32)
    code.encode(room, codes, scales, dither, np.empty((2, rows, SCALED), bool))
    back = np.empty((rows, SCALED), np.float32)
    code.decode(codes, scales, back)
    found = back.reshape(-1)[:size]
    assert not back.reshape(-1)[size:].any()
    assert (found[x == 0] == 0).all()
    assert (np.sign(found) == np.sign(x)).all()
    least = 2.0**-30 * np.repeat(scales, SCALED)[:size]
    large = np.abs(x) > least
    ratio = np.abs(found[large] / x[large])
    step = 1 + 2.0 ** (code.shift - 23) + 1e-5
    assert ((ratio > 1 / step) & (ratio < step)).all()


def test_an_average_that_moves_by_less_than_a_step_of_the_code_still_moves():
    """v <- 0.999 v from 1 on, with a neighbour that holds the scale: after 700 updates 0.496, and not 1."""
    params, grads = {"W": np.zeros(2, np.float32)}, {"W": np.array([0, 1], np.float32)}
    opt = Adam8bit(lr=0.0)
    slots = opt.init(params)
    slots["v"]["W"][:], slots["v_scale"]["W"][:] = V_CODE.top, 1.0
    for _ in range(700):
        opt.update(params, grads, slots)
    v = np.empty((1, SCALED), np.float32)
    V_CODE.decode(slots["v"]["W"], slots["v_scale"]["W"], v)
    assert 0.3 < v[0, 0] / v[0, 1] < 0.75


def test_a_parameter_without_a_gradient_does_not_move():
    params = {"W": np.ones(600, np.float32)}
    grads = {"W": np.linspace(0, 1, 600, dtype=np.float32)}
    grads["W"][100:400] = 0
    opt = Adam8bit()
    slots = opt.init(params)
    for _ in range(20):
        opt.update(params, grads, slots)
    assert (params["W"][100:400] == 1).all()
    assert (params["W"][401:] < 1).all()


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_adam_in_bytes_takes_nearly_the_steps_of_adam(dtype):
    params, grads = network(dtype=dtype)
    other = tree.copy(params)
    plain, small = optim.Adam(), Adam8bit()
    slots, small_slots = plain.init(params), small.init(other)
    for _ in range(10):
        plain.update(params, grads, slots)
        small.update(other, grads, small_slots)
    for name, p in tree.items(params):
        leaf = dict(tree.items(other))[name]
        assert leaf.dtype == dtype
        off = np.abs(leaf - p)  # after ten steps of 1e-3
        assert np.median(off) < 5e-4
        assert off.max() < 1e-2


def test_slots_in_bytes_take_two_bytes_a_parameter_and_four_for_each_256():
    params = {"W": np.zeros((512, 1000), np.float32)}
    slots = Adam8bit().init(params)
    assert tree.nbytes([slot for name, slot in slots.items() if name != "step"]) == 2 * 512_000 + 2 * 4 * 2_000


def test_adafactors_slots_are_a_row_and_a_column():
    params = {
        "W": np.zeros((400, 300), np.float32),
        "conv": np.zeros((3, 3, 8, 16), np.float32),
        "b": np.zeros(300, np.float32),
    }
    slots = Adafactor().init(params)
    assert tree.nbytes([slots["rows"], slots["columns"]]) == 4 * (400 + 300 + 9 * (8 + 16) + 300)


@pytest.mark.parametrize("optimizer", [Adam8bit(), Adam8bit(weight_decay=0.1), Adafactor()])
def test_an_update_has_no_temporary_beyond_its_plan(optimizer):
    params = {"W": np.ones((600, 700), np.float32)}
    grads, slots = {"W": np.ones((600, 700), np.float32)}, optimizer.init(params)
    optimizer.update(params, grads, slots)
    with memory.traced_peak() as traced:
        optimizer.update(params, grads, slots)
    assert traced.peak <= optimizer.plan().workspace + 32 * 1024  # and Python's objects


def adafactor_by_the_paper(p, g, rows, columns, step, lr):
    """Without blocks: as PyTorch documents it."""
    decay = 1 - step**-0.8
    eps = float(np.finfo(np.float32).eps)
    scale = max(1e-3, math.sqrt((p**2).mean())) * min(lr, 1 / math.sqrt(step))
    if p.ndim > 1:
        rows[...] = decay * rows + (1 - decay) * (g**2).mean(axis=-1)
        columns[...] = decay * columns + (1 - decay) * (g**2).mean(axis=-2)
        squares = rows[..., None] * columns[..., None, :] / np.maximum(rows.mean(axis=-1), eps)[..., None, None]
    else:
        rows[...] = decay * rows + (1 - decay) * g**2
        squares = rows
    u = g / np.sqrt(np.maximum(squares, eps**2))
    return p - scale * u / max(1, math.sqrt((u**2).mean()))


def test_adafactor_is_the_formula_in_blocks():
    params, grads = network(dtype=np.float64)
    opt = Adafactor(lr=0.1)
    slots = opt.init(params)
    expected = tree.copy(params)["layer"]
    state = {name: [np.zeros_like(slots[slot]["layer"][name]) for slot in ("rows", "columns")] for name in expected}
    for step in range(1, 6):
        opt.update(params, grads, slots)
        for name, p in expected.items():
            expected[name] = adafactor_by_the_paper(p, grads["layer"][name], *state[name], step, 0.1)
    for name, p in expected.items():
        np.testing.assert_allclose(params["layer"][name], p, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("optimizer", [Adam8bit(), Adafactor(lr=0.05)])
def test_a_training_that_was_stopped_goes_on_to_the_bit(optimizer, tmp_path):
    data = datasets.digits()

    def train(epochs, folder=None, resume=False):
        model = models.mlp()
        params = model.init((8, 8, 1), np.random.default_rng(0))
        options = {"checkpoint": folder, "resume": resume} if folder else {}
        fit(model, params, data.train, optimizer=optimizer, epochs=epochs, batch_size=100, progress=False, **options)
        return model, params

    _, whole = train(2)
    train(1, tmp_path)
    model, again = train(2, tmp_path, resume=True)
    for name, p in tree.items(whole):
        assert (p == dict(tree.items(again))[name]).all(), name
    assert evaluate(model, again, data.test).accuracy > 0.85
