"""Each form with ordinary and with odd input: what is drawn, what is said in words, and that text stays in the picture."""

import itertools
import math

import matplotlib
import numpy as np
import pytest

from dlcourse import viz
from dlcourse.train import History
from dlcourse.units import binary
from dlcourse.viz.cells import places
from dlcourse.viz.style import Picture, duration, short

NAME = "a name that is rather long for a picture of this width"
SHORT = "a finding of some length, as titles have it in the course"
HISTORY = History(
    step_loss=[3.0, 2.0, 1.0, 1.0, 0.8, 0.6],
    epochs=[
        {"epoch": 1, "loss": 2.0, "val_loss": 1.5, "val_accuracy": 0.5, "seconds": 1.0},
        {"epoch": 2, "loss": 0.8, "val_loss": 0.9, "val_accuracy": 0.75, "seconds": 1.0},
    ],
)

ODD = {
    "lines of nothing": lambda: viz.lines({}, "nothing"),
    "a line without a point": lambda: viz.lines({"none": []}, "no point"),
    "a line of one point": lambda: viz.lines({"one": [3.0]}, SHORT, NAME, log="xy"),
    "a line that is nowhere finite": lambda: viz.lines({"nan": [math.nan] * 3, "inf": [math.inf] * 3}, SHORT, log="y"),
    "a line of huge and tiny numbers": lambda: viz.lines({"huge": [1e-300, 1e300], "zero": [0, 0]}, SHORT, log="y"),
    "many lines with one end": lambda: viz.lines({f"line {n}": [1, 2.0] for n in range(8)}, SHORT, "c"),
    "bars of nothing": lambda: viz.bars({}, "nothing"),
    "one bar of no byte": lambda: viz.bars({"none": 0}, SHORT),
    "a bar of all bytes": lambda: viz.bars({NAME[:30]: 2**62, "b": 1}, SHORT, "of a kind"),
    "parts of nothing": lambda: viz.bars({"a": {"x": 0, "y": 0}, "b": {}}, SHORT),
    "parts beside each other": lambda: viz.bars({"a": {"x": -5, "y": 2**40}}, SHORT, beside=True),
    "a bar beyond the marks": lambda: viz.bars(
        {"a": 2**45}, SHORT, "c", marks={"Binder": 2**31, "story": 2**34}, up_to=2**46
    ),
    "cells of nothing": lambda: viz.cells({"none": np.zeros((0, 0))}, "nothing"),
    "one cell": lambda: viz.cells({"one": np.array([[1e9]])}, SHORT, "c"),
    "cells with a long name": lambda: viz.cells({NAME: np.zeros((2, 24))}, SHORT + SHORT, "c", down=True),
    "cells of infinities": lambda: viz.cells({"x\n(1, 2)": np.array([[-np.inf, np.nan]])}, "c", tones=False),
    "one image": lambda: viz.images(np.zeros((1, 8, 8, 1), np.uint8), [5], SHORT),
    "images beyond 0 to 1": lambda: viz.images([np.full((4, 4), 7.0), np.full((4, 4, 3), -1.0)], columns=1),
    "a matrix of one": lambda: viz.matrix(np.zeros((1, 1)), SHORT, rows=["a"], columns=[NAME[:20]]),
    "a matrix of huge counts": lambda: viz.matrix(np.diag([10**5, 0]), SHORT, "c"),
    "one point": lambda: viz.points({"one": (1, 1e-6)}, SHORT),
    "points far apart": lambda: viz.points({"a": (1, 1e-7), "b": (2**50, 1e3)}, SHORT, "c"),
    "points with one time": lambda: viz.points({f"{n}": (2**n, 1.0) for n in range(1, 9)}, SHORT, "c", joined=True),
    "a training without a step": lambda: viz.curves(History()),
    "a training of one step": lambda: viz.curves(History([math.nan], [])),
}


@pytest.mark.parametrize("odd", ODD)
def test_odd_input_is_drawn_with_words_beside_it_and_leaves_nothing_behind(odd):
    import matplotlib.pyplot as plt

    before = dict(matplotlib.rcParams)
    drawn = ODD[odd]()
    assert isinstance(drawn, Picture) and len(drawn.alt) > 3
    assert drawn.png(1).startswith(b"\x89PNG")
    assert plt.get_fignums() == []
    assert dict(matplotlib.rcParams) == before


