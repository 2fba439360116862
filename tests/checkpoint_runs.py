"""A short training in which everything has state or draws, with helpers to stop it and to compare what it leaves."""

import copy
import json
import os
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pytest
from helpers import blobs, same_bits
from safetensors import safe_open
from safetensors.numpy import load_file

from dlcourse import layers as L
from dlcourse import optim, schedules
from dlcourse.checkpoint import FILE
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
    """-> every array of params and slots in a checkpoint, its plain numbers, and its history without the seconds."""
    with safe_open(Path(folder) / FILE, framework="numpy") as file:
        stored = json.loads(file.metadata()["state"])
    arrays = load_file(Path(folder) / FILE)
    history = json.loads(arrays.pop("history/rest").tobytes())
    history["step_loss"] = arrays.pop("history/step_loss").tolist()
    return arrays, stored["numbers"], numbers(history)


def assert_the_same(folder, params, history, whole):
    arrays, plain, stored_history = state(folder)
    expected_params, expected_history, (expected_arrays, expected_plain, expected_stored) = whole
    assert same_bits(params, expected_params)
    assert numbers(history) == numbers(expected_history)
    assert same_bits(arrays, expected_arrays)
    assert (plain, stored_history) == (expected_plain, expected_stored)
    assert os.listdir(folder) == [FILE]


def unstopped(tmp_path_factory):
    """-> params, history and state of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("whole")
    params, history = run(folder)
    assert len(history.step_loss) == STEPS
    return params, history, state(folder)


def start(code, *arguments):
    return subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(code), *map(str, arguments)],
        cwd=Path(__file__).parent,
        stdout=subprocess.PIPE,
        text=True,
    )
