import copy
import functools
import json
import os
import re
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from helpers import blobs, same_bits
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from dlcourse import checkpoint as checkpoints
from dlcourse import layers as L
from dlcourse import losses, optim, schedules, train, tree
from dlcourse.checkpoint import FILE, CheckpointError
from dlcourse.memory import traced_peak
from dlcourse.model import Sequential
from dlcourse.train import fit

NET = Sequential(
    [
        *(L.Conv2D(3, 3), L.BatchNorm(), L.ReLU(), L.MaxPool2D(2), L.Dropout(0.25)),
        *(L.Flatten(), L.Affine(8), L.ReLU(), L.Dropout(0.5), L.Affine(10)),
    ]
)
DATA, TEST = blobs(250), blobs(40, seed=1)
STEPS = 12  # four epochs of three batches


def flip(x, rng):
    return x[:, :, :: rng.choice([-1, 1])]


flip.__module__ = "augmentation"  # a checkpoint knows it by this name, in this process and in the children


# Everything that has state or draws: what is not carried over shows in the last bit.
OPTIONS = {
    "optimizer": optim.AdamW(lr=5e-3), "epochs": 4, "batch_size": 100, "micro_batch": 30, "seed": 11, "clip_norm": 0.5,
    "schedule": schedules.WarmUp(3, then=schedules.Cosine(9)), "augment": flip, "validation": TEST, "early_stop": 4,
    "progress": False,
}  # fmt: skip


def new(dtype=np.float32, seed=0):
    return NET.init((8, 8, 1), rng=np.random.default_rng(seed), dtype=dtype)


def run(folder=None, params=None, data=DATA, model=NET, **options):
    """-> params, history."""
    params = new() if params is None else params
    return params, fit(model, params, data, **(OPTIONS | {"checkpoint": folder} | options))


class Stopped(Exception):
    """A run that is stopped from outside."""


def stop_after(step):
    def callback(now):
        if now.step == step:
            raise Stopped

    return callback


def stopped_run(folder, step, **options):
    with pytest.raises(Stopped):
        run(folder, callbacks=[stop_after(step)], **({"checkpoint_every": 1} | options))


def numbers(history):
    """A history without the seconds."""
    stored = copy.deepcopy(history if isinstance(history, dict) else vars(history))
    for row in stored["epochs"]:
        del row["seconds"]
    return stored


