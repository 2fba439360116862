import itertools

import matplotlib
import numpy as np
import pytest

from dlcourse import layers as L
from dlcourse import memory, models, optim, viz
from dlcourse.memory import KINDS
from dlcourse.model import Sequential
from dlcourse.units import binary
from dlcourse.viz.style import COLOURS, Picture, unit

PICTURES = [viz.bill, viz.timeline]

# Linear RGB as it looks without one kind of cone: Machado, Oliveira and Fernandes 2009, severity 1.
SIGHT = {
    "usual": np.eye(3),
    "no red cones": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "no green cones": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "no blue cones": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}


@pytest.fixture(scope="module")
def cifar():
    return memory.bill(models.cifar_cnn(), (32, 32, 3), batch_size=100, optimizer=optim.Adam())


def lab(linear_rgb):
    """CIE L*a*b* (white D65), in which a distance of 2 is just seen."""
    to_xyz = np.array([[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]])
    ratio = to_xyz @ np.clip(linear_rgb, 0, 1) / [0.9505, 1, 1.089]
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


@pytest.mark.parametrize("sight", SIGHT)
def test_colours_of_kinds_can_be_told_apart(sight):
    seen = {}
    for kind, colour in COLOURS.items():
        rgb = np.array(matplotlib.colors.to_rgb(colour))
        linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
        seen[kind] = lab(SIGHT[sight] @ linear)
    for one, other in itertools.combinations(seen, 2):
        assert np.linalg.norm(seen[one] - seen[other]) > 20, (one, other)


def test_every_kind_of_the_bill_has_a_colour():
    assert set(KINDS) <= set(COLOURS)


def test_timeline_names_the_peak_in_its_title(cifar):
    picture = viz.timeline(cifar)
    (axes,) = picture.axes
    assert picture.get_suptitle().strip() == f"The peak of {binary(cifar.peak)} is reached in {cifar.peak_at}"
    assert axes.get_ylabel() == "MiB alive"


def test_timeline_draws_every_moment_to_its_height(cifar):
    (axes,) = viz.timeline(cifar).axes
    tops = np.zeros(len(cifar.moments))
    for bar in axes.patches:
        place = round(bar.get_x() + bar.get_width() / 2)
        tops[place] = max(tops[place], bar.get_y() + bar.get_height())
    np.testing.assert_allclose(tops * 2**20, [moment.total for moment in cifar.moments])


def test_bill_draws_every_row_to_its_length(cifar):
    (axes,) = viz.bill(cifar).axes
    names = [label.get_text() for label in axes.get_yticklabels()]
    ends = dict.fromkeys(range(len(names)), 0.0)
    for bar in axes.patches:
        place = round(bar.get_y() + bar.get_height() / 2)
        ends[place] = max(ends[place], bar.get_x() + bar.get_width())
    rows = {row.name: sum(getattr(row, kind) for kind in (*KINDS, "buffers")) for row in cifar.rows}
    assert names == [name for name, total in rows.items() if total]
    np.testing.assert_allclose([ends[i] * 2**20 for i in range(len(names))], [rows[name] for name in names])


def test_bill_says_that_workspace_is_not_a_sum(cifar):
    labels = [text.get_text() for text in viz.bill(cifar).legends[0].get_texts()]
    assert f"workspace, at most {binary(max(row.workspace for row in cifar.rows))} in one call" in labels
    assert f"saved {binary(cifar.total('saved'))}" in labels


@pytest.mark.parametrize("draw", PICTURES)
def test_picture_is_shown_once_with_words_beside_it(draw, cifar):
    picture = draw(cifar)
    assert isinstance(picture, Picture)
    data, metadata = picture._repr_mimebundle_()
    assert set(data) == {"image/png", "text/plain"}
    assert data["text/plain"] == metadata["image/png"]["alt"] == picture.alt
    assert "conv2d_1" in picture.alt or "peak" in picture.alt


@pytest.mark.parametrize("draw", PICTURES)
def test_drawing_leaves_no_open_figure_and_no_setting_behind(draw, cifar):
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    draw(cifar).png(1)
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize("draw", PICTURES)
def test_the_same_bill_gives_the_same_picture_to_the_byte(draw, cifar):
    assert draw(cifar).png(1) == draw(cifar).png(1)


@pytest.mark.parametrize("draw", PICTURES)
def test_a_single_layer_without_parameters_or_optimizer_is_drawn(draw):
    bill = memory.bill(Sequential([L.Flatten()]), (2, 2, 1), batch_size=1)
    assert draw(bill).png(1).startswith(b"\x89PNG")


def test_buffers_and_workers_are_told():
    model = Sequential([L.Conv2D(8, 3), L.BatchNorm(), L.ReLU(), L.Flatten(), L.Affine(3)])
    bill = memory.bill(model, (8, 8, 1), batch_size=8, micro_batch=2, workers=2, optimizer=optim.Momentum())
    picture = viz.bill(bill)
    assert "buffers 64 B" in [text.get_text() for text in picture.legends[0].get_texts()]
    assert any("2 workers" in text.get_text() for text in picture.texts)


def test_bills_drawn_up_to_the_same_bytes_have_the_same_axis():
    bills = [memory.bill(models.small_cnn(), (8, 8, 1), batch_size=size) for size in (10, 100)]
    first, second = [viz.bill(bill, up_to=3 * 2**20).axes[0] for bill in bills]
    assert first.get_xlim() == second.get_xlim()
    assert first.get_xlabel() == second.get_xlabel() == "MiB"


def test_unit_of_an_axis_is_the_largest_that_fits():
    assert [unit(n)[1] for n in (0, 1023, 1024, 2**20, 3 * 2**30)] == ["B", "B", "KiB", "MiB", "GiB"]
