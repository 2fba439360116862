"""The frontier: bytes as predicted, the line of 18 MiB, the floor, and the stored table. Seconds are not asserted."""

import json
from pathlib import Path

import pytest

from dlcourse import layers as L
from dlcourse import models, optim
from dlcourse.__main__ import main
from dlcourse.bench import frontier

MIB = 2**20
STORED = Path(frontier.__file__).with_name("frontier.json")
BY_NAME = {one.name: one for one in frontier.TECHNIQUES}
SMALL = "8-bit slots, factors, micro-batches of 4"
SMALLEST = "8-bit slots, factors, bits, strips, micro-batches of 2"


def test_each_technique_is_predicted_within_2_percent_and_8_bit_slots_fit_18_and_16_mib():
    names = ["plain Adam", "recompute, blocks of 6 layers", "bits and halves", "columns in strips", SMALL, SMALLEST]
    points = {one.name: one for one in frontier.measure([BY_NAME[name] for name in names], rounds=0)}
    for one in points.values():
        assert one.measured == pytest.approx(one.predicted, rel=0.02), one.name
    assert points[SMALL].measured <= 18.0 * MIB
    assert points[SMALLEST].measured <= 16.0 * MIB
    assert 85 * MIB < points["plain Adam"].measured < 86 * MIB


def test_the_floor_is_14_8_mib_and_no_technique_with_8_bit_slots_is_below_it():
    floor = frontier.floor(models.cifar_cnn(), frontier.IN_SHAPE, frontier.BATCH, optim.Adam8bit())
    P = 2_168_362
    slots = 2 * P + 8 * sum(
        -(-size // 256) for size in (864, 32, 9216, 32, 18432, 64, 36864, 64, 2097152, 512, 5120, 10)
    )
    assert floor == 4 * P + slots + 4 * 100 * (4096 + 512) + 4 * (P - 4096 * 512) + 2 * 4 * 32**3
    assert f"{floor / MIB:.1f}" == "14.8"


def test_a_technique_changes_the_layers_that_it_names():
    model = BY_NAME[SMALLEST].of(models.small_cnn())
    assert model.names == models.small_cnn().names
    assert {type(layer) for layer in model.layers} == {L.Conv2D, L.Packed, L.MaxPool2D, L.Flatten, L.Affine}
    assert {layer.strip for layer in model.layers if isinstance(layer, L.Conv2D)} == {frontier.STRIP}
    blocks = BY_NAME["recompute, blocks of 6 layers"].of(models.cifar_cnn()).layers
    assert [len(block.layers) for block in blocks if isinstance(block, L.Recompute)] == [6, 6]


def test_the_stored_table_is_in_form_and_shows_what_the_course_says():
    stored = json.loads(STORED.read_text())
    assert (stored["batch"], stored["epochs"], stored["seeds"]) == (frontier.BATCH, frontier.EPOCHS, frontier.SEEDS)
    points = {one["name"]: frontier.Point(**one) for one in stored["points"]}
    assert list(points) == list(BY_NAME)
    for one in points.values():
        assert one.measured == pytest.approx(one.predicted, rel=0.02)
        assert one.seconds > 0
        assert one.accuracy.keys() == (frontier.DATA.keys() if BY_NAME[one.name].trained else set())
    plain = points["plain Adam"]
    assert points[SMALL].seconds <= 1.5 * plain.seconds
    for data, share in plain.accuracy.items():
        assert abs(points[SMALL].accuracy[data] - share) <= 0.01, data
    assert SMALL in str(frontier.table(list(points.values())))


def test_the_frontier_is_a_command(capsys, monkeypatch):
    monkeypatch.setattr(frontier, "accuracy", lambda technique, name: 0.5)
    assert main(["bench", "frontier", "--only", "Adafactor, factors", "--rounds", "1", "--accuracy"]) == 0
    text = capsys.readouterr().out
    assert "plain Adam" in text and "Adafactor, factors" in text and "50.00%" in text and "recompute" not in text
    assert main(["bench", "frontier", "--growth"]) == 1
    assert "it has no --picture, --growth" in capsys.readouterr().err


def test_accuracy_is_the_mean_over_the_seeds(monkeypatch):
    monkeypatch.setattr(frontier, "DATA", {"digits": frontier.DATA["digits"]})
    both = [frontier.accuracy(BY_NAME["plain Adam"], "digits", seeds=seeds, epochs=1) for seeds in (1, 2)]
    assert 0.5 < both[0] < 1 and 0.5 < both[1] < 1
