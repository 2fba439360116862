import json
import subprocess

import numpy as np
import pytest
from checkpoint_runs import (
    STEPS,
    assert_the_same,
    new,
    numbers,
    run,
    start,
    stopped_run,
    unstopped,
)
from helpers import same_bits
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from dlcourse import checkpoint as checkpoints
from dlcourse import layers as L
from dlcourse import optim, train, tree
from dlcourse.checkpoint import FILE
from dlcourse.memory import traced_peak
from dlcourse.model import Sequential


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return unstopped(tmp_path_factory)


# Going on.


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_run_stopped_at_any_step_and_resumed_is_equal_to_the_bit(tmp_path, whole, step):
    stopped_run(tmp_path, step)
    assert_the_same(tmp_path, *run(tmp_path, new(seed=9 if step > 1 else 0)), whole)


@pytest.mark.parametrize("every", [2, 5, 7])
def test_a_run_resumed_from_an_older_checkpoint_is_equal_to_the_bit(tmp_path, whole, every):
    stopped_run(tmp_path, 8, checkpoint_every=every)
    assert_the_same(tmp_path, *run(tmp_path, checkpoint_every=every), whole)


def test_a_run_stopped_many_times_and_resumed_with_other_workers_is_equal_to_the_bit(tmp_path, whole):
    for step, workers in ((2, 1), (3, 4), (7, 2), (8, 3)):
        stopped_run(tmp_path, step, workers=workers)
    assert_the_same(tmp_path, *run(tmp_path, workers=2), whole)


def test_checkpoints_change_no_bit_of_a_run(whole):
    assert same_bits(run()[0], whole[0])


def test_a_resume_that_forgot_one_thing_would_show(tmp_path, whole):
    # Each part of the state counts: without it, the run ends elsewhere.
    stopped_run(tmp_path, 6)
    path = tmp_path / FILE
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata()
    arrays = load_file(path)
    for name in ("slots/m/affine_1/W", "slots/v/conv2d_1/W", "params/batchnorm_1/buffers/mean", "params/affine_2/b"):
        changed = arrays | {name: arrays[name] + np.float32(0.01)}
        metadata["crc"] = checkpoints._crc(metadata["state"], changed.get, changed)
        save_file(changed, path, metadata)
        params, history = run(tmp_path)
        assert not (same_bits(params, whole[0]) and numbers(history) == numbers(whole[1])), name
        save_file(arrays, path, metadata)


def test_a_finished_run_returns_its_history_and_its_parameters_at_once(tmp_path, whole, monkeypatch):
    run(tmp_path)
    before = (tmp_path / FILE).read_bytes()
    monkeypatch.setattr(train, "batch_gradients", None)
    params, history = run(tmp_path, new(seed=5))
    assert same_bits(params, whole[0])
    assert numbers(history) == numbers(whole[1])
    assert (tmp_path / FILE).read_bytes() == before


def test_a_run_that_stopped_early_stays_stopped(tmp_path):
    model = Sequential([L.Flatten(), L.Affine(10)])
    params = model.init((8, 8, 1), rng=np.random.default_rng(0))
    options = {"model": model, "params": params, "optimizer": optim.SGD(lr=0), "early_stop": 1}
    _, history = run(tmp_path, **options)
    assert history.stopped == "no lower validation loss in 1 epochs"
    _, again = run(tmp_path, **options)
    assert numbers(again) == numbers(history)
    assert len(again.epochs) == 2


def test_more_epochs_go_on_where_a_finished_run_ended(tmp_path):
    run(tmp_path, epochs=2, schedule=None)
    params, history = run(tmp_path, epochs=4, schedule=None)
    expected, expected_history = run(epochs=4, schedule=None)
    assert same_bits(params, expected)
    assert numbers(history) == numbers(expected_history)


def test_adam_goes_on_with_its_moments_and_its_step_count(tmp_path):
    # lr 1e-3, ten steps with gradient 1, save, load, an eleventh with -0.1: the parameter falls by a further 8.8046e-4.
    opt, params = optim.Adam(lr=1e-3), {"w": np.zeros(1)}
    slots = opt.init(params)
    for _ in range(10):
        opt.update(params, {"w": np.ones(1)}, slots)
    checkpoints.save(tmp_path, params, slots, {"step_loss": []}, {})
    other = {"w": np.full(1, 9.0)}
    loaded = opt.init(other)
    checkpoints.load(tmp_path, other, loaded, {})
    assert loaded["step"] == 10
    assert type(loaded["step"]) is int
    before = float(other["w"][0])
    opt.update(other, {"w": np.full(1, -0.1)}, loaded)
    assert other["w"][0] - before == pytest.approx(-8.8046e-4, rel=1e-4)


