"""A resumed training is the same training, or is refused: by what a setting is told from another one."""

import dataclasses
import functools
import json
import subprocess
import sys
import threading
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from safetensors import safe_open
from safetensors.numpy import load_file, save_file

from dlcourse import checkpoint as checkpoints
from dlcourse import layers as L
from dlcourse import losses, optim, schedules
from dlcourse.checkpoint import FILE, CheckpointError
from dlcourse.datasets import Split
from dlcourse.model import Sequential
from dlcourse.train import fit

DATA = Split(np.arange(36, dtype=np.float32).reshape(9, 4) / 36, np.arange(9) % 3)


def train(folder, model=None, **options):
    model = model or Sequential([L.Affine(3)])
    params = model.init((4,), np.random.default_rng(0))
    return fit(model, params, DATA, checkpoint=folder, **{"optimizer": optim.SGD(0.1), "progress": False} | options)


def half(step):
    return 0.5


def quarter(step, factor=0.25):
    return factor


def shift(x, rng, by=1, how=None):
    return x + by if how is None else how(x)


def own_loss(outputs, labels, *, total=None):
    return losses.softmax_cross_entropy(outputs, labels, total=total)


@dataclasses.dataclass(frozen=True)
class Scale:
    factor: float = dataclasses.field(default=1.0, repr=False)
    rest: tuple = ()

    def __call__(self, step, rng=None):
        return self.factor


@dataclasses.dataclass(frozen=True)
class Then:
    steps: int
    then: object

    def __call__(self, step):
        return self.then(step)


@dataclasses.dataclass(frozen=True)
class Cosine:
    """Called as one of the course's, and another one."""

    steps: int
    floor: float = 0.0

    def __call__(self, step):
        return 0.5


@dataclasses.dataclass(frozen=True)
class Double:
    by: float = 2.0
    function: object = np.multiply

    def init(self, in_shape, rng, dtype=np.float32):
        return {}

    def out_shape(self, in_shape):
        return in_shape

    def forward(self, params, x, *, train=False, rng=None):
        return self.function(x, np.float32(self.by)), None

    def backward(self, params, saved, dy, *, need_dx=True, **_):
        return self.function(dy, np.float32(self.by)), {}


# Refused when a checkpoint is first wanted, before a step, with what to do.


class Forgets:
    def __init__(self, factor=1.0):
        self.factor = factor

    def __call__(self, *_):
        return self.factor


class Stateless:
    def __call__(self, step):
        return 0.5


@dataclasses.dataclass
class Thawed:
    factor: float = 1.0

    def __call__(self, step):
        return self.factor


class Sub(Scale):  # no dataclass itself: what its __init__ sets is no field
    def __init__(self, factor):
        super().__init__(1.0)
        object.__setattr__(self, "hidden", factor)


def made(factor):
    def schedule(step):
        return factor

    @dataclasses.dataclass(frozen=True)
    class Local:
        def __call__(self, step):
            return factor

    @functools.wraps(half)
    def disguised(step):
        return factor

    return schedule, Local(), disguised


class PlainLayer(L.ReLU):
    def __init__(self):
        object.__setattr__(self, "slope", 0.1)


REFUSED = [
    ("schedule", Forgets()),
    ("schedule", Stateless()),
    ("schedule", Forgets(0.5).__call__),
    ("schedule", Thawed()),
    ("schedule", Sub(0.5)),
    ("schedule", lambda step: 0.5),
    ("schedule", lambda step, f=1.0: f),
    *(("schedule", one) for one in made(0.5)),
    ("schedule", Scale(0.5, rest=(np.ones(3),))),
    ("schedule", Scale(0.5, rest=(Forgets(),))),
    ("schedule", Then(2, then=made(0.5)[0])),
    ("schedule", schedules.WarmUp(2, then=Forgets())),
    ("schedule", functools.partial(made(0.5)[0])),
    ("schedule", functools.partial(quarter, factor=np.ones(()))),
    ("augment", lambda x, rng: x),
    ("augment", functools.partial(shift, how=lambda x: x)),
    ("loss", lambda y, t, total: losses.softmax_cross_entropy(y, t, total=total)),
    ("model", Sequential([L.Affine(3), PlainLayer()])),
    ("model", Sequential([L.Affine(3), Double(function=lambda x, y: x * y)])),
]


@pytest.mark.parametrize(("name", "value"), REFUSED)
def test_what_may_hide_a_state_is_refused_before_the_first_step(tmp_path, name, value):
    with pytest.raises(CheckpointError, match=rf"a checkpoint needs a {name} that can be told.*frozen=True") as caught:
        train(tmp_path, **{name: value}, callbacks=[pytest.fail])
    assert " at 0x" not in str(caught.value)
    assert list(tmp_path.iterdir()) == []
    if name != "model":
        assert train(None, **{name: value}).step_loss  # without a checkpoint it trains


# Another one is refused by its name, with both texts.

