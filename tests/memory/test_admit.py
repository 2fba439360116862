"""The gate: refused by prediction without a run, admitted after a measured one; and the exact memory test."""

import json
import sys
import time
import tracemalloc
from functools import partial

import numpy as np
import pytest

from dlcourse import initializers, losses, memory, models, optim, tree
from dlcourse import layers as L
from dlcourse.__main__ import main
from dlcourse.inputs import as_input
from dlcourse.memory import admit, assert_peak, bill
from dlcourse.model import Sequential

MIB = 2**20
MIXED = Sequential(
    [
        *(L.Conv2D(8, 3), L.BatchNorm(), L.GELU(), L.AvgPool2D(2)),
        *(Sequential([L.Conv2D(8, 3, padding=1), L.ReLU()]), L.MaxPool2D(3, stride=2, padding=1)),
        *(L.Flatten(), L.Dropout(0.5), L.LayerNorm(), L.Tanh(), L.Affine(10)),
    ]
)


@pytest.fixture
def no_child(monkeypatch):
    def forbidden(*_, **__):
        raise AssertionError("a process was started")

    monkeypatch.setattr(sys.modules["dlcourse.memory.admit"], "isolated", forbidden)


def test_a_step_that_is_too_large_is_refused_at_once_and_nothing_is_run(no_child):
    began = time.process_time()
    verdict = admit(models.cifar_cnn(), (32, 32, 3), optim.Adam(), budget="20 MiB", batch_size=100)
    assert time.process_time() - began < 0.5
    assert not verdict
    assert verdict.measured is None
    assert verdict.over == verdict.bill.peak - 20 * MIB
    assert "predicted, nothing was run" in str(verdict)


def test_refusing_a_model_of_gigabytes_allocates_nothing_of_its_size(no_child):
    model = Sequential([L.Affine(100_000), L.ReLU(), L.Affine(100_000, init_W=initializers.glorot), L.Affine(10)])
    with memory.traced_peak() as traced:
        verdict = admit(model, (50_000,), optim.Adam(), budget="1 GiB", batch_size=1)
    assert traced.peak < 2 * MIB
    assert verdict.bill.total("params") == 4 * (100_000 * 150_000 + 200_000 + 100_000 * 10 + 10)
    assert verdict.largest == ("affine_2", "slots", 8 * 100_000 * 100_001)


def test_what_fits_is_admitted_after_a_measured_run():
    verdict = admit(models.small_cnn(), (8, 8, 1), optim.Adam(), budget="4 MiB", batch_size=50)
    assert verdict.ok
    assert verdict.bill.peak == pytest.approx(verdict.measured, abs=64 * 1024)
    assert verdict.over < 0
    assert "to spare" in str(verdict)


class Columns(L.Affine):
    """A layer that makes more than its plan says: here twenty times its input."""

    def forward(self, params, x, *, train=False, rng=None):
        np.repeat(x, 20, axis=1)
        return super().forward(params, x, train=train, rng=rng)


def test_a_layer_that_takes_more_than_its_plan_is_refused_by_the_measured_run():
    model = Sequential([L.Flatten(), Columns(10)])
    verdict = admit(model, (64, 64, 3), optim.SGD(), budget="16 MiB", batch_size=32)
    assert verdict.bill.peak < 16 * MIB < verdict.measured
    assert not verdict.ok
    assert "(measured)" in str(verdict)


class Hungry(L.Affine):
    def forward(self, params, x, *, train=False, rng=None):
        raise MemoryError("no room")


def test_a_run_that_does_not_come_to_its_end_is_refused():
    verdict = admit(Sequential([Hungry(10)]), (4,), optim.SGD(), budget="16 MiB", batch_size=2)
    assert not verdict.ok
    assert verdict.measured is None
    assert "no room" in str(verdict)


def test_other_losses_get_targets_of_their_kind():
    loss = partial(losses.softmax_cross_entropy, label_smoothing=0.1)
    assert admit(models.mlp(), (8, 8, 1), optim.SGD(), budget="1 MiB", batch_size=5, loss=loss).ok
    assert admit(models.mlp(), (8, 8, 1), None, budget="1 MiB", batch_size=5, loss=losses.binary_cross_entropy).ok


def test_the_verdict_as_a_dict_is_plain_numbers(no_child):
    verdict = admit(models.mlp(), (8, 8, 1), optim.Adam(), budget=1000, batch_size=5).to_dict()
    assert json.loads(json.dumps(verdict)) == verdict
    assert verdict["admitted"] is False
    assert verdict["largest"]["layer"] == "affine_1"


# The bill of a forward pass alone.


@pytest.mark.parametrize(
    ("model", "in_shape", "batch", "dtype"),
    [
        (models.mlp(), (8, 8, 1), 50, "float64"),
        (models.small_cnn(), (8, 8, 1), 7, "float32"),
        (models.cifar_cnn(), (32, 32, 3), 1, "float32"),
        (models.cifar_cnn(), (32, 32, 3), 20, "float32"),
        (MIXED, (17, 15, 3), 1, "float64"),
        (MIXED, (17, 15, 3), 30, "float32"),
    ],
)
def test_the_bill_of_a_forward_pass_is_what_it_takes(model, in_shape, batch, dtype):
    predicted = bill(model, in_shape, batch_size=batch, inference=True, dtype=dtype, optimizer=optim.Adam())
    params = model.init(in_shape, np.random.default_rng(0), dtype)
    images = np.random.default_rng(0).integers(0, 256, (batch, *in_shape), dtype=np.uint8)

    def forward():
        x = as_input(images, dtype)
        model.forward(params, x)

    forward()
    with memory.traced_peak() as traced:
        forward()
    measured = tree.nbytes(params) + traced.peak
    assert abs(measured - predicted.peak) <= max(64 * 1024, 0.02 * measured)
    assert predicted.total("params") + predicted.total("buffers") == tree.nbytes(params)
    assert [predicted.total(kind) for kind in ("grads", "saved", "slots")] == [0, 0, 0]
    assert all(moment.name.endswith(", forward") for moment in predicted.moments)