def test_a_killed_process_loses_at_most_the_steps_since_its_last_checkpoint(tmp_path, whole):
    # In a process of its own, killed at a moment that nobody chose; what it leaves is resumed until it is done.
    code = """
        import sys, checkpoint_runs as t
        print("ready", flush=True)
        t.run(sys.argv[1], workers=2, checkpoint_every=1, callbacks=[lambda step: print(step.step, flush=True)])
        """
    rng = np.random.default_rng()
    kills = 0
    for _ in range(3):
        child = start(code, tmp_path)
        assert child.stdout.readline() == "ready\n"
        for _ in range(rng.integers(1, 5)):
            child.stdout.readline()
        try:
            child.wait(timeout=rng.uniform(0, 0.01))
        except subprocess.TimeoutExpired:
            child.kill()
            kills += 1
        child.communicate()
    assert kills > 0
    child = start(code, tmp_path)
    assert child.wait() == 0
    child.communicate()
    assert_the_same(tmp_path, *run(tmp_path), whole)


def test_what_a_killed_process_half_wrote_is_not_read_and_goes_with_the_next_checkpoint(tmp_path, whole):
    stopped_run(tmp_path, 6)
    (tmp_path / FILE).with_suffix(".partial").write_bytes(b"half a checkpoint")
    assert_the_same(tmp_path, *run(tmp_path), whole)


# When it is written, and what is in it.


def test_it_is_written_each_k_steps_and_at_the_end(tmp_path, monkeypatch):
    written = []
    right = checkpoints.save
    monkeypatch.setattr(checkpoints, "save", lambda *args: written.append(len(args[3]["step_loss"])) or right(*args))
    run(tmp_path / "a" / "b", checkpoint_every=5)
    run(tmp_path / "c")
    run(tmp_path / "d", checkpoint_every=5, callbacks=[lambda step: step.step == 7])
    assert written == [5, 10, 12, 12, 5, 7]


def test_it_is_a_plain_safetensors_file_of_params_and_slots(tmp_path):
    params, _ = run(tmp_path, epochs=1)
    arrays = load_file(tmp_path / FILE)
    assert same_bits({name[7:]: a for name, a in arrays.items() if name.startswith("params/")}, params)
    assert {name.split("/")[1] for name in arrays if name.startswith("slots/")} == {"m", "v"}
    assert {str(array.dtype) for name, array in arrays.items() if "history/" not in name} == {"float32"}
    assert {name: array.dtype for name, array in arrays.items() if "history/" in name} == {
        "history/step_loss": np.float64,
        "history/rest": np.uint8,
    }
    with safe_open(tmp_path / FILE, framework="numpy") as file:
        assert json.loads(file.metadata()["state"])["numbers"] == {"slots/step": 3}


def test_no_pickle_is_written_or_read(tmp_path, monkeypatch):
    import pickle

    for name in ("dump", "dumps", "load", "loads", "Pickler", "Unpickler"):
        monkeypatch.setattr(pickle, name, None)
    stopped_run(tmp_path, 4)
    run(tmp_path)


def test_arrays_in_another_memory_order_are_written_as_they_are_read(tmp_path):
    params = {"W": np.arange(6.0).reshape(2, 3).T, "scalar": np.array(3.0), "part": np.arange(10.0)[::3]}
    params |= {"empty": np.zeros((0, 3)), "bytes": np.arange(7, dtype=np.uint8), "mask": np.array([True, False])}
    checkpoints.save(tmp_path, params, {"step": 4}, {"step_loss": []}, {})
    other, slots = tree.map_leaves(np.zeros_like, params), {"step": 0}
    checkpoints.load(tmp_path, other, slots, {})
    np.testing.assert_equal(other, params)
    assert slots == {"step": 4}


def test_writing_one_copies_no_array(tmp_path):
    params = {"W": np.ones((1000, 1000), np.float32)}
    checkpoints.save(tmp_path, params, {}, {"step_loss": []}, {})
    with traced_peak() as traced:
        checkpoints.save(tmp_path, params, {}, {"step_loss": []}, {})
    assert traced.peak < 200_000
    assert np.array_equal(load_file(tmp_path / FILE)["params/W"], params["W"])