def texts(picture):
    """What is written in it, but for the numbers of the axes."""
    found = [*picture.texts, *(text for axes in picture.axes for text in (*axes.texts, axes.title, axes._left_title))]
    legends = [*picture.legends, *(axes.get_legend() for axes in picture.axes if axes.get_legend())]
    found += [text for legend in legends for text in legend.get_texts()]
    found += [label for axes in picture.axes for label in (axes.xaxis.label, axes.yaxis.label)]
    return [text for text in found if text.get_text().strip()]


@pytest.mark.parametrize("odd", [odd for odd in ODD if "huge and tiny" not in odd])  # its axis has no room for a tick
def test_text_stays_inside_the_picture(odd):
    drawn = ODD[odd]()
    drawn.draw_without_rendering()
    edge = drawn.bbox
    for text in texts(drawn):
        box = text.get_window_extent()
        assert edge.x0 - 1 <= box.x0 and box.x1 <= edge.x1 + 1, text
        assert edge.y0 - 1 <= box.y0 and box.y1 <= edge.y1 + 1, text


# Lines.


def test_a_line_leaves_out_what_is_not_finite_or_not_positive_on_a_logarithmic_axis():
    drawn = viz.lines({"a": [1.0, math.inf, 0.0, 4.0]}, "A", log="y")
    assert np.isfinite(drawn.axes[0].lines[0].get_ydata()).tolist() == [True, False, False, True]
    assert drawn.alt == "A. A line for each: a: from 1 to 4."


@pytest.mark.parametrize("log", ["", "y"])
def test_names_at_the_ends_of_lines_do_not_lie_on_each_other(log):
    drawn = viz.lines({"one": [1, 10.0], "two": [1, 10.1], "three": [1, 10.2], "far": [1, 1000.0]}, "A", log=log)
    drawn.draw_without_rendering()
    names = [text for text in drawn.axes[0].texts if text.get_text()]
    boxes = sorted((text.get_window_extent() for text in names), key=lambda box: box.y0)
    assert len(boxes) == 4
    assert all(lower.y1 <= upper.y0 + 1 for lower, upper in itertools.pairwise(boxes))


def test_a_line_that_leaves_the_axis_has_its_name_where_it_was_seen_last():
    drawn = viz.lines({"a": [1, 2, 300.0]}, "A", limits=(0, 10))
    assert [text.xy[0] for text in drawn.axes[0].texts if text.get_text() == "a"] == [2]


def test_panels_have_the_titles_of_their_lines_and_the_words_of_all():
    figure, panels = viz.picture(1, 2)
    for axes, name in zip(panels, ("left", "right"), strict=True):
        assert viz.lines({"y": ([0, 5], [1, 2])}, name, on=axes) is figure
    assert [axes.get_title(loc="left") for axes in panels] == ["left", "right"]
    assert figure.alt == "left. A line for each: y: from 1 to 2. right. A line for each: y: from 1 to 2."


def test_curves_put_the_mean_over_its_epoch_and_validation_at_its_end():
    loss, accuracy = viz.curves(HISTORY).axes
    (means,) = loss.collections
    assert [line.tolist() for line in means.get_segments()] == [[[0, 2], [3, 2]], [[3, 0.8], [6, 0.8]]]
    steps, checked = loss.lines
    assert steps.get_ydata().tolist() == HISTORY.step_loss
    assert checked.get_xydata().tolist() == [[3, 1.5], [6, 0.9]]
    titles = [axes.get_title(loc="left") for axes in (loss, accuracy)]
    assert titles == ["The loss goes from 3.00 to 0.60", "Accuracy ends at 75.0%"]


def test_curves_of_a_training_that_was_stopped_within_an_epoch_keep_the_length_of_an_epoch():
    losses = [3.0, 2.0, 1.0, 1.0, 0.8, 0.6, 0.5, 0.5]
    loss = viz.curves(History(losses, HISTORY.epochs, stopped="a callback ended it after step 8")).axes[0]
    assert loss.collections[0].get_segments()[-1].tolist() == [[3, 0.8], [6, 0.8]]


@pytest.mark.parametrize("epochs", [[], [{"epoch": 1, "loss": 2.0, "val_loss": 2.5, "val_accuracy": None}]])
def test_curves_without_accuracy_show_the_loss_alone(epochs):
    assert len(viz.curves(History([3.0, 2.0, 1.0], epochs)).axes) == 1


