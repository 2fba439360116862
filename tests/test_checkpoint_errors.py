"""What a checkpoint refuses, and what happens where it cannot be written. Nothing is lost: parameters and file stay."""

import functools
import os
import re
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from checkpoint_runs import DATA, STEPS, assert_the_same, new, run, start, stopped_run, unstopped
from helpers import same_bits
from safetensors.numpy import save_file

from dlcourse import checkpoint as checkpoints
from dlcourse import layers as L
from dlcourse import losses, optim, schedules, tree
from dlcourse.checkpoint import FILE, CheckpointError
from dlcourse.model import Sequential


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    return unstopped(tmp_path_factory)


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
    with pytest.raises(CheckpointError, match=re.escape(f"cannot be written to {tmp_path / 'file' / 'run'}")):
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
        import resource, sys, checkpoint_runs as t
        from dlcourse.checkpoint import CheckpointError
        resource.setrlimit(resource.RLIMIT_FSIZE, (3000, resource.RLIM_INFINITY))
        try:
            t.run(sys.argv[1], checkpoint_every=1)
        except CheckpointError as error:
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
        import os, sys, checkpoint_runs as t
        from dlcourse.checkpoint import CheckpointError
        if os.getuid() == 0:
            os.setuid(65534)
        try:
            t.run(sys.argv[1], checkpoint_every=1)
        except CheckpointError as error:
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
        assert re.match(r"checkpoints cannot be written to .*ermission denied", out[0o644])
        assert (folder / FILE).read_bytes() == before
        assert_the_same(folder, *run(folder), whole)