OTHER = [
    ("schedule", half, quarter),
    ("schedule", half, None),
    ("schedule", Scale(1.0), Scale(0.001)),
    ("schedule", Scale(1.0, rest=({"a": [1]},)), Scale(1.0, rest=({"a": [2]},))),
    ("schedule", schedules.WarmUp(2, then=half), schedules.WarmUp(2, then=quarter)),
    ("schedule", schedules.Cosine(9), Cosine(9)),
    ("schedule", functools.partial(quarter, factor=0.5), functools.partial(quarter, factor=0.1)),
    ("augment", functools.partial(shift, how=np.flipud), functools.partial(shift, how=np.fliplr)),
    ("augment", functools.partial(shift, how=np.sqrt), functools.partial(shift, how=np.abs)),
    ("loss", own_loss, losses.softmax_cross_entropy),
    ("model", Sequential([L.Affine(3), Double(2.0)]), Sequential([L.Affine(3), Double(3.0)])),
    ("model", Sequential([L.Affine(3), Double()]), Sequential([L.Affine(3), Double(function=np.add)])),
    ("optimizer", optim.Momentum(0.1), optim.Nesterov(0.1)),
]


@pytest.mark.parametrize(("name", "one", "other"), OTHER)
def test_another_setting_is_refused_and_the_same_goes_on(tmp_path, name, one, other):
    train(tmp_path, **{name: one})
    with pytest.raises(CheckpointError, match=f"was written with {name} = ") as caught:
        train(tmp_path, **{name: other}, epochs=2)
    assert " at 0x" not in str(caught.value)
    assert len(train(tmp_path, **{name: one}, epochs=2).step_loss) == 2


SCRIPT = """
import dataclasses, functools, sys, numpy as np
sys.path.insert(0, sys.argv[1])
from test_settings import Double, Then, shift, train
from dlcourse import initializers, layers as L, schedules
from dlcourse.model import Sequential
def half(step): return .5
@dataclasses.dataclass(frozen=True)
class Mine:
    then: object = half
    def __call__(self, step): return self.then(step)
model = Sequential([L.Affine(3, functools.partial(initializers.normal, std=.1)), Double()])
history = train(
    sys.argv[2], model, schedule=schedules.WarmUp(2, then=Mine()), augment=functools.partial(shift, how=np.flipud),
    epochs=int(sys.argv[3]),
)
print(len(history.step_loss))
"""


def test_a_training_with_functions_and_layers_of_ones_own_goes_on_in_another_process(tmp_path):
    for epochs in "12":
        run = [sys.executable, "-c", SCRIPT, str(Path(__file__).parent), str(tmp_path), epochs]
        child = subprocess.run(run, check=False, capture_output=True, text=True, encoding="utf-8")
        assert (child.stdout, child.stderr) == (f"{epochs}\n", "")


def test_another_validation_is_refused_if_training_can_end_by_it(tmp_path):
    validation = Split(DATA.x[:3], DATA.y[:3])
    train(tmp_path, validation=validation, early_stop=2)
    with pytest.raises(CheckpointError, match="was written with validation = "):
        train(tmp_path, validation=DATA, early_stop=2, epochs=2)
    train(tmp_path / "free", validation=validation)
    assert len(train(tmp_path / "free", validation=DATA, epochs=2).epochs) == 2


# The file.


def old_file(folder, settings):
    """Rewrite a checkpoint as the first version of the format had it: the history in the header, fewer settings."""
    path = Path(folder) / FILE
    with safe_open(path, framework="numpy") as file:
        state = json.loads(file.metadata()["state"])
    arrays = load_file(path)
    history = json.loads(arrays.pop("history/rest").tobytes())
    history["step_loss"] = arrays.pop("history/step_loss").tolist()
    for name in ("all_inputs", "label_shape", "validation"):
        state["settings"].pop(name, None)
    state["settings"] |= settings
    text = json.dumps(state | {"history": history})
    save_file(
        arrays,
        path,
        {"format": checkpoints.OLD_FORMAT, "state": text, "crc": checkpoints._crc(text, arrays.get, arrays)},
    )


def test_checkpoints_of_the_first_format_still_resume(tmp_path):
    options = {
        "model": Sequential([L.Affine(3), L.Dropout(0.25), Sequential([L.ReLU()])]),
        "schedule": schedules.WarmUp(3, then=schedules.Cosine(9)),
        "loss": functools.partial(losses.softmax_cross_entropy, label_smoothing=0.1),
        "optimizer": optim.AdamW(lr=5e-3),
    }
    texts = {  # as they were written
        "model": "Sequential(layers=(Affine(units=3), Dropout(rate=0.25), Sequential(layers=(ReLU(),))))",
        "schedule": "WarmUp(steps=3, then=Cosine(steps=9, floor=0.0))",
        "loss": "dlcourse.losses.softmax_cross_entropy()[('label_smoothing', 0.1)]",
        "optimizer": "AdamW(lr=0.005, beta1=0.9, beta2=0.999, eps=1e-08, weight_decay=0.01)",
        "clip_norm": None,
    }
    whole = train(tmp_path / "whole", epochs=3, **options)
    train(tmp_path, epochs=1, **options)
    old_file(tmp_path, texts)
    assert train(tmp_path, epochs=3, **options).step_loss == whole.step_loss
    old_file(tmp_path, texts | {"schedule": "WarmUp(steps=4, then=Cosine(steps=9, floor=0.0))"})
    with pytest.raises(CheckpointError, match="was written with schedule = "):
        train(tmp_path, epochs=4, **options)


