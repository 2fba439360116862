import gc
import os
import signal
import sys
import threading
import tracemalloc
import weakref
from types import SimpleNamespace

import nbformat
import numpy as np
import pytest
from helpers import blobs
from nbclient import NotebookClient

from dlcourse import layers as L
from dlcourse import memory, optim, tree
from dlcourse.model import Sequential
from dlcourse.train import History, Step, fit
from dlcourse.viz.style import Picture
from dlcourse.viz.training import Dashboard, confusion, curves, filters, pictures

NAMES = tuple("abcdefghij")
MODEL = Sequential([L.Conv2D(8, 3, padding=1), L.ReLU(), L.MaxPool2D(2), L.Flatten(), L.Affine(64), L.Affine(10)])
SHAPE = (32, 32, 3)


def train(*callbacks, epochs=2, model=MODEL, data=None, **more):
    """-> the history and the bytes of params and slots."""
    params = model.init(SHAPE, np.random.default_rng(0))
    data = data or blobs(60, SHAPE)
    options = {"optimizer": optim.Adam(), "epochs": epochs, "batch_size": 20, "progress": False}
    return fit(model, params, data, callbacks=callbacks, **options | more)


def texts(figure):
    return [ax.get_title(loc="left") for ax in figure.axes]


@pytest.fixture
def split():
    return SimpleNamespace(**vars(blobs(30, SHAPE)), class_names=NAMES)


HISTORY = History(
    step_loss=[3.0, 2.0, 1.0, 1.0, 0.8, 0.6],
    epochs=[
        {"epoch": 1, "loss": 2.0, "val_loss": 1.5, "val_accuracy": 0.5, "seconds": 1.0},
        {"epoch": 2, "loss": 0.8, "val_loss": 0.9, "val_accuracy": 0.75, "seconds": 1.0},
    ],
)


def test_curves_say_where_loss_and_accuracy_end():
    assert texts(curves(HISTORY)) == ["The loss goes from 3.00 to 0.60", "Validation accuracy ends at 75.0%"]


def test_curves_put_the_mean_over_its_epoch_and_validation_at_its_end():
    loss = curves(HISTORY).axes[0]
    (means,) = loss.collections
    assert [line.tolist() for line in means.get_segments()] == [[[0, 2], [3, 2]], [[3, 0.8], [6, 0.8]]]
    steps, checked = loss.lines
    assert steps.get_ydata().tolist() == HISTORY.step_loss
    assert checked.get_xydata().tolist() == [[3, 1.5], [6, 0.9]]


def test_curves_of_a_training_that_was_stopped_within_an_epoch_keep_the_length_of_an_epoch():
    losses = [3.0, 2.0, 1.0, 1.0, 0.8, 0.6, 0.5, 0.5]
    loss = curves(History(losses, HISTORY.epochs, stopped="a callback ended it after step 8")).axes[0]
    assert loss.collections[0].get_segments()[-1].tolist() == [[3, 0.8], [6, 0.8]]


@pytest.mark.parametrize("epochs", [[], [{"epoch": 1, "loss": 2.0, "val_loss": 2.5, "val_accuracy": None}]])
def test_curves_without_accuracy_show_the_loss_alone(epochs):
    assert len(curves(History([3.0, 2.0, 1.0], epochs)).axes) == 1


def test_curves_show_the_first_loss_and_every_point_whole():
    history = History([9.0] + [1.0] * 299, [HISTORY.epochs[0] | {"val_loss": 0.0, "val_accuracy": 1.0}] * 3)
    loss, accuracy = curves(history).axes
    assert loss.get_ylim()[0] < 0 and loss.get_ylim()[1] > 9
    assert accuracy.get_ylim()[0] < 0 and accuracy.get_ylim()[1] > 100


@pytest.mark.parametrize("epochs, ticks", [(1, [1]), (6, [1, 2, 3, 4, 5, 6]), (20, list(range(2, 21, 2)))])
def test_curves_number_at_most_ten_epochs(epochs, ticks):
    _, accuracy = curves(History([1.0] * epochs, HISTORY.epochs[:1] * epochs)).axes
    assert accuracy.get_xticks().tolist() == ticks


def test_curves_of_an_empty_history_are_drawn():
    assert curves(History()).png(1).startswith(b"\x89PNG")


def test_pictures_stand_under_the_names_of_their_classes(split):
    figure = pictures(split, 12, columns=5)
    shown = [ax.get_title() for ax in figure.axes]
    assert len(figure.axes) == 15
    assert shown[:12] == [NAMES[label] for label in split.y[:12]]
    assert shown[12:] == [""] * 3
    np.testing.assert_array_equal(figure.axes[3].images[0].get_array(), split.x[3])


