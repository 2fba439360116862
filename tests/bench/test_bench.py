"""The benchmark measures the same work on every side; seconds are not asserted."""

import json

import numpy as np
import pytest

from dlcourse import layers as L
from dlcourse import models, viz
from dlcourse.__main__ import main
from dlcourse.bench import Case, run, table
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
