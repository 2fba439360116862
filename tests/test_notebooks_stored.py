"""What is stored in the notebooks. nbval passes over a cell that was never run, so the stored outputs are tested here."""

import getpass
import json
import platform
import re
from itertools import pairwise
from pathlib import Path

import nbformat
import pytest

from notebooks import COMPARED, ROOT, WIDGET_VIEW, code_cells, paths, tags

PATHS = paths()
LONGEST = 15  # lines of a code cell
PLACES = re.compile(r"/(home|root|Users|usr|tmp|opt|work|private|var|mnt)/|\b[A-Z]:\\\\|site-packages|\.venv\b")
ADDRESS = re.compile(r"\b0x[0-9a-fA-F]{6,}")
LINK = re.compile(r"\]\(([^)#\s]+)[^)]*\)")


@pytest.fixture(params=PATHS, ids=[path.stem for path in PATHS])
def notebook(request: pytest.FixtureRequest) -> nbformat.NotebookNode:
    return nbformat.read(request.param, as_version=4)


def texts(notebook: nbformat.NotebookNode) -> list[tuple[int, str]]:
    """(number of the code cell, text) of all that is stored as an output, pictures apart."""
    found = []
    for number, cell in enumerate(code_cells(notebook), 1):
        for output in cell.outputs:
            data = {kind: value for kind, value in output.get("data", {}).items() if kind != "image/png"}
            stored = [output.get("text", ""), output.get("evalue", ""), *output.get("traceback", []), *data.values()]
            found += [(number, text if isinstance(text, str) else json.dumps(text)) for text in stored if text]
    return found


def test_the_course_starts_at_notebook_00():
    assert PATHS and PATHS[0].name == "00_start_here.ipynb"


def test_names_are_two_digits_and_a_slug():
    assert [path.name for path in PATHS if not re.fullmatch(r"\d\d_[a-z0-9_]+\.ipynb", path.name)] == []


def test_every_code_cell_was_run_once_from_top_to_bottom(notebook):
    cells = code_cells(notebook)
    assert [cell.execution_count for cell in cells] == list(range(1, len(cells) + 1))
    assert [number for number, cell in enumerate(cells, 1) if not cell.source.strip()] == []


def test_an_error_is_stored_only_where_the_cell_is_meant_to_raise(notebook):
    raised = [any(output.output_type == "error" for output in cell.outputs) for cell in code_cells(notebook)]
    assert raised == ["raises-exception" in tags(cell) for cell in code_cells(notebook)]


def test_no_output_names_the_machine_that_made_it(notebook):
    names = [str(ROOT), str(Path.home()), platform.node(), getpass.getuser()]
    here = [name for name in names if len(name) > 4 and name not in ("localhost", "runner")]
    found = [
        (number, text[:200])
        for number, text in texts(notebook)
        if PLACES.search(text)
        or ADDRESS.search(text)
        or any(re.search(rf"\b{re.escape(name)}\b", text) for name in here)
    ]
    assert found == []


def test_no_warning_is_stored(notebook):
    assert [(number, text[:200]) for number, text in texts(notebook) if re.search(r"\w*Warning\b", text)] == []


def test_no_widget_state_is_stored(notebook):
    assert "widgets" not in notebook.metadata
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    assert [output for output in outputs if WIDGET_VIEW in output.get("data", {})] == []


def test_metadata_is_what_the_make_target_writes(notebook):
    assert set(notebook.metadata) <= {"dlcourse", "kernelspec", "language_info"}
    assert notebook.metadata.kernelspec.name == "python3"
    assert [cell.id for cell in notebook.cells] == [f"cell-{index:03d}" for index in range(len(notebook.cells))]
    assert [cell.id for cell in notebook.cells if "execution" in cell.metadata] == []


def test_most_cells_with_an_output_are_compared(notebook):
    with_text = [
        cell
        for cell in code_cells(notebook)
        if any(output.output_type != "display_data" or set(output.data) & set(COMPARED) for output in cell.outputs)
    ]
    compared = [cell for cell in with_text if "nbval-ignore-output" not in tags(cell)]
    assert not with_text or len(compared) >= 0.6 * len(with_text)


def test_a_trailing_semicolon_does_not_hide_a_result_that_nbval_would_see(notebook):
    assert [number for number, cell in enumerate(code_cells(notebook), 1) if cell.source.rstrip().endswith(";")] == []


def test_links_go_only_to_files_that_exist(notebook):
    sources = [cell.source for cell in notebook.cells if cell.cell_type == "markdown"]
    links = [link for source in sources for link in LINK.findall(source)]
    inside = [link for link in links if not re.match(r"[a-z]+:", link)]
    assert [link for link in inside if not (ROOT / "notebooks" / link).exists()] == []


def test_it_has_one_title(notebook):
    lines = [line for cell in notebook.cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    assert len([line for line in lines if line.startswith("# ")]) == 1


def test_it_asks_for_three_predictions_or_more(notebook):
    asked = {name for cell in code_cells(notebook) for name in re.findall(r'predict\("([\w.]+)"', cell.source)}
    compared = {name for cell in code_cells(notebook) for name in re.findall(r'compare\(\s*"([\w.]+)"', cell.source)}
    assert len(asked) >= 3
    assert asked == compared


def test_a_prediction_is_answered_in_sight(notebook):
    """compare() shows its table only as what a cell ends with, or in print or display."""
    cells = [cell for cell in code_cells(notebook) if re.search(r"(?m)^compare\(", cell.source)]
    shown = ["".join(str(output.get("data", {}).get("text/plain", "")) for output in cell.outputs) for cell in cells]
    assert [cell.source for cell, text in zip(cells, shown, strict=True) if "your prediction" not in text] == []


def test_it_has_something_to_play_with(notebook):
    assert [cell for cell in code_cells(notebook) if "widget" in tags(cell)]


def test_every_picture_has_an_alternative_text(notebook):
    outputs = [output for cell in code_cells(notebook) for output in cell.outputs]
    pictures = [output for output in outputs if "image/png" in output.get("data", {})]
    alternatives = [output.metadata.get("image/png", {}).get("alt", "") for output in pictures]
    assert pictures and all(len(text) > 20 for text in alternatives)


def test_no_level_of_heading_is_skipped(notebook):
    texts = [
        re.sub(r"```.*?```", "", cell.source, flags=re.DOTALL)
        for cell in notebook.cells
        if cell.cell_type == "markdown"
    ]
    levels = [len(found) for text in texts for found in re.findall(r"^(#{1,6}) ", text, re.MULTILINE)]
    assert [pair for pair in pairwise(levels) if pair[1] > pair[0] + 1] == []


def test_it_closes_with_what_it_cost(notebook):
    headings = [line for cell in notebook.cells if cell.cell_type == "markdown" for line in cell.source.splitlines()]
    assert [line for line in headings if re.match(r"## .*(?i:cost)", line)]
    assert [line for line in headings if re.match(r"## .*(?i:know now)", line)]


def test_a_cell_is_short(notebook):
    long = [(number, len(cell.source.splitlines())) for number, cell in enumerate(code_cells(notebook), 1)]
    assert [(number, lines) for number, lines in long if lines > LONGEST] == []
