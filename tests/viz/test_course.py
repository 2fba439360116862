import pytest

from dlcourse import viz
from dlcourse.viz.course import PARTS


def test_parts_hold_every_notebook_once():
    numbers = [number for _, first, last, _ in PARTS for number in range(first, last + 1)]
    assert numbers == list(range(30))


@pytest.mark.parametrize("here", [0, 11, 29])
def test_the_map_says_where_a_notebook_is(here):
    picture = viz.course_map(here)
    assert picture.png(1).startswith(b"\x89PNG")
    assert f"This is notebook {here:02d}" in picture.alt


def test_text_stays_inside_its_card():
    picture = viz.course_map(0)
    (axes,) = picture.axes
    picture.canvas.draw()
    cards = [patch.get_window_extent() for patch in axes.patches if hasattr(patch, "get_boxstyle")]
    for text in axes.texts:
        box = text.get_window_extent()
        assert any(c.x0 <= box.x0 and box.x1 <= c.x1 and c.y0 <= box.y0 and box.y1 <= c.y1 for c in cards), text


def test_notebooks_that_are_not_written_are_dotted_and_those_of_the_folder_are_found(tmp_path, monkeypatch):
    def dotted(picture):
        circles = [patch for patch in picture.axes[0].patches if not hasattr(patch, "get_boxstyle")]
        return [number for number, circle in enumerate(circles) if circle.get_linestyle() in (":", "dotted")]

    monkeypatch.chdir(tmp_path)
    assert dotted(viz.course_map(0)) == []  # a copy of one notebook somewhere else says nothing about the course
    for number in range(28):
        (tmp_path / f"{number:02d}_name.ipynb").touch()
    assert dotted(viz.course_map(0)) == [28, 29]
    assert dotted(viz.course_map(0, {0, 1, 2})) == list(range(3, 30))
