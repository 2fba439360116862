import numpy as np
import pytest
from matplotlib.text import Text

from dlcourse.viz.pooling import pooled, versions

X = np.array([[0.0, 1, 2], [3, 9, 4], [5, 6, 7]])
OVERLAP = {"kernel": 2, "stride": 1, "finding": "The centre won all four"}


def words(axes):
    return [text.get_text() for text in axes.texts]


def test_pooled_says_which_pixel_won_how_many_windows():
    drawn = pooled(X, np.full((2, 2), 9.0), 4 * (X == 9), **OVERLAP, circumstances="stride 1")
    left, right = drawn.axes
    assert left.get_title(loc="left") == "The centre won all four"
    assert drawn.alt.startswith("The centre won all four. 3 × 3 pixels, windows of 2 × 2, stride 1, padding 0: 2 × 2")
    assert drawn.alt.endswith("Windows won: 9 won 4.")
    assert words(left).count("4×") == 1
    assert words(right).count("9") == 4


def test_a_pixel_is_darker_the_more_windows_it_won():
    wins = np.array([[0, 1, 0], [0, 3, 0], [2, 0, 0]])
    drawn = pooled(X, np.zeros((2, 2)), wins, **OVERLAP)
    light = [sum(box.get_facecolor()[:3]) for box in drawn.axes[0].patches[:9]]
    assert light[0] == 3  # white: it won nothing
    assert light[4] < light[6] < light[1] < 3


def test_padding_is_drawn_as_cells_that_are_no_pixels():
    drawn = pooled(X, np.zeros((2, 2)), np.ones((3, 3), int), kernel=3, stride=2, padding=1, finding="Padded")
    assert words(drawn.axes[0]).count("−∞") == 5 * 5 - 9


def test_pooled_refuses_an_image_whose_cells_hold_no_number():
    with pytest.raises(ValueError, match="8×8"):
        pooled(np.zeros((9, 2)), np.zeros((8, 1)), np.zeros((9, 2)), **OVERLAP)


def test_versions_share_one_scale_and_say_their_means():
    drawn = versions({"all": np.full((2, 4), 3.0), "half": np.ones((1, 2))}, "Smaller", "one draw")
    assert drawn.alt == "Smaller. all: 2 × 4, mean 3.00; half: 1 × 2, mean 1.00."
    assert {axes.images[0].get_clim() for axes in drawn.axes} == {(0, 3)}
    assert drawn.axes[1].get_xlabel() == "1 × 2, mean 1.00"
    assert drawn.get_suptitle() == "Smaller"


@pytest.mark.parametrize("padding", [0, 2])
def test_text_of_pooled_stays_inside_the_picture(padding):
    x = np.arange(64.0).reshape(8, 8) + 100
    drawn = pooled(x, x, np.ones((8, 8), int), kernel=4, stride=1, padding=padding, finding="Wide")
    drawn.draw_without_rendering()
    edge = drawn.bbox
    for text in [child for axes in drawn.axes for child in axes.get_children() if isinstance(child, Text)]:
        box = text.get_window_extent()
        if text.get_text():
            assert edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= box.y0 and box.y1 <= edge.y1, text
