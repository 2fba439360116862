"""What is drawn while something runs: the dashboard of a training, the monitor of memory, and what they leave behind."""

import gc
import html
import os
import re
import signal
import sys
import threading
import tracemalloc
import weakref
from base64 import b64decode
from xml.etree import ElementTree

import nbformat
import numpy as np
import pytest
from helpers import blobs
from nbclient import NotebookClient

from dlcourse import layers as L
from dlcourse import memory, optim, tree, viz
from dlcourse.memory import Monitor
from dlcourse.model import Sequential
from dlcourse.train import History, Step, fit
from dlcourse.viz import Dashboard
from dlcourse.viz.live import Drawing

MODEL = Sequential([L.Conv2D(8, 3, padding=1), L.ReLU(), L.MaxPool2D(2), L.Flatten(), L.Affine(64), L.Affine(10)])
SHAPE = (32, 32, 3)


def train(*callbacks, epochs=2, model=MODEL, data=None, **more):
    """-> the history of a training on 60 samples, three steps an epoch."""
    params = model.init(SHAPE, np.random.default_rng(0))
    data = data or blobs(60, SHAPE)
    options = {"optimizer": optim.Adam(), "epochs": epochs, "batch_size": 20, "progress": False}
    return fit(model, params, data, callbacks=callbacks, **options | more)


def test_dashboard_measures_the_peak_that_the_bill_predicts():
    bill = memory.bill(MODEL, SHAPE, batch_size=20, optimizer=optim.Adam())
    with Dashboard(bill, every=0) as live:
        train(live)
    assert list(live.traced) == [2, 3, 4, 5, 6]
    for peak in live.traced.values():
        assert abs(peak - bill.peak) < max(64 * 1024, 0.02 * bill.peak)


def test_dashboard_measures_the_same_in_a_repeated_run():
    runs = []
    for _ in range(3):
        with Dashboard(every=0) as live:
            train(live)
        runs.append(live.traced)
    assert max(abs(runs[1][step] - runs[2][step]) for step in range(2, 7)) < 4096


def test_dashboard_traces_one_step_in_a_while_and_no_other():
    seen = []
    with Dashboard(every=60) as live:
        train(live, lambda step: seen.append(tracemalloc.is_tracing()))
    assert seen == [True, False, False, False, False, False]
    assert list(live.traced) == [2]


def test_dashboard_does_not_change_what_is_learned():
    plain = train()
    with Dashboard() as live:
        watched = train(live)
    assert plain.step_loss == watched.step_loss


def test_stop_ends_the_training_after_the_present_step():
    with Dashboard() as live:
        history = train(lambda step: live.stop() if step.step == 2 else None, live)
    assert len(history.step_loss) == 2
    assert history.stopped == "a callback ended it after step 2"
    assert "epoch 1, step 2 of 6: stopped" in next(text.get_text() for text in live.picture().axes[0].texts)


def test_a_dashboard_can_be_used_again_after_a_stop():
    live = Dashboard()
    for _ in range(2):
        with live:
            train(lambda step: live.stop() if step.step == 2 else None, live)
        assert len(live.resident) == 2
    with live:
        assert len(train(live).step_loss) == 6


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no signal that a process sends to itself")
def test_an_interrupt_ends_the_training_after_the_present_step_and_its_handler_is_put_back():
    before = signal.getsignal(signal.SIGINT)
    with Dashboard() as live:
        history = train(lambda step: os.kill(os.getpid(), signal.SIGINT) if step.step == 3 else None, live)
    assert len(history.step_loss) == 3
    assert signal.getsignal(signal.SIGINT) is before


def test_dashboard_cleans_up_after_an_error():
    def broken(step):
        raise RuntimeError("a callback that fails")

    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(RuntimeError, match="a callback that fails"), Dashboard() as live:
        train(live, broken)
    assert signal.getsignal(signal.SIGINT) is before
    assert not tracemalloc.is_tracing()
    assert live.picture()


def test_dashboard_leaves_the_peak_of_a_block_around_it_as_it_is():
    def large(step):
        if step.step == 2:
            bytearray(32 * 2**20)

    with memory.traced_peak() as traced, Dashboard(every=0) as live:
        train(large, live)
    assert 32 * 2**20 < traced.peak < 40 * 2**20


def test_dashboard_works_in_another_thread():
    seen = []

    def work():
        with Dashboard() as live:
            train(live)
        seen.append(len(live.resident))

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [6]


def test_dashboard_keeps_no_array_of_the_training():
    model, arrays = MODEL, []

    def watch(step):
        slots = {name: slot for name, slot in step.slots.items() if name != "step"}
        arrays.extend(weakref.ref(leaf) for leaf in tree.leaves([step.params, slots]))

    with Dashboard() as live:
        train(live, watch, epochs=1, model=model)
    live.picture()
    gc.collect()
    assert arrays and [ref for ref in arrays if ref() is not None] == []


def test_dashboard_outside_its_block_says_how_it_is_used():
    with pytest.raises(RuntimeError, match="with Dashboard"):
        Dashboard()(Step(1, 1, 1, 0.0, 0.0, {}, {}, History()))


