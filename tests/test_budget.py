"""Budgets of memory: a file of them, what is wrong with it, and what would fit a refused step."""

import json
import re
import sys
from dataclasses import replace

import numpy as np
import pytest

from dlcourse import budget, memory, models, optim
from dlcourse import layers as L
from dlcourse.__main__ import main
from dlcourse.budget import Step, changes
from dlcourse.model import Sequential
from dlcourse.plan import Plan

MIB = 2**20
MODULE = """
from dlcourse import layers as L, optim
from dlcourse.model import Sequential

def three():
    return Sequential([L.Flatten(), L.Affine(10)]), (4, 4, 1), optim.SGD()

def alone():
    return Sequential([L.Flatten(), L.Affine(10)])

def broken():
    raise KeyError("two\\nlines")

def ends():
    raise SystemExit(0)
"""
GOOD = """
[story]
model = "mlp"
batch = 20
limit = "1 MiB"

[mine]
model = "nets_of_mine:alone"
data = [6, 6]
batch = 4
micro_batch = 2
workers = 2
optimizer = "Adam8bit"
limit = "2 MiB"

["a name with blanks"]
model = "nets_of_mine:three"
batch = 4
limit = 1000000
inference = true
"""


@pytest.fixture
def write(tmp_path, monkeypatch):
    """-> a function that writes budget.toml, beside a module of networks, in another folder than the process is in."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "nets_of_mine.py").write_text(MODULE)
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))

    def to_file(text):
        (folder / "budget.toml").write_text(text)
        return "project/budget.toml"

    yield to_file
    sys.modules.pop("nets_of_mine", None)


def test_each_network_of_a_file_is_judged_by_its_own_limit(write, capsys):
    assert main(["admit", write(GOOD)]) == 0
    out = capsys.readouterr().out
    assert re.findall(r"^\[(.*)\]\n(\w+):", out, re.MULTILINE) == [
        ("story", "admitted"), ("mine", "admitted"), ("a name with blanks", "admitted")
    ]  # fmt: skip
    small = write(GOOD.replace('"1 MiB"', '"100 KiB"'))
    assert main(["admit", "--file", small, "--json"]) == 1
    verdicts = json.loads(capsys.readouterr().out)
    assert [verdict["admitted"] for verdict in verdicts.values()] == [False, True, True]
    assert verdicts["story"]["changes"] and not verdicts["mine"]["changes"]


def test_a_file_says_what_a_step_is(write):
    steps = budget.read(write(GOOD))
    mine, named = steps["mine"], steps["a name with blanks"]
    assert (mine.in_shape, mine.batch_size, mine.micro_batch, mine.workers) == ((6, 6), 4, 2, 2)
    assert isinstance(mine.optimizer, optim.Adam8bit) and mine.limit == 2 * MIB
    assert isinstance(named.optimizer, optim.SGD) and named.inference and named.limit == 1_000_000
    assert steps["story"].in_shape == (8, 8, 1)


TABLE = '[net]\nmodel = "mlp"\nbatch = 20\nlimit = "1 MiB"\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (TABLE + "batchsize = 3", r"\[net\] batchsize: no such key; did you mean batch?"),
        (TABLE + "colour = 3", r"\[net\] colour: no such key; there are model, data, batch, limit, micro_batch"),
        (TABLE.replace("1 MiB", "1 MB"), r"\[net\] limit: expected a size such as .*that would be 977 KiB"),
        (TABLE.replace("1 MiB", "1 Mib/s"), r"\[net\] limit: expected a size"),
        (TABLE.replace('"1 MiB"', "0"), r"\[net\] limit: a size must be at least one byte"),
        (TABLE.replace('"1 MiB"', "1.5"), r"\[net\] limit: must be a size, got 1.5"),
        (TABLE.replace('limit = "1 MiB"', ""), r"\[net\] limit: missing"),
        (TABLE.replace('model = "mlp"', ""), r"\[net\] model: missing"),
        (TABLE.replace("batch = 20", ""), r"\[net\] batch: missing"),
        (TABLE.replace("20", "0"), r"\[net\] batch: must be at least 1, got 0"),
        (TABLE.replace("20", "true"), r"\[net\] batch: must be a whole number, got True"),
        (TABLE.replace("20", '"20"'), r"\[net\] batch: must be a whole number, got '20'"),
        (TABLE.replace("mlp", "lenet"), r"\[net\] model: expected MODULE:FUNCTION or one of cifar_cnn"),
        (TABLE.replace("mlp", "no_such_module:f"), r"\[net\] model: No module named 'no_such_module'"),
        (TABLE.replace("mlp", "nets_of_mine:nothing"), r"\[net\] model: .*nothing"),
        (TABLE.replace("mlp", "nets_of_mine:broken"), r"\[net\] model: 'two\\nlines'"),
        (TABLE.replace("mlp", "nets_of_mine:ends"), r"\[net\] model: the function ended the process"),
        (TABLE.replace("mlp", "nets_of_mine:alone"), r"\[net\] model: .*must return \(model, in_shape, optimizer\)"),
        (TABLE + 'data = "8x8"', r"\[net\] data: must be a list of numbers, got '8x8'"),
        (TABLE + "data = [8, 0, 1]", r"\[net\] data: must be the shape of one input"),
        (TABLE + "data = []", r"\[net\] data: must be the shape of one input"),
        (TABLE.replace("mlp", "cifar_cnn") + "data = [32, 32]", r"\[net\] data: Conv2D 'conv2d_1': "),
        (TABLE + 'optimizer = "Adamm"', r"\[net\] optimizer: 'Adamm' is none of .*Adam8bit"),
        (TABLE + "workers = 0", r"\[net\] workers: must be at least 1"),
        (TABLE + "inference = 1", r"\[net\] inference: must be true or false, got 1"),
        ('model = "mlp"', r"budget.toml: model stands in no table"),
        ("", r"budget.toml: no table"),
        ("[net", r"budget.toml: Expected"),
        (TABLE + TABLE, r"budget.toml: Cannot declare \('net',\) twice"),
    ],
)
def test_a_mistake_in_a_file_names_file_table_and_key_and_nothing_is_run(write, text, words, capsys, monkeypatch):
    monkeypatch.setattr(memory, "admit", lambda *_a, **_o: pytest.fail("run first"))
    path = write('[first]\nmodel = "mlp"\nbatch = 1\nlimit = "1 MiB"\n' * ("[net]" in text) + text)
    assert main(["admit", path]) == 2
    told = capsys.readouterr()
    assert re.search(words, told.err), told.err
    assert told.err.startswith("dlcourse: error: project/budget.toml")
    assert told.err.count("\n") == 1
    assert told.out == ""


def test_a_file_as_an_editor_of_windows_writes_it_is_read(tmp_path):
    (tmp_path / "budget.toml").write_bytes(b"\xef\xbb\xbf" + TABLE.replace("\n", "\r\n").encode())
    assert budget.read(tmp_path / "budget.toml")["net"].limit == MIB


def test_changes_that_save_nothing_together_are_not_listed():
    found = changes(mlp := Step(models.mlp(), (8, 8, 1), optim.Adam(), 60_000), memory.Admission(60_000, mlp.bill()))
    assert not any(one.fits or " and " in one.change for one in found)


def test_a_file_that_cannot_be_read_is_named(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe[")
    (tmp_path / "folder.toml").mkdir()
    for name in ("missing.toml", "bytes.toml", "folder.toml"):
        assert main(["admit", name]) == 2
        error = capsys.readouterr().err
        assert error.startswith(f"dlcourse: error: {name}: ") and error.count("\n") == 1


@pytest.mark.parametrize(
    "arguments",
    [
        *(["b.toml", "--budget", "1MiB"], ["b.toml", "--batch-size", "3"], ["b.toml", "--inference"]),
        *(["mlp", "--file", "b.toml"], [], ["mlp"], ["--budget", "1MiB"]),
    ],
)
def test_a_call_is_a_network_with_a_budget_or_a_file_alone(arguments, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["admit", *arguments])
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert "usage: dlcourse admit MODULE:FUNCTION --budget SIZE [options]" in error
    assert ("b.toml has models" if "b.toml" in arguments else "are required") in error


# What would fit.


def advised(step):
    verdict = memory.Admission(step.limit, step.bill())
    assert not verdict
    return {one.change.split()[0]: one for one in changes(step, verdict)}


CIFAR = Step(models.cifar_cnn(), (32, 32, 3), optim.Adam(), 40 * MIB)


def test_the_changes_come_in_the_order_of_their_harm_with_the_bytes_of_each():
    found = advised(CIFAR)
    assert list(found) == ["batch", "micro-batches", "Recompute", "8-bit"]
    assert [one.fits for one in found.values()] == [True, True, False, False]
    for name, key in (("batch", "batch_size"), ("micro-batches", "micro_batch")):
        size = int(re.search(r"\d+", found[name].change)[0])
        assert replace(CIFAR, **{key: size}).bill().peak == found[name].bytes <= 40 * MIB
        assert replace(CIFAR, **{key: size + 1}).bill().peak > 40 * MIB
    assert found["8-bit"].bytes == replace(CIFAR, optimizer=optim.Adam8bit()).bill().peak


def test_recomputation_is_what_fits_a_deep_network_on_one_sample():
    layers = [part for _ in range(32) for part in (L.Affine(64), L.ReLU())]
    step = Step(Sequential([*layers, L.Affine(10)]), (512, 64), optim.SGD(), 0, batch_size=1)
    plain = step.bill().peak
    found = advised(replace(step, limit=plain // 2))
    assert list(found) == ["Recompute"]
    assert found["Recompute"].fits


def test_slots_of_a_byte_are_what_fits_where_slots_are_most():
    step = Step(models.mlp((500, 500)), (8, 8, 1), optim.Adam(), 0, batch_size=1)
    peak = replace(step, optimizer=optim.Adam8bit()).bill().peak
    found = advised(replace(step, limit=peak))
    assert [name for name, one in found.items() if one.fits] == ["8-bit"]
    assert found["8-bit"].bytes == peak


def test_where_no_change_alone_fits_the_first_that_fits_together_is_the_last_line(capsys):
    found = list(advised(replace(CIFAR, limit=24 * MIB)).values())
    verdict = memory.Admission(24 * MIB, CIFAR.bill())
    every = changes(replace(CIFAR, limit=24 * MIB), verdict)
    assert [one.fits for one in every] == [False] * 4 + [True]
    assert every[-1].change == "batch 5 in place of 100 and 8-bit slots (Adam8bit in place of Adam)"
    assert len(found) == 4  # its name begins as that of another
    assert main(["admit", "cifar_cnn", "--budget", "10MiB"]) == 1
    assert "no change of these fits; the least is 22.4 MiB, 12.4 MiB over" in capsys.readouterr().out


def test_what_is_advised_is_admitted(capsys):
    assert main(["admit", "small_cnn", "--budget", "2MiB"]) == 1
    out = capsys.readouterr().out
    size = re.search(r"smallest change that would fit: batch (\d+) in place of 100", out)[1]
    assert main(["admit", "small_cnn", "--budget", "2MiB", "--batch-size", size]) == 0
    size = re.search(r"micro-batches of (\d+) in place of 100 +\S+ MiB  fits", out)[1]
    capsys.readouterr()
    assert main(["admit", "small_cnn", "--budget", "2MiB", "--micro-batch", size]) == 0


def test_a_run_that_took_more_than_its_bill_leaves_so_much_less_for_the_changes():
    step = replace(CIFAR, limit=100 * MIB)
    measured = memory.Admission(100 * MIB, step.bill(), step.bill().peak + 60 * MIB)
    assert max(one.bytes for one in changes(step, measured) if one.fits) <= 40 * MIB
    assert changes(step, memory.Admission(100 * MIB, step.bill(), problem="it was killed")) == []


def test_a_forward_pass_has_no_slots_and_nothing_to_recompute():
    assert set(advised(replace(CIFAR, inference=True, limit=10 * MIB))) <= {"batch", "micro-batches"}


def test_a_layer_that_cannot_be_recomputed_leaves_the_other_changes():
    class Plain:  # with the five methods, and not derived from Layer
        def init(self, in_shape, rng, dtype=np.float32):
            return {}

        def out_shape(self, in_shape):
            return in_shape

        def forward(self, params, x, *, train=False, rng=None):
            return x, None

        def backward(self, params, saved, dy, *, need_dx=True, overwrite_dy=False):
            return dy, {}

        def plan(self, in_shape, *, batch, dtype, train=True):
            return Plan(output_is_input=True, dx_is_dy=True)

    model = Sequential([L.Flatten(), L.Affine(50), Plain(), L.Affine(10)])
    found = advised(Step(model, (8, 8, 1), optim.Adam(), 70_000, batch_size=50))
    assert list(found)[:2] == ["batch", "micro-batches"] and "Recompute" not in found


def test_a_function_that_ends_the_process_is_not_an_admission(write, monkeypatch, capsys):
    write(GOOD)
    monkeypatch.chdir("project")
    assert main(["admit", "nets_of_mine:ends", "--budget", "1MiB"]) == 2
    assert capsys.readouterr().err == "dlcourse: error: the function ended the process\n"


def test_a_batch_beyond_all_machines_is_refused_and_no_error():
    found = advised(replace(CIFAR, batch_size=10**18))
    assert found["batch"].fits and not found["8-bit"].fits
