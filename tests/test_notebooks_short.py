"""The short way through a notebook, its cells tagged `short`: it runs alone and takes the minutes that the head says."""

import re

import nbformat
import pytest
from test_teaching import reading_minutes

from notebooks import code_cells, kernel, paths, tags

SHORT = [path for path in paths() if any("short" in tags(cell) for cell in nbformat.read(path, as_version=4).cells)]


@pytest.fixture(params=SHORT, ids=[path.stem for path in SHORT])
def way(request: pytest.FixtureRequest) -> tuple:
    notebook = nbformat.read(request.param, as_version=4)
    notebook.cells = [cell for cell in notebook.cells if "short" in tags(cell)]
    return request.param, notebook


def test_a_notebook_that_names_a_short_way_has_one_and_the_other_way_round():
    named = [path for path in paths() if "**The short way**" in nbformat.read(path, as_version=4).cells[0].source]
    assert named == SHORT


@pytest.mark.timeout(300)
def test_it_runs_alone_from_its_first_cell_to_its_last(way):
    path, notebook = way
    with kernel(notebook, path) as client:
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)  # raises CellExecutionError
    assert len(code_cells(notebook)) >= 10


def test_it_takes_the_minutes_that_the_head_says_and_has_the_question_and_its_answer(way):
    _, notebook = way
    said = re.search(r"\*\*The short way\*\*,\s+about (\d+) minutes", notebook.cells[0].source)
    assert said and abs(int(said[1]) - (minutes := reading_minutes(notebook))) < 0.1 * minutes
    text = "\n".join(cell.source for cell in notebook.cells)
    assert "## The question about memory" in text and "**The answer to the question.**" in text
