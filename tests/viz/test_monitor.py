"""The live monitor: its drawing, and what it leaves in a notebook."""

from xml.etree import ElementTree

import nbformat
import numpy as np
import pytest
from nbclient import NotebookClient

from dlcourse import viz
from dlcourse.memory import Monitor
from dlcourse.viz.monitor import Drawing

FIRST = """
import time
from dlcourse import viz
held = {}
"""
SHOWN = "live = viz.monitor({'held': held}, interval=0.02)\nlive"
WORK = """
import numpy as np
held["x"] = np.ones(2**17)
until = time.monotonic() + 20
while live.samples[-1].kinds["held"] < 2**20 and time.monotonic() < until:
    time.sleep(0.02)
print(live.samples[-1].kinds["held"], live.monitor.running)
"""
BUTTON = """
button = live._shown[2][1]
button.click()
import ipywidgets
print(live.monitor.running, [w for w in ipywidgets.Widget.get_manager_state()["state"].values() if "Button" in w["model_name"]])
"""
BLOCK = "with viz.monitor({'held': held}, interval=0.02) as block:\n    time.sleep(0.1)"


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A notebook that has been run without a front end; its monitor is begun twice."""
    cells = [nbformat.v4.new_code_cell(source) for source in (FIRST, SHOWN, SHOWN, WORK, BUTTON, BLOCK)]
    notebook = nbformat.v4.new_notebook(cells=cells)
    path = str(tmp_path_factory.mktemp("monitor"))
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": path}}).execute()
    return notebook


@pytest.mark.parametrize("cell", [1, 2, 5])
def test_a_cell_with_a_monitor_ends_as_one_picture_and_no_widget(notebook, cell):
    (output,) = notebook.cells[cell].outputs
    assert set(output.data) == {"image/svg+xml", "text/plain"}
    assert "held" in output.data["text/plain"]


def test_it_samples_while_other_cells_run_and_the_button_ends_it(notebook):
    assert notebook.cells[3].outputs[0].text == f"{2**20} True\n"
    assert notebook.cells[4].outputs[0].text == "False []\n"


@pytest.fixture
def watched():
    state = {}
    with Monitor(60, {"saved": state, "my <arrays>": np.zeros(3 * 2**17)}) as watched:
        for size in (10, 2**17, 50):
            state["x"] = np.zeros(size)
            watched._look()
    return watched


def test_a_line_for_each_kind_and_one_for_the_process_each_with_a_point_for_each_sample(watched):
    root = ElementTree.fromstring(Drawing(watched).svg)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 3
    assert lines[0].get("stroke") == viz.COLOURS["saved"]
    assert len({line.get("stroke") for line in lines}) == 3
    points = [[float(y) for _, y in (point.split(",") for point in line.get("points").split())] for line in lines]
    assert {len(line) for line in points} == {len(watched.samples)}
    bottom, of_a_mib = points[0][0], points[0][0] - points[0][2]
    assert of_a_mib > 0
    assert bottom - points[1][0] == pytest.approx(3 * of_a_mib, abs=0.3)


def test_the_drawing_says_in_words_what_it_shows_and_that_peaks_are_lower_bounds(watched):
    alt = Drawing(watched).alt
    assert "my <arrays> reached 3.00 MiB" in alt
    assert "lower bounds" in alt


def test_a_long_run_is_drawn_with_as_many_points_as_can_be_seen(watched):
    watched.samples = [watched.samples[0]] * 5000 + [watched.samples[-1]]
    assert Drawing(watched).svg.count(",") < 3 * 320


def test_outside_of_a_notebook_nothing_is_shown(capsys):
    with viz.monitor(interval=60, name="outside") as live:
        pass
    assert capsys.readouterr().out == ""
    assert not live.monitor.running
    assert len(live.table().lines) >= 3
