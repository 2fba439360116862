"""The page for teachers goes with the notebooks and their exercises."""

import re

import nbformat
import pytest

from dlcourse.exercises.unit import NOTEBOOKS, of_notebook
from notebooks import ROOT, exercise_cells, paths

TEXT = (ROOT / "TEACHING.md").read_text(encoding="utf-8")
NAMES = ("Outcomes", "Misconceptions", "Questions for discussion", "When time is short", "Figures")
SECTIONS = {
    found[1]: found[2]
    for found in re.finditer(r"^## (\d\d)\. .+?\n(.*?)(?=^## \d\d|\Z)", TEXT, re.MULTILINE | re.DOTALL)
}


def test_each_notebook_has_a_section_in_order():
    assert list(SECTIONS) == [path.stem[:2] for path in paths()]


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_a_section_says_what_a_teacher_needs(number):
    section = SECTIONS[number]
    for word in ("**Minutes:** ", *(f"### {name}\n" for name in NAMES)):
        assert word in section, word
    assert len(re.findall(r"^\d\. ", section, re.MULTILINE)) >= 3  # questions with answers
    for exercise in of_notebook(number):
        assert exercise.id in section


def reading_minutes(notebook: nbformat.NotebookNode) -> float:
    """Minutes to read and run, by the model that TEACHING.md states."""
    texts = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    codes = [cell.source for cell in notebook.cells if cell.cell_type == "code"]
    words, lines = sum(len(text.split()) for text in texts), sum(len(re.findall(r"(?m)\S.*$", code)) for code in codes)
    asked = len(re.findall(r"(?m)^predict\(", "\n".join(codes)))
    return words / 140 + lines / 9 + len(notebook.cells) / 6 + 1.5 * asked + 3 * "".join(texts).count("*Try it.*")


@pytest.mark.parametrize("path", paths(), ids=lambda path: path.stem)
def test_the_minutes_are_those_of_the_stated_model_at_the_head_and_here(path):
    notebook = nbformat.read(path, as_version=4)
    reading = reading_minutes(notebook)
    reckoned = reading, reading + 15 * len(exercise_cells(notebook))
    head = re.search(r"about (\d+) minutes to read and run \((\d+) with all\s+exercises", notebook.cells[0].source)
    here = re.search(r"(\d+) to read and run, (\d+) with all exercises", SECTIONS[path.stem[:2]])
    assert head and here and head.groups() == here.groups()
    assert all(abs(int(said) - minutes) < 0.1 * minutes for said, minutes in zip(head.groups(), reckoned, strict=True))
