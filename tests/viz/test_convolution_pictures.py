import numpy as np
import pytest

from dlcourse.viz.convolution import MARK, bytes_and_seconds, duration, grids, window_places


def words(picture):
    return [text.get_text() for text in picture.axes[0].texts]


def filled(picture):
    return [patch for patch in picture.axes[0].patches if patch.get_facecolor()[:3] == pytest.approx(rgb(MARK))]


def rgb(colour):
    return tuple(int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5))


def test_grids_show_each_number_and_fill_what_is_marked():
    x = np.arange(6.0).reshape(2, 3)
    drawn = grids({"x": x, "y": np.array([[1.5]])}, "A finding", "for x", marked={"x": x > 3})
    assert words(drawn) == ["A finding", "for x", "x", "0", "1", "2", "3", "4", "5", "y", "1.5"]
    assert len(filled(drawn)) == 2
    assert drawn.alt == "A finding. Arrays as rows of cells: x [[0.0, 1.0, 2.0], [3.0, 4.0, 5.0]]; y [[1.5]]."
    assert drawn.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("wrong", [np.zeros(3), np.zeros((2, 25)), np.zeros((1, 2, 3))])
def test_grids_refuse_what_they_cannot_draw(wrong):
    with pytest.raises(ValueError, match="two axes"):
        grids({"x": wrong}, "nothing")


@pytest.mark.parametrize(
    ("window", "finding"),
    [
        ((5, 2, 2, 0), "2 places, the last pixel is met by none"),
        ((16, 7, 3, 2), "5 places"),  # what is left over there is padding
        ((8, 3, 5, 0), "2 places"),
        ((9, 3, 4, 0), "2 places, the last 2 are met by none"),
        ((4, 4, 1, 0), "1 place"),
    ],
)
def test_places_of_a_window_say_which_pixels_are_left_over(window, finding):
    drawn = window_places(*window)
    assert words(drawn)[0] == finding
    assert finding in drawn.alt
    assert drawn.png().startswith(b"\x89PNG")


@pytest.mark.parametrize("window", [(3, 5, 1, 0), (23, 3, 1, 1)])
def test_places_of_a_window_refuse_what_does_not_fit(window):
    with pytest.raises(ValueError, match="fits"):
        window_places(*window)


@pytest.mark.parametrize("joined", [False, True])
def test_bytes_and_seconds_are_said_in_words_too(joined):
    drawn = bytes_and_seconds({"loops": (2**20, 0.5), "blocks": (2**16, 0.0012)}, "One answer", joined=joined)
    assert drawn.axes[0].get_title(loc="left") == "One answer"
    assert drawn.alt == "One answer. A point for each: loops 1.00 MiB and 500 ms; blocks 64.0 KiB and 1.2 ms."
    assert drawn.png().startswith(b"\x89PNG")


def test_one_point_is_drawn_too():
    assert bytes_and_seconds({"only": (1000, 0.001)}, "One").png().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("seconds", "text"), [(2.5, "2.5 s"), (12.3, "12 s"), (0.0164, "16 ms"), (0.9996, "1.0 s"), (3e-5, "30 µs")]
)
def test_duration_takes_the_unit_that_suits(seconds, text):
    assert duration(seconds) == text


@pytest.mark.parametrize("seconds", [(0.015, 0.03), (6e-5, 0.07), (0.001, 0.0011), (2.0, 900.0)])
def test_the_axis_of_seconds_has_three_marks_or_more_where_there_is_room(seconds):
    drawn = bytes_and_seconds({"a": (2**20, seconds[0]), "b": (2**16, seconds[1])}, "Two")
    labels = [label.get_text() for label in drawn.axes[0].get_xticklabels()]
    assert 2 <= len(labels) <= 10
    assert len(set(labels)) == len(labels)