def test_curves_show_the_first_loss_and_every_point_whole():
    history = History([9.0] + [1.0] * 299, [HISTORY.epochs[0] | {"val_loss": 0.0, "val_accuracy": 1.0}] * 3)
    loss, accuracy = viz.curves(history).axes
    assert loss.get_ylim()[0] < 0 and loss.get_ylim()[1] > 9
    assert accuracy.get_ylim()[0] < 0 and accuracy.get_ylim()[1] > 100


@pytest.mark.parametrize(("epochs", "ticks"), [(1, [1]), (6, [1, 2, 3, 4, 5, 6]), (20, list(range(2, 21, 2)))])
def test_curves_number_at_most_ten_epochs(epochs, ticks):
    _, accuracy = viz.curves(History([1.0] * epochs, HISTORY.epochs[:1] * epochs)).axes
    assert accuracy.get_xticks().tolist() == ticks


# Bars.


def test_bars_are_as_long_as_their_bytes():
    drawn = viz.bars({"one": 2**20, "three": 3 * 2**20}, "Three is more")
    assert [bar.get_width() for bar in drawn.axes[0].patches] == [1, 3]
    assert drawn.axes[0].get_xlabel() == "MiB"
    assert drawn.alt == "Three is more. A bar for each: one 1.00 MiB; three 3.00 MiB."


def test_parts_stand_one_behind_the_other_or_beside_each_other():
    rows = {"a": {"made": 2**20, "before": 2**21}}
    ends = [bar.get_x() + bar.get_width() for bar in viz.bars(rows, "A").axes[0].patches]
    beside = [bar.get_x() + bar.get_width() for bar in viz.bars(rows, "A", beside=True).axes[0].patches]
    assert (ends, beside) == ([1, 3], [1, 2])
    assert viz.bars(rows, "A").alt == "A. A bar for each: a made 1.00 MiB, before 2.00 MiB."


def test_marks_say_their_bytes_and_keep_the_axis():
    for factor in (1, 1000):
        marks = {"Binder": 2 * 2**30, "story": 16 * 2**30}
        drawn = viz.bars({"a": 4096 * factor, "b": 8192}, "Sizes", chosen="b", marks=marks, up_to=2**40)
        (axes,) = drawn.axes
        assert axes.get_xlim() == (2**10, 2**40)
        words = [text.get_text().strip() for text in axes.texts]
        assert "Binder, 2 GiB" in words and "story, 16 GiB" in words
        drawn.draw_without_rendering()
        one, other = (text.get_window_extent() for text in axes.texts if "GiB" in text.get_text())
        assert not one.overlaps(other)
        first, second = (bar.get_facecolor() for bar in axes.patches)
        assert first != second


# Cells.

MEMORY = np.arange(12, dtype=np.float32)
GRID = MEMORY.reshape(3, 4)


def test_cells_write_each_number_fill_what_is_marked_and_leave_out_nan():
    x = np.array([[0.0, -1.0, np.nan], [2.5, 4.0, -np.inf]])
    drawn = viz.cells({"x\n(2, 3)": x}, "A finding", "for x", marked={"x\n(2, 3)": x > 3})
    assert [text.get_text() for text in drawn.axes[0].texts] == ["x", "(2, 3)", "0", "−1", "2.5", "4", "−∞", ""]
    assert [patch.get_alpha() or patch.get_facecolor()[3] for patch in drawn.axes[0].patches] == [0, 0, 0, 1, 0]
    assert drawn.alt.startswith("A finding. for x. Arrays as rows of cells: x (2, 3) [[0.0, -1.0, nan]")


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((2, 25)), np.zeros((1, 2, 3))])
def test_cells_refuse_what_they_cannot_draw(wrong):
    with pytest.raises(ValueError, match="two axes"):
        viz.cells({"x": wrong}, "nothing")


@pytest.mark.parametrize("itemsize", ["uint8", "float32", "float64"])
@pytest.mark.parametrize(
    "look",
    [
        lambda x: x,
        lambda x: x[1],
        lambda x: x[:, 2],
        lambda x: x.T,
        lambda x: x[::-1, ::2],
        lambda x: x[1, 2],
        lambda x: np.broadcast_to(x[0], (5, 4)),
        lambda x: x[:0],
    ],
)
def test_places_are_the_elements_that_a_view_sees_in_its_order(look, itemsize):
    memory = np.arange(12, dtype=itemsize)  # each element holds its own place
    view = np.asarray(look(memory.reshape(3, 4)))
    if not np.shares_memory(memory, view):  # a number, or nothing
        view = look(memory.reshape(3, 4)[..., None])
    assert places(memory, view).tolist() == view.ravel().tolist()