def test_dashboard_without_a_step_has_no_picture():
    with Dashboard() as live:
        pass
    with pytest.raises(ValueError, match="nothing to draw"):
        live.picture()


TRAINING = [
    """
import numpy as np
import ipywidgets
from dlcourse import models, optim, datasets
from dlcourse.train import fit
from dlcourse.viz import Dashboard
data = datasets.digits().train
model = models.mlp()
known = len(ipywidgets.widgets.widget._instances)
""",
    """
params = model.init((8, 8, 1), np.random.default_rng(0))
with Dashboard(every=0.01) as live:
    button = live.button
    history = fit(model, params, data, optimizer=optim.Adam(), epochs=2, progress=False,
                  callbacks=[live, lambda step: button.click() if step.step == 9 else None])
""",
    """
import matplotlib.pyplot as plt
print(len(history.step_loss), len(ipywidgets.widgets.widget._instances) - known, plt.get_fignums())
""",
]


def run(folder, sources):
    """A notebook of these cells that has been run without a front end."""
    notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(source) for source in sources])
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": str(folder)}}).execute()
    return notebook


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    return run(tmp_path_factory.mktemp("kernel"), [TRAINING[0], TRAINING[1], TRAINING[1], TRAINING[2]])


def test_a_cell_with_a_dashboard_ends_as_one_picture_and_no_widget(trained):
    for cell in trained.cells[1:3]:
        (output,) = cell.outputs
        assert output.output_type == "display_data"
        assert set(output.data) == {"image/png", "text/plain"}
        assert output.data["text/plain"].startswith("Left the loss of each step")


def test_the_button_stops_the_training_and_no_widget_or_figure_is_left(trained):
    assert trained.cells[3].outputs[0].text == "10 0 []\n"


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
while live.monitor.samples[-1].kinds["held"] < 2**20 and time.monotonic() < until:
    time.sleep(0.02)
print(live.monitor.samples[-1].kinds["held"], live.monitor.running)
"""
BUTTON = """
button = live.button
button.click()
import ipywidgets
print(live.monitor.running, [w for w in ipywidgets.Widget.get_manager_state()["state"].values() if "Button" in w["model_name"]])
"""
BLOCK = "with viz.monitor({'held': held}, interval=0.02) as block:\n    time.sleep(0.1)"


@pytest.fixture(scope="module")
def watching(tmp_path_factory):
    """Its monitor is begun twice."""
    return run(tmp_path_factory.mktemp("monitor"), (FIRST, SHOWN, SHOWN, WORK, BUTTON, BLOCK))


def drawn(watched):
    """The SVG of what a monitor has seen, as it is shown."""
    shown = Drawing(watched)._repr_mimebundle_()["text/html"]
    return b64decode(re.search('base64,([^"]*)', shown)[1]).decode()


@pytest.mark.parametrize("cell", [1, 2, 5])
def test_a_cell_with_a_monitor_ends_as_one_picture_and_no_widget(watching, cell):
    (output,) = watching.cells[cell].outputs
    assert set(output.data) == {"text/html", "text/plain"}  # SVG by itself is not shown in a notebook without trust
    assert output.data["text/html"].startswith('<img src="data:image/svg+xml;base64,')
    assert "held" in output.data["text/plain"]


def test_it_samples_while_other_cells_run_and_the_button_ends_it(watching):
    assert watching.cells[3].outputs[0].text == f"{2**20} True\n"
    assert watching.cells[4].outputs[0].text == "False []\n"


@pytest.fixture
def watched():
    state = {}
    with Monitor(60, {"saved": state, "my <arrays>": np.zeros(3 * 2**17)}) as watched:
        for size in (10, 2**17, 50):
            state["x"] = np.zeros(size)
            watched._look()
    return watched


def test_a_line_for_each_kind_and_one_for_the_process_each_with_a_point_for_each_sample(watched):
    root = ElementTree.fromstring(drawn(watched))
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
    assert html.escape(alt) in Drawing(watched)._repr_mimebundle_()["text/html"]
    assert "my <arrays> reached 3.00 MiB" in alt
    assert "lower bounds" in alt


def test_names_and_sizes_beside_the_lines_stay_inside_the_drawing(watched):
    for text in ElementTree.fromstring(drawn(watched)).iter("{http://www.w3.org/2000/svg}text"):
        if text.get("text-anchor") == "start" and text.get("font-weight") is None and float(text.get("x")) > 100:
            longest = (
                len(text.text.split("process")[0] + "process 1023 KiB") if "process" in text.text else len(text.text)
            )
            assert float(text.get("x")) + 8 * longest <= 720, text.text  # letters 13 pixels high, at most 8 wide


def test_a_long_run_is_drawn_with_as_many_points_as_can_be_seen(watched):
    watched.samples = [watched.samples[0]] * 5000 + [watched.samples[-1]]
    assert drawn(watched).count(",") < 3 * 320


def test_outside_of_a_notebook_nothing_is_shown(capsys):
    with viz.monitor(interval=60, name="outside") as live:
        pass
    assert capsys.readouterr().out == ""
    assert not live.monitor.running
    assert len(live.monitor.table().lines) >= 3