def test_inference_is_admitted_where_training_is_not():
    small = {"budget": "13 MiB", "batch_size": 10}
    assert not admit(models.cifar_cnn(), (32, 32, 3), optim.Adam(), **small)
    verdict = admit(models.cifar_cnn(), (32, 32, 3), optim.Adam(), inference=True, micro_batch=5, **small)
    assert verdict.ok
    assert verdict.measured == pytest.approx(verdict.bill.peak, abs=64 * 1024)


# The exact memory test.


def test_a_block_within_its_budget_passes_and_tells_its_peak():
    with assert_peak("1 MiB") as traced:
        x = np.zeros(100_000, np.float32)
    assert 400_000 <= traced.peak < 402_000
    assert x.any() == False
    assert not tracemalloc.is_tracing()


def test_a_block_over_its_budget_fails_with_peak_budget_and_what_is_alive():
    with pytest.raises(AssertionError) as failed, assert_peak("1 MiB"):
        kept = np.zeros((512, 512))
        view = np.zeros((256, 256))[0]
        np.zeros((1024, 1024))
    text = str(failed.value)
    assert "the peak is 10.5 MiB" in text
    assert "9.50 MiB over 1.00 MiB" in text
    lines = text.splitlines()
    assert "kept  (512, 512) float64, made at test_admit.py:" in lines[2]
    assert "view  (256, 256) float64" in lines[3]
    assert lines[-1] == "freed before it: 8.00 MiB"
    assert kept.size + view.size
    assert not tracemalloc.is_tracing()


@assert_peak("600 KiB")
def of_a_function(size):
    return np.zeros(size, np.uint8)


def test_a_function_is_held_to_its_budget_in_each_call():
    assert of_a_function(500 * 1024).size == 500 * 1024
    with pytest.raises(AssertionError, match=r"the peak is 70[01] KiB"):
        of_a_function(700 * 1024)
    assert of_a_function(10).size == 10


def test_an_error_in_the_block_is_not_hidden_by_its_peak():
    with pytest.raises(ZeroDivisionError), assert_peak(1):
        1 / 0  # noqa: B018


def test_the_same_step_has_the_same_peak_in_each_run():
    model = models.mlp()
    params = model.init((8, 8, 1), np.random.default_rng(0))
    x = np.zeros((50, 8, 8, 1), np.float32)
    peaks = []
    for _ in range(6):
        with assert_peak("1 MiB") as traced:
            model.forward(params, x, train=True)
        peaks.append(traced.peak)
    assert max(peaks[3:]) - min(peaks[3:]) < 1024  # of Python's own


# The command.


def test_the_command_refuses_and_admits_by_its_exit_code(capsys):
    assert main(["admit", "cifar_cnn", "--batch-size", "100", "--budget", "20MiB"]) == 1
    assert capsys.readouterr().out.startswith("refused: 65.2 MiB over the budget of 20.0 MiB")
    assert main(["admit", "mlp", "--budget", "120 MiB", "--micro-batch", "25", "--json"]) == 0
    verdict = json.loads(capsys.readouterr().out)
    assert verdict["admitted"] is True
    assert verdict["predicted"] <= verdict["budget"] == 120 * MIB


def test_the_command_admits_the_network_of_the_story_under_120_mib(capsys):
    assert main(["admit", "cifar_cnn", "--batch-size", "100", "--budget", "120MiB"]) == 0
    assert "admitted" in capsys.readouterr().out


MODULE = """
from dlcourse import layers as L, optim
from dlcourse.model import Sequential

def small():
    return Sequential([L.Flatten(), L.Affine(10)]), (4, 4, 1), optim.SGD()

def half():
    return Sequential([L.Affine(10)])

def broken():
    raise KeyError("two\\nlines")
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    (tmp_path / "my_models.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    yield
    sys.modules.pop("my_models", None)


@pytest.mark.parametrize(("budget", "code"), [("1MiB", 0), ("1KiB", 1)])
def test_the_command_takes_a_function_of_a_module_beside_it(project, budget, code, capsys):
    assert main(["admit", "my_models:small", "--budget", budget, "--batch-size", "4"]) == code
    assert "largest: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("what", "budget", "words"),
    [
        ("my_models:half", "1MiB", "must return (model, in_shape, optimizer), got Sequential"),
        ("my_models:missing", "1MiB", "missing"),
        ("my_models:broken", "1MiB", "two"),
        ("my_models", "1MiB", "MODULE:FUNCTION"),
        ("no_such_module:f", "1MiB", "no_such_module"),
        ("mlp", "20MB", "200 MiB"),
    ],
)
def test_a_wrong_call_of_the_command_is_one_line_and_ends_with_2(project, what, budget, words, capsys):
    assert main(["admit", what, "--budget", budget]) == 2
    error = capsys.readouterr().err
    assert words in error
    assert error.count("\n") == 1


def test_the_command_needs_a_budget(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["admit", "mlp"])
    assert ended.value.code == 2
    assert "--budget" in capsys.readouterr().err
