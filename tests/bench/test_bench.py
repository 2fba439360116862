"""The benchmark measures the same work on every side; seconds are not asserted."""

import ast
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from dlcourse import bench, models, viz
from dlcourse import layers as L
from dlcourse.__main__ import main
from dlcourse.bench import Case, growth, looks, run, table
from dlcourse.bench.cases import LAYERS
from dlcourse.bench.runner import operations
from dlcourse.bench.textbook import TextbookConv2D, textbook
from dlcourse.model import Sequential


@pytest.mark.parametrize("padding", [0, 1, (2, 0)])
def test_the_textbook_convolution_gives_the_same_numbers_as_ours(padding):
    rng = np.random.default_rng(0)
    x = rng.standard_normal((3, 7, 6, 2))
    ours, theirs = L.Conv2D(4, (3, 2), padding=padding), TextbookConv2D(4, (3, 2), padding=padding)
    params = ours.init((7, 6, 2), rng, np.float64)
    y, saved = ours.forward(params, x, train=True)
    z, kept = theirs.forward(params, x, train=True)
    np.testing.assert_allclose(y, z, rtol=1e-12)
    dy = rng.standard_normal(y.shape)
    for a, b in zip(_flat(ours.backward(params, saved, dy)), _flat(theirs.backward(params, kept, dy)), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-10, atol=1e-12)


def _flat(result):
    dx, grads = result
    return [dx, grads["W"], grads["b"]]


def test_the_textbook_convolution_refuses_what_it_cannot_do():
    with pytest.raises(ValueError, match="stride 1"):
        textbook(Sequential([L.Conv2D(4, 3, stride=2)]))


def test_the_textbook_network_keeps_columns_and_ours_does_not():
    model = models.cifar_cnn()
    naive = textbook(model)
    rng = np.random.default_rng(0)
    x = rng.standard_normal((2, 32, 32, 3), dtype=np.float32)
    _, saved = naive.forward(naive.init((32, 32, 3), rng), x, train=True, rng=rng)
    columns = saved["textbookconv2d_2"][0]
    assert columns.nbytes == 9 * (2 * 32 * 32 * 32 * 4)


def test_a_step_of_the_story_has_15_9_billion_operations_at_batch_100():
    assert operations(Case("step", "cifar_cnn", 100)) == pytest.approx(15.9e9, rel=0.01)


def test_every_side_runs_in_turn_and_reports_seconds_and_peaks():
    (results,) = run([Case("step", "mlp", 100)], rounds=3, threads=1)
    assert [one.side for one in results] == ["dlcourse", "textbook"]
    for one in results:
        assert len(one.seconds) == 3
        assert 0 < one.grown < one.resident
        assert 0 < one.traced < one.resident
        assert one.side in table(results)
    assert "step mlp 100" in viz.seconds_against_bytes([results]).alt


def test_a_side_that_dies_is_an_error_and_not_a_wait(tmp_path):
    broken = tmp_path / "python"
    broken.write_text("#!/bin/sh\nexit 3\n")
    broken.chmod(0o755)
    with pytest.raises(OSError, match="code 3"):
        next(run([Case("step", "mlp", 100)], rounds=1, threads=1, torch_python=str(broken), textbook=False))


def test_a_case_that_is_not_there_is_one_line_with_those_that_are(capsys):
    assert main(["bench", "--only", "resnet"]) == 1
    assert "step cifar_cnn 100" in capsys.readouterr().err


def test_json_holds_every_side(capsys):
    assert main(["bench", "--only", "inference mlp", "--rounds", "2", "--threads", "1", "--json"]) == 0
    measured = json.loads(capsys.readouterr().out)
    assert {one["side"] for one in measured["results"]} == {"dlcourse", "textbook"}
    assert measured["threads"] == 1


def test_a_layer_alone_has_the_operations_of_forward_and_both_gradients():
    assert operations(Case("layer", "conv2d 32 to 32", 100)) == 3 * 2 * 100 * 32 * 32 * 9 * 32 * 32
    assert operations(Case("layer", "relu", 100)) == 0


def test_the_textbook_takes_part_where_its_convolution_does():
    assert "textbook" in Case("layer", "conv2d 64 to 64", 100).sides
    assert "textbook" not in Case("layer", "relu", 100).sides
    (results,) = run([Case("layer", "max pooling", 30)], rounds=2, threads=2)
    assert [one.side for one in results] == ["dlcourse"]
    assert "floor" not in table(results)


def test_pytorchs_side_knows_the_same_layers_in_its_own_layout():
    source = Path(torch_worker_file()).read_text(encoding="utf-8")
    found = {
        name: ast.literal_eval(shape)
        for name, shape in re.findall(r'^    "(.+?)": \(.*?, (\(\d[\d, ]*\))\),$', source, re.MULTILINE)
    }
    assert found == {
        name: (*shape[-1:], *shape[:-1]) if len(shape) > 1 else shape for name, (_, shape) in LAYERS.items()
    }


def torch_worker_file():
    return Path(bench.__file__).with_name("torch_worker.py")


def test_an_epoch_is_the_arithmetic_of_500_steps():
    assert operations(Case("epoch", "cifar_cnn", 100)) == 500 * operations(Case("step", "cifar_cnn", 100))


def test_a_line_through_points_on_one_is_found_with_a_share_of_1():
    at_zero, slope, share = growth.line([1.0, 2.0, 4.0], [5.0, 7.0, 11.0])
    assert (at_zero, slope, share) == pytest.approx((3, 2, 1))
    assert growth.line([1.0, 2.0, 3.0], [1.0, 4.0, 9.0])[2] < 0.99


def test_bytes_grow_in_straight_lines_and_as_the_bill_predicts(monkeypatch):
    monkeypatch.setattr(growth, "SIDE", 16)
    small = [replace(axis, values=axis.values[:3]) for axis in growth.AXES]
    monkeypatch.setattr(growth, "AXES", small)
    for axis, sizes in growth.grow(rounds=1):
        for one in sizes:
            assert one.traced == pytest.approx(one.predicted, rel=0.1 if axis.name == "workers" else 0.02, abs=2**16)
        if len(sizes) > 2:
            x = [axis.quantity(one.value) for one in sizes]
            assert growth.line(x, [float(one.traced) for one in sizes])[2] > 0.99, axis.name
            assert f"bytes against {axis.against}" in growth.growth_table(axis, sizes)


def test_growth_is_a_command(monkeypatch, capsys):
    monkeypatch.setattr(growth, "AXES", growth.AXES[-1:])
    assert main(["bench", "--growth", "--rounds", "1", "--json"]) == 0
    assert [one["value"] for one in json.loads(capsys.readouterr().out)["growth"]] == [1, 2]


def test_what_the_monitor_costs_is_a_command(monkeypatch, capsys):
    # On a quiet machine a sample takes 6 ms at most, and all of them less than 1 % of a processor.
    monkeypatch.setattr(looks, "SECONDS", 1.5)
    assert main(["bench", "--monitor", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["workers"] == 4
    assert 0 < found["mean_ms"] <= found["most_ms"] < 100
    assert found["per_cent"] < 10
    assert main(["bench", "--monitor"]) == 0
    assert "% of a processor's time" in capsys.readouterr().out
