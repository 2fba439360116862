import numpy as np
import pytest
from matplotlib.text import Text

from dlcourse.viz.normalization import groups, losses, running, shared_statistics, through_layers

WAYS = {"axis 0": (0,), "BatchNorm": (0, 1, 2), "LayerNorm": (3,)}


@pytest.mark.parametrize("over", [*WAYS.values(), (1, 2), (1, 2, 3)])
def test_numbers_of_one_group_are_those_that_a_mean_takes_together(over):
    shape = (2, 3, 2, 4)
    x = np.random.default_rng(0).standard_normal(shape)
    means = np.broadcast_to(x.mean(axis=over, keepdims=True), shape)
    numbers = groups(shape, over)
    for group in range(numbers.max() + 1):
        inside = numbers == group
        assert np.allclose(x[inside].mean(), means[inside])


def test_shared_statistics_has_a_panel_a_way_and_says_how_many_groups():
    drawn = shared_statistics((2, 2, 2, 2), WAYS, "Three answers", "2 pictures")
    assert [len(panel.patches) for panel in drawn.axes] == [16, 16, 16]
    assert "BatchNorm: 2 groups of 8 numbers" in drawn.alt
    assert "LayerNorm: 8 groups of 2 numbers" in drawn.alt
    colours = {square.get_facecolor() for square in drawn.axes[1].patches}
    assert len(colours) == 2


def test_through_layers_has_a_logarithmic_line_for_each_network_and_one_for_the_normalized():
    drawn = through_layers({"large": [1, 10, 100], "small": [1, 0.1, 0.01]}, "Apart", normalized=[1, 1, 1])
    (axes,) = drawn.axes
    assert axes.get_yscale() == "log" and len(axes.lines) == 3
    assert "large ends at 1e+02; small ends at 0.01" in drawn.alt


def test_running_shows_points_the_line_that_follows_and_the_true_one():
    drawn = running([1.0, 3.0], [0.5, 1.5], [2.0, 2.0], "It follows", span=(-1, 4))
    points, true, line = drawn.axes[0].lines
    assert (
        list(points.get_ydata()) == [1, 3] and list(true.get_ydata()) == [2, 2] and list(line.get_ydata()) == [0.5, 1.5]
    )
    assert drawn.axes[0].get_ylim() == (-1, 4)
    assert "ends at 1.50, the right one at 2.00" in drawn.alt


def test_losses_are_means_of_steps_and_a_training_that_stopped_has_no_curve():
    curves = {"none": [], "BatchNorm": [2.0, 1.0, 0.0], "LayerNorm": [1.0, 1.0, 1.0]}
    drawn = losses({"scale 1": curves}, "One stops", "a small network", smooth=2)
    none, batch_norm, layer_norm = drawn.axes[0].lines
    assert len(none.get_xdata()) == 0
    assert list(batch_norm.get_ydata()) == [1.5, 0.5] and list(batch_norm.get_xdata()) == [2, 3]
    assert list(layer_norm.get_ydata()) == [1, 1]
    assert "scale 1, none: stopped" in drawn.alt and "scale 1, BatchNorm: 0.50" in drawn.alt


@pytest.mark.parametrize(
    "drawn",
    [
        shared_statistics((2, 2, 2, 2), WAYS, "One mean a pixel, a channel, a position", "2 pictures of 2 × 2"),
        through_layers({"scale 0.3": [1, 2e-4]}, "Sizes", "8 layers", normalized=[1, 1]),
        running([1.0, 3.0], [0.5, 1.5], [2.0, 2.0], "It follows", "8 values a channel"),
        losses({"scale 1": {"none": [1.0] * 20}}, "Losses", "8 layers"),
    ],
    ids=["groups", "layers", "running", "losses"],
)
def test_the_title_is_the_finding_and_all_text_stays_inside(drawn):
    drawn.draw_without_rendering()
    inside = [child for axes in drawn.axes for child in axes.get_children() if isinstance(child, Text)]
    assert drawn.alt.split(".")[0] in [drawn.get_suptitle().strip(), *(text.get_text() for text in inside)]
    for text in [*drawn.texts, *(text for text in inside if text.get_text())]:
        box = text.get_window_extent()
        assert drawn.bbox.x0 <= box.x0 and box.x1 <= drawn.bbox.x1 and box.y1 <= drawn.bbox.y1, text
