"""The page for teachers goes with the notebooks and their exercises."""

import re

import pytest

from dlcourse.exercises.unit import NOTEBOOKS, of_notebook
from notebooks import ROOT, paths

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