def test_pictures_take_captions_and_grey_images_and_no_more_than_there_are():
    split = SimpleNamespace(**vars(blobs(2, (8, 8, 1))), class_names=())
    figure = pictures(split, 20, captions=["star\nnot moon", "heart"])
    assert [ax.get_title() for ax in figure.axes] == ["star\nnot moon", "heart"]
    assert pictures(split).axes[0].get_title() == str(split.y[0])


def test_pictures_of_nothing_are_refused(split):
    with pytest.raises(ValueError, match="n is 0"):
        pictures(split, 0)


def test_confusion_names_the_most_frequent_mistake_and_the_accuracy():
    figure = confusion(np.array([[5, 0, 0], [0, 3, 2], [1, 0, 4]]), ("ring", "moon", "star"))
    assert texts(figure) == ["Most often: moon taken for star, 2 times"]
    written = [text.get_text() for text in figure.axes[0].texts]
    assert sorted(written, key=len)[:5] == ["5", "3", "2", "1", "4"]
    assert any(text.startswith("12 of 15 right (80.0%)") for text in written)


def test_confusion_without_mistakes_and_with_an_empty_class_is_drawn():
    assert texts(confusion(np.diag([3, 0]))) == ["No mistake"]


@pytest.mark.parametrize("wrong", [np.zeros(3, int), np.zeros((2, 3), int)])
def test_confusion_must_be_square(wrong):
    with pytest.raises(ValueError, match="square"):
        confusion(wrong)


def test_filters_are_scaled_about_mid_grey():
    W = np.zeros((3, 3, 3, 2), np.float32)
    W[0, 0, 0, 1], W[2, 2, 1, 1] = 4, -2
    first, second = (ax.images[0].get_array() for ax in filters(W).axes)
    assert np.all(first == 0.5)
    assert second[0, 0, 0] == 1 and second[2, 2, 1] == 0.25 and second[1, 1, 1] == 0.5


def test_filters_of_a_later_layer_are_refused():
    with pytest.raises(ValueError, match=r"\(3, 3, 32, 64\)"):
        filters(np.zeros((3, 3, 32, 64), np.float32))


def test_pictures_of_training_are_not_known_to_pyplot_and_have_words_beside_them(split):
    import matplotlib.pyplot as plt

    with Dashboard() as live:
        train(live)
    drawn = [curves(HISTORY), pictures(split), confusion(np.eye(3, dtype=int)), filters(np.ones((3, 3, 1, 4)))]
    for figure in (*drawn, live.picture()):
        assert isinstance(figure, Picture) and len(figure.alt) > 20
        assert figure.png(1).startswith(b"\x89PNG")
    assert plt.get_fignums() == []


# The dashboard.


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


CELLS = [
    """
import numpy as np
import ipywidgets
from dlcourse import models, optim, datasets
from dlcourse.train import fit
from dlcourse.viz.training import Dashboard
data = datasets.digits().train
model = models.mlp()
known = len(ipywidgets.widgets.widget._instances)
""",
    """
params = model.init((8, 8, 1), np.random.default_rng(0))
with Dashboard(every=0.01) as live:
    button = live._shown[1][2]
    history = fit(model, params, data, optimizer=optim.Adam(), epochs=2, progress=False,
                  callbacks=[live, lambda step: button.click() if step.step == 9 else None])
""",
    """
import matplotlib.pyplot as plt
print(len(history.step_loss), len(ipywidgets.widgets.widget._instances) - known, plt.get_fignums())
""",
]


@pytest.fixture(scope="module")
def notebook(tmp_path_factory):
    """A notebook that has been run without a front end, its second cell twice."""
    cells = [nbformat.v4.new_code_cell(source) for source in [CELLS[0], CELLS[1], CELLS[1], CELLS[2]]]
    notebook = nbformat.v4.new_notebook(cells=cells)
    path = str(tmp_path_factory.mktemp("kernel"))
    NotebookClient(notebook, timeout=60, kernel_name="python3", resources={"metadata": {"path": path}}).execute()
    return notebook


def test_a_cell_with_a_dashboard_ends_as_one_picture_and_no_widget(notebook):
    for cell in notebook.cells[1:3]:
        (output,) = cell.outputs
        assert output.output_type == "display_data"
        assert set(output.data) == {"image/png", "text/plain"}
        assert output.data["text/plain"].startswith("Left the loss of each step")


def test_the_button_stops_the_training_and_no_widget_or_figure_is_left(notebook):
    assert notebook.cells[3].outputs[0].text == "10 0 []\n"