def state(folder):
    """-> every array in a checkpoint, and its history without the seconds."""
    with safe_open(Path(folder) / FILE, framework="numpy") as file:
        stored = json.loads(file.metadata()["state"])
    return load_file(Path(folder) / FILE), stored["numbers"], numbers(stored["history"])


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """-> params, history and state of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    params, history = run(folder)
    assert len(history.step_loss) == STEPS
    return params, history, state(folder)


def assert_the_same(folder, params, history, whole):
    arrays, plain, stored_history = state(folder)
    expected_params, expected_history, (expected_arrays, expected_plain, expected_stored) = whole
    assert same_bits(params, expected_params)
    assert numbers(history) == numbers(expected_history)
    assert same_bits(arrays, expected_arrays)
    assert (plain, stored_history) == (expected_plain, expected_stored)
    assert os.listdir(folder) == [FILE]


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
        import sys, test_checkpoint as t
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


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
    )


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
    assert {array.dtype for array in arrays.values()} == {np.dtype(np.float32)}
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
    other, slots = tree.map(np.zeros_like, params), {"step": 0}
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


# What is refused. Nothing is lost: parameters and file stay as they were.


def refused(folder, message, **options):
    """A run that must raise one CheckpointError, which names the file."""
    path = Path(folder) / FILE
    before = path.read_bytes() if path.is_file() else None
    params = options.pop("params", None) or new(seed=4)
    copied = tree.copy(params)
    with pytest.raises(CheckpointError, match=message) as caught:
        run(folder, params, **options)
    assert str(path) in str(caught.value)
    assert same_bits(params, copied)
    assert before is None or path.read_bytes() == before
    return str(caught.value)


@pytest.fixture
def stopped(tmp_path):
    """The folder of a run that was stopped after its fifth step."""
    stopped_run(tmp_path, 6)
    return tmp_path


def test_without_resume_an_existing_checkpoint_is_never_overwritten(stopped, tmp_path):
    refused(stopped, "holds a training of 5 steps: resume it, or name another folder", resume=False)
    assert len(run(tmp_path / "new", resume=False)[1].step_loss) == STEPS


OTHER = {
    "optimizer": optim.AdamW(lr=6e-3),
    "loss": functools.partial(losses.softmax_cross_entropy, label_smoothing=0.1),
    "batch_size": 50,
    "micro_batch": 25,
    "seed": np.int64(12),
    "schedule": schedules.WarmUp(3, then=schedules.Cosine(10)),
    "clip_norm": None,
    "augment": None,
    "early_stop": 3,
    "model": Sequential([L.Flatten(), L.Affine(10)]),
}


@pytest.mark.parametrize("name", OTHER)
def test_a_checkpoint_of_other_settings_is_refused_by_the_name_of_the_setting(stopped, name):
    options = {name: OTHER[name]}
    if name == "model":
        options["params"] = OTHER["model"].init((8, 8, 1), rng=np.random.default_rng(0))
    assert f"was written with {name} = " in refused(stopped, "take the same, or another folder", **options)


@pytest.mark.parametrize(
    ("name", "data"),
    [
        ("labels", SimpleNamespace(x=DATA.x, y=np.roll(DATA.y, 1))),
        ("inputs", SimpleNamespace(x=DATA.x.astype(np.float32), y=DATA.y)),
    ],
)
def test_a_checkpoint_of_other_data_is_refused(stopped, name, data):
    refused(stopped, f"was written with {name} = ", data=data)


def test_settings_of_another_integer_type_are_the_same(stopped, whole):
    options = {"seed": np.int64(11), "batch_size": np.int32(100), "clip_norm": np.float64(0.5)}
    assert same_bits(run(stopped, **options)[0], whole[0])


def test_a_checkpoint_of_another_network_names_the_array_and_both_shapes(tmp_path):
    checkpoints.save(tmp_path, {"affine_1": {"W": np.zeros((2, 3))}}, {}, {"step_loss": []}, {})
    for params, message in [
        ({"affine_1": {"W": np.zeros((2, 4))}}, r"params/affine_1/W is F64 \(2, 3\) there, expected F64 \(2, 4\)"),
        ({"affine_1": {"W": np.zeros((2, 3), np.float32)}}, r"is F64 \(2, 3\) there, expected F32 \(2, 3\)"),
        ({"affine_1": {"W": np.zeros((2, 3)), "b": np.zeros(3)}}, "params/affine_1/b is missing there, expected F64"),
        ({}, r"params/affine_1/W is F64 \(2, 3\) there, expected no such array"),
    ]:
        with pytest.raises(CheckpointError, match=f"is of another network: .*{message}"):
            checkpoints.load(tmp_path, params, {}, {})
    refused(tmp_path, "was written with ")


def test_parameters_of_another_precision_are_refused(stopped):
    refused(stopped, "is F32 .* there, expected F64", params=new(np.float64))


@pytest.mark.parametrize("length", [0, 1, 8, 9, 100, -4000, -1])
def test_a_truncated_file_is_refused(stopped, length):
    path = stopped / FILE
    path.write_bytes(path.read_bytes()[:length])
    refused(stopped, "is damaged: .*; remove it to start anew")


@pytest.mark.parametrize("where", [0.0, 0.002, 0.05, 0.3, 0.6, 0.9, 0.9999])
def test_one_changed_byte_is_noticed(stopped, where):
    path = stopped / FILE
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 1
    path.write_bytes(content)
    refused(stopped, "is damaged: .*; remove it|is not a checkpoint")


def test_a_file_of_somebody_else_is_refused(tmp_path):
    path = tmp_path / FILE
    path.write_text("not tensors")
    refused(tmp_path, "is damaged")
    save_file({"weight": np.zeros(3, np.float32)}, path)
    refused(tmp_path, "is not a checkpoint of this package")
    save_file({"weight": np.zeros(3, np.float32)}, path, {"format": "pt"})
    refused(tmp_path, "is not a checkpoint of this package")
    save_file({}, path, {"format": checkpoints.FORMAT})
    refused(tmp_path, "is damaged: 'crc'")
    path.unlink()
    path.mkdir()
    refused(tmp_path, "cannot be read")


# What cannot be written.


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match=re.escape(f"{tmp_path / 'file' / 'run' / FILE} could not be written")):
        run(tmp_path / "file" / "run")


@pytest.mark.parametrize("where", ["_write", "os.fsync", "os.replace"])
def test_an_error_while_writing_leaves_the_checkpoint_before_and_no_partial_file(stopped, whole, monkeypatch, where):
    before = (stopped / FILE).read_bytes()

    def fail(*args, **kwargs):
        if where == "_write":
            Path(args[0]).write_bytes(b"half")
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(f"dlcourse.checkpoint.{where}", fail)
        with pytest.raises(CheckpointError, match=r"could not be written \([\d,]+ bytes\): .*No space left") as caught:
            run(stopped, checkpoint_every=1)
    assert "the checkpoint before it is unharmed" in str(caught.value)
    assert (stopped / FILE).read_bytes() == before
    assert os.listdir(stopped) == [FILE]
    assert_the_same(stopped, *run(stopped), whole)


@pytest.mark.skipif(sys.platform == "win32", reason="limits of the file size are POSIX's")
def test_no_room_on_the_disk_is_one_clear_error_and_loses_nothing(stopped, whole):
    # In a child, no file may grow beyond 3,000 bytes; the error comes from the system and not from a mock.
    code = """
        import resource, sys, test_checkpoint as t
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        try:
            t.run(sys.argv[1], checkpoint_every=1)
        except t.CheckpointError as error:
            print(error)
        """
    before = (stopped / FILE).read_bytes()
    child = start(code, stopped)
    out, _ = child.communicate()
    assert child.returncode == 0
    assert re.match(r".*latest.safetensors could not be written \([\d,]+ bytes\): .*; the checkpoint before it", out)
    assert (stopped / FILE).read_bytes() == before
    assert os.listdir(stopped) == [FILE]
    assert_the_same(stopped, *run(stopped), whole)


@pytest.mark.skipif(sys.platform == "win32", reason="a read-only folder is POSIX's")
def test_a_read_only_folder_is_one_clear_error(whole):
    # Root may write everywhere, so the child becomes another user first; others cannot look into pytest's own folders.
    code = """
        import os, sys, test_checkpoint as t
        if os.getuid() == 0:
            os.setuid(65534)
        try:
            t.run(sys.argv[1], checkpoint_every=1)
        except t.CheckpointError as error:
            print(error)
        """
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        stopped_run(folder, 6)
        before = (folder / FILE).read_bytes()
        out = {}
        for mode in (0o600, 0o644):
            (folder / FILE).chmod(mode)
            folder.chmod(0o555)
            child = start(code, folder)
            out[mode], _ = child.communicate()
            folder.chmod(0o755)
            assert child.returncode == 0
        if os.getuid() == 0:
            assert re.match(r".*latest.safetensors cannot be read: .*ermission denied", out[0o600])
        assert re.match(r".*latest.safetensors could not be written .*ermission denied.*unharmed", out[0o644])
        assert (folder / FILE).read_bytes() == before
        assert_the_same(folder, *run(folder), whole)
