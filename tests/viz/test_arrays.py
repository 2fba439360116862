import numpy as np
import pytest
from matplotlib.text import Text

from dlcourse.viz.arrays import places, sizes, strip

MEMORY = np.arange(12, dtype=np.float32)
GRID = MEMORY.reshape(3, 4)


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
    drawn = strip(MEMORY, {"columns": GRID.T[1:3]})
    assert "columns: cells 1, 5, 9, 2, 6, 10" in drawn.alt
    (axes,) = drawn.axes
    cells = {round((box.get_x() - 3.3) / 0.42): box.get_facecolor()[:3] for box in axes.patches}
    assert [cell for cell, colour in cells.items() if colour != (1, 1, 1)] == [1, 2, 5, 6, 9, 10]


def test_strip_says_what_is_a_copy_and_what_is_seen_many_times():
    drawn = strip(MEMORY, {"copy": GRID.copy(), "spread": np.broadcast_to(MEMORY[:2], (6, 2))})
    words = [text.get_text() for text in drawn.axes[0].texts]
    assert "copy: a copy" in drawn.alt
    assert "a copy: it has memory of its own" in words
    assert words.count("6×") == 2


@pytest.mark.parametrize("wrong", [np.zeros(25), np.zeros(0), np.zeros((4, 4))[:, ::2]])
def test_strip_refuses_what_it_cannot_draw(wrong):
    with pytest.raises(ValueError, match="1 to 24 elements"):
        strip(wrong, {"x": wrong})


def test_sizes_have_bars_as_long_as_their_bytes():
    drawn = sizes({"one": 2**20, "three": 3 * 2**20}, "Three is more")
    assert [bar.get_width() for bar in drawn.axes[0].patches] == [1, 3]
    assert drawn.axes[0].get_xlabel() == "MiB"
    assert drawn.alt == "Three is more. A bar for each: one 1.00 MiB; three 3.00 MiB."


def test_bytes_made_before_are_a_pale_bar_behind_the_row_s_own():
    drawn = sizes({"a": 3 * 2**20, "b": 0}, "One is pale", before={"b": 2 * 2**20})
    own, none, pale = drawn.axes[0].patches
    assert (own.get_width(), none.get_width(), pale.get_x(), pale.get_width()) == (3, 0, 0, 2)
    assert pale.get_facecolor() != own.get_facecolor()
    assert drawn.alt == "One is pale. A bar for each: a 3.00 MiB; b 0 B, and 2.00 MiB made before."


def test_sizes_with_marks_keep_their_axis():
    for factor in (1, 1000):
        drawn = sizes({"a": 4096 * factor, "b": 8192}, "Sizes", chosen="b", marks={"here": 2**30}, up_to=2**36)
        assert drawn.axes[0].get_xlim() == (2**10, 2**36)
        first, second = (bar.get_facecolor() for bar in drawn.axes[0].patches)
        assert first != second


@pytest.mark.parametrize(
    ("bytes_", "more"),
    [
        (2**34, {"marks": {"here": 2**31}, "up_to": 2**38}),
        (2**37, {"marks": {"here": 2**31}, "up_to": 2**40}),
        (2**10, {"marks": {"here": 2**31}, "up_to": 2**40}),
        (2**26, {}),
        (2**26, {"before": {"a long name of a row": 2**24}, "up_to": 2**27}),
    ],
)
def test_text_of_sizes_stays_inside_the_picture(bytes_, more):
    drawn = sizes({"a long name of a row": bytes_}, "One", "of a kind", **more)
    drawn.draw_without_rendering()
    edge = drawn.bbox
    for text in [child for child in drawn.axes[0].get_children() if isinstance(child, Text) and child.get_text()]:
        box = text.get_window_extent()
        assert edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= box.y0 and box.y1 <= edge.y1, text