def test_a_history_of_any_length_can_be_read_again(tmp_path):
    params = {"W": np.zeros(3, np.float32)}
    history = {"step_loss": [0.5, float("nan")], "epochs": [{"epoch": 1, "val": None}], "stopped": "x" * 100_000_100}
    checkpoints.save(tmp_path, params, {"step": 2}, history, {})
    with safe_open(tmp_path / FILE, framework="numpy") as file:
        assert len(json.dumps(file.metadata())) < 1000
    found = checkpoints.load(tmp_path, params, {"step": 0}, {})
    assert repr(found["step_loss"]) == "[0.5, nan]"
    assert (found["epochs"], found["stopped"]) == (history["epochs"], history["stopped"])


def test_the_losses_take_eight_bytes_a_step(tmp_path):
    sizes = []
    for steps in (0, 10_000):
        checkpoints.save(tmp_path, {}, {}, {"step_loss": [1 / 3] * steps}, {})
        sizes.append((tmp_path / FILE).stat().st_size)
    assert 80_000 <= sizes[1] - sizes[0] < 80_100


@pytest.mark.parametrize(
    ("params", "settings", "message"),
    [
        ({"W": np.ones(2, np.complex64)}, {}, "params/W is complex64, which the file format does not have"),
        ({"W": np.array(["a"])}, {}, "params/W is <U1, which"),
        ({"W": np.ones(2)}, {"model": "x" * 100_000_000}, "a reader takes 100,000,000"),
    ],
)
def test_what_could_not_be_read_is_not_written(tmp_path, params, settings, message):
    checkpoints.save(tmp_path, {"W": np.ones(1)}, {}, {"step_loss": []}, {})
    before = (tmp_path / FILE).read_bytes()
    with pytest.raises(CheckpointError, match=f"could not be written .*{message}"):
        checkpoints.save(tmp_path, params, {}, {"step_loss": []}, settings)
    assert (tmp_path / FILE).read_bytes() == before
    assert [path.name for path in tmp_path.iterdir()] == [FILE]


def test_bytes_in_another_order_and_numbers_of_numpy_are_written_as_they_are_read(tmp_path):
    params = {"W": np.arange(3, dtype=">f4")}
    history = {"step_loss": [np.float32(0.5)], "epochs": [{"mine": np.float32(2), "n": np.int64(3)}]}
    checkpoints.save(tmp_path, params, {"step": np.int64(7), "own": {"a": [np.float64(0.5)]}}, history, {})
    other, slots = {"W": np.zeros(3, np.float32)}, {"step": 0, "own": {"a": [0.0]}}
    found = checkpoints.load(tmp_path, other, slots, {})
    assert other["W"].tolist() == [0, 1, 2]
    assert slots == {"step": 7, "own": {"a": [0.5]}}
    assert found == {"step_loss": [0.5], "epochs": [{"mine": 2.0, "n": 3}]}
    with pytest.raises(CheckpointError, match="slots/own/a/0 is a number there, expected no such array"):
        checkpoints.load(tmp_path, other, {"step": 0}, {})


def test_trainings_on_threads_in_one_folder_do_not_hinder_each_other(tmp_path):
    failed, start = [], threading.Barrier(4)

    def run():
        start.wait()
        try:
            for step in range(40):
                checkpoints.prepare(tmp_path)
                checkpoints.save(tmp_path, {"W": np.ones(1000)}, {}, {"step_loss": [0.0] * step}, {})
        except OSError as error:
            failed.append(error)

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert [path.name for path in tmp_path.iterdir()] == [FILE]
    assert len(checkpoints.load(tmp_path, {"W": np.ones(1000)}, {}, {})["step_loss"]) == 39


@pytest.mark.parametrize("folder", ["", 5, True])
def test_a_checkpoint_folder_has_a_name(folder):
    with pytest.raises(ValueError, match="checkpoint must name a folder, got"):
        train(folder, callbacks=[pytest.fail])


def test_a_layer_that_is_no_dataclass_trains_without_a_checkpoint():
    params = {"affine_1": {"W": np.ones((4, 3), np.float32), "b": np.zeros(3, np.float32)}}
    model = Sequential([L.Affine(3), Double()])
    assert fit(model, params, SimpleNamespace(x=DATA.x, y=DATA.y), optimizer=optim.SGD(), progress=False).step_loss