def test_strip_numbers_the_cells_in_the_order_of_the_view():
    drawn = viz.strip(MEMORY, {"columns": GRID.T[1:3]})
    assert "columns: cells 1, 5, 9, 2, 6, 10" in drawn.alt
    filled = [cell for cell, patch in enumerate(drawn.axes[0].patches) if patch.get_facecolor()[3]]
    assert filled == [1, 2, 5, 6, 9, 10]


def test_strip_says_what_is_a_copy_and_what_is_seen_many_times():
    drawn = viz.strip(MEMORY, {"copy": GRID.copy(), "spread": np.broadcast_to(MEMORY[:2], (6, 2))})
    words = [text.get_text() for text in drawn.axes[0].texts]
    assert "copy: a copy" in drawn.alt
    assert "a copy: it has memory of its own" in words
    assert words.count("6×") == 2


@pytest.mark.parametrize("wrong", [np.zeros(25), np.zeros(0), np.zeros((4, 4))[:, ::2]])
def test_strip_refuses_what_it_cannot_draw(wrong):
    with pytest.raises(ValueError, match="1 to 24 elements"):
        viz.strip(wrong, {"x": wrong})


# Images and matrices.


def test_images_stand_under_their_captions_in_rows():
    x = np.random.default_rng(0).integers(0, 256, (12, 8, 8, 3), np.uint8)
    drawn = viz.images(x, [*range(11)], columns=5)
    assert [axes.get_title() for axes in drawn.axes] == [*map(str, range(11)), "", "", "", ""]
    np.testing.assert_array_equal(drawn.axes[3].images[0].get_array(), x[3])
    assert drawn.alt == "12 pictures: 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, ."


def test_integers_are_ink_and_floats_are_light():
    ink, light = (viz.images([image]).axes[0].images[0] for image in (np.uint8([[255]]), np.array([[1.0]])))
    assert ink.to_rgba(255)[0] == 0 and light.to_rgba(1.0)[0] == 1


def test_no_image_no_point_and_no_matrix_are_refused():
    with pytest.raises(ValueError, match="no image"):
        viz.images([])
    with pytest.raises(ValueError, match="no point"):
        viz.points({}, "nothing")
    with pytest.raises(ValueError, match=r"got shape \(3,\)"):
        viz.matrix(np.zeros(3))


def test_a_matrix_writes_what_is_not_0_and_fills_by_the_share_of_its_row():
    drawn = viz.matrix(np.array([[4, 2], [0, 0]]), "A", rows=["a", "b"], columns=["c", "d"])
    assert [text.get_text() for text in drawn.axes[0].texts if text.get_text()] == ["4", "2"]
    assert drawn.axes[0].images[0].get_array()[..., 3].tolist() == [[1, 0.5], [0, 0]]


# Points.


def test_points_stand_at_their_seconds_and_bytes():
    drawn = viz.points({"a": (2**20, 0.01), "b": (2**24, 0.5)}, "A")
    assert [line.get_xydata().tolist() for line in drawn.axes[0].lines] == [[[0.01, 2**20]], [[0.5, 2**24]]]
    assert drawn.alt == "A. A point for each: a 1.00 MiB and 10 ms; b 16.0 MiB and 500 ms."


def test_the_line_that_joins_points_runs_through_no_name():
    drawn = viz.points({f"{n}": (2**n, 0.01 + 0.002 * (n % 3)) for n in range(10, 17)}, "A", joined=True)
    drawn.draw_without_rendering()
    (axes,) = drawn.axes
    right = axes.transData.transform((max(axes.lines[0].get_xdata()), 2**10))[0]
    assert min(text.get_window_extent().x0 for text in axes.texts if text.get_text()) > right


@pytest.mark.parametrize(
    ("seconds", "words"), [(0.0164, "16 ms"), (2, "2 s"), (1.54, "1.5 s"), (3.2e-6, "3.2 µs"), (1.0, "1 s")]
)
def test_durations_have_two_digits(seconds, words):
    assert duration(seconds) == words


def test_round_bytes_are_short():
    assert [short(count) for count in (2**31, 3 * 2**19, 1)] == ["2 GiB", "1.5 MiB", "1 B"]
    assert binary(2**31) == "2.00 GiB"
