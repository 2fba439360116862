"""Planted leaks are named, and clean steps are not."""

import functools
import gc
import sys
import threading
import types

import numpy as np
import pytest
from helpers import blobs

from dlcourse import losses, models, optim, train, tree
from dlcourse.inputs import as_input
from dlcourse.memory.holders import Walk
from dlcourse.memory.leaks import _by_holder, _Found, find_leak
from dlcourse.model import Sequential

MODEL = models.small_cnn()
DATA = blobs(12)
REGISTRY: dict[str, np.ndarray] = {}
SAVES = "conv2d_1 relu_1 maxpool2d_1 conv2d_2 relu_2 maxpool2d_2 flatten_1 affine_1 affine_2".split()  # noqa: SIM905


def a_step(keep=lambda loss, saved, grads: None):
    """A real training step whose pieces are handed to `keep`, where a leak can be planted."""
    params = MODEL.init((8, 8, 1), np.random.default_rng(0))
    optimizer = optim.Adam()
    slots = optimizer.init(params)

    def step():
        x = as_input(DATA.x)
        logits, saved = MODEL.forward(params, x, train=True)
        loss, dlogits = losses.softmax_cross_entropy(logits, DATA.y)
        _, grads = MODEL.backward(params, saved, dlogits)
        optimizer.update(params, grads, slots)
        keep(loss, saved, grads)

    return step


def saved_bytes():
    _, saved = MODEL.forward(MODEL.init((8, 8, 1), np.random.default_rng(0)), as_input(DATA.x), train=True)
    return tree.nbytes(saved)


# Eight leaks that real code has.


def test_a_loss_history_that_holds_what_was_saved_is_named_with_its_layers():
    history = []
    found = find_leak(a_step(lambda loss, saved, grads: history.append((loss, saved))), steps=4)
    names = {leak.who for leak in found.leaks}
    assert names == {f"{layer}.saved via history[{len(history) - 1}]" for layer in SAVES}
    assert {leak.copies for leak in found.leaks} == {4}
    assert found.growth == sum(leak.growth for leak in found.leaks) == saved_bytes()


class Loss:
    """As a framework hands it out: with the graph that made it."""

    def __init__(self, value, saved):
        self.value, self.saved = value, saved


def test_a_loss_object_that_holds_what_was_saved_is_named_with_its_layers():
    """The dict is an attribute of an object, and not the dict of its attributes: its keys are keys."""
    history = []
    found = find_leak(a_step(lambda loss, saved, grads: history.append(Loss(loss, saved))), steps=4)
    names = {leak.who for leak in found.leaks}
    assert f"conv2d_2.saved via history[{len(history) - 1}]" in names
    assert {name.partition(".saved via")[0] for name in names} <= set(SAVES), names


def test_a_closure_is_named_with_its_variable():
    hooks = []

    def keep(loss, saved, grads):
        dW = grads["affine_1"]["W"]

        def on_step():
            return dW

        hooks.append(on_step)

    found = find_leak(a_step(keep), steps=3)
    (leak,) = found.leaks
    assert leak.who == f"dW in the closure of on_step() via hooks[{len(hooks) - 1}]"
    assert (leak.shape, leak.copies, leak.growth) == ((128, 128), 3, 128 * 128 * 4)


class Trainer:
    def __init__(self):
        self.columns = np.ones((64, 9), np.float32)
        self.callbacks = [self.on_step]

    def on_step(self):
        pass


def test_a_reference_cycle_is_named_by_the_attribute_that_closes_it():
    found = find_leak(lambda: Trainer() and None, steps=4)
    (leak,) = found.leaks
    assert "reference cycle through Trainer.callbacks" in leak.who
    assert leak.who.startswith("Trainer.columns")
    assert (leak.copies, leak.growth) == (4, 64 * 9 * 4)
    assert not gc.garbage


def test_a_small_view_is_named_with_the_array_that_it_keeps():
    rows = []
    found = find_leak(lambda: rows.append(np.zeros((1000, 1000), np.float32)[0, :10]), steps=2)
    (leak,) = found.leaks
    assert leak.who == f"rows[{len(rows) - 1}], a view of a (1000, 1000) array"
    assert (leak.shape, leak.growth) == ((1000, 1000), 4_000_000)


def test_a_cached_column_matrix_is_named_by_its_function():
    @functools.cache
    def columns(rows):
        return np.zeros((576, 9), np.float32)

    count = iter(range(100))
    found = find_leak(lambda: columns((next(count),) * 50).sum(), steps=3)  # a key of fifty numbers
    (leak,) = found.leaks
    assert leak.who == "columns, the cache of columns()[…]"
    assert (leak.shape, leak.copies) == ((576, 9), 3)


def test_a_global_registry_is_named():
    def register():
        REGISTRY[f"run_{len(REGISTRY)}"] = np.zeros(1000)

    try:
        found = find_leak(register, steps=3)
    finally:
        REGISTRY.clear()
    (leak,) = found.leaks
    assert leak.who == "REGISTRY['run_5']"
    assert (leak.copies, leak.growth) == (3, 8000)


@pytest.fixture
def shell():
    from IPython.core.history import HistoryManager
    from IPython.core.interactiveshell import InteractiveShell

    HistoryManager.enabled = False
    shell = InteractiveShell.instance()
    yield shell
    InteractiveShell.clear_instance()


def test_an_output_of_a_notebook_is_named(shell, capsys):
    shell.run_cell("import numpy as np", store_history=True)
    found = find_leak(lambda: shell.run_cell("np.zeros(5000)", store_history=True), steps=3)
    (leak,) = found.leaks
    assert leak.who == "Out[7]"
    assert (leak.copies, leak.growth) == (3, 40_000)


def failing(x):
    batch = np.zeros(3000)
    raise ValueError(f"{x + len(batch)}")


def test_a_stored_error_is_named_with_the_local_of_its_traceback():
    errors = []

    def step():
        try:
            failing(1)
        except ValueError as error:
            errors.append(error)

    found = find_leak(step, steps=3)
    (leak,) = found.leaks
    assert leak.who == f"local batch of failing() in the traceback of errors[{len(errors) - 1}]"


def test_the_last_traceback_is_named(monkeypatch):
    """As where a cell that fails is run again and again and each error is raised from the one before."""
    monkeypatch.setattr(sys, "last_value", None, raising=False)

    def step():
        try:
            try:
                failing(1)
            except ValueError as error:
                raise error from sys.last_value
        except ValueError as error:
            sys.last_value = error

    found = find_leak(step, steps=3)
    assert {leak.who for leak in found.leaks} == {"local batch of failing() via the last traceback"}


# Others that names lead to in another way.


class Node:
    __slots__ = ("before", "value")

    def __init__(self, before):
        self.before, self.value = before, np.zeros(100)


def test_a_long_chain_is_named_by_its_kinds_of_links():
    class Graph:
        last = None

    def step():
        Graph.last = Node(Graph.last)

    found = find_leak(step, steps=6).leaks
    assert {leak.who: leak.copies for leak in found} == {"before.value via Graph.last": 5, "value via Graph.last": 1}


def test_a_default_argument_that_grows_is_named():
    def step(x=1, seen=[], *, cache={}):  # noqa: B006
        seen.append(np.zeros(10))
        cache[len(cache)] = np.zeros(20)

    assert {leak.who for leak in find_leak(step, steps=2).leaks} == {
        "default seen of step()[5]",
        "default cache of step()[4]",
    }


def test_an_array_that_is_replaced_by_a_longer_one_grows_by_the_difference():
    state = {"losses": np.zeros(1000)}

    def step():
        state["losses"] = np.append(state["losses"], 1.0)

    (leak,) = find_leak(step).leaks
    assert leak.who == "state['losses']"
    assert leak.growth == 8


def test_a_local_of_another_thread_and_a_registry_in_another_module_are_named(monkeypatch):
    registry = types.ModuleType("somebody_elses")
    registry.seen = set()
    monkeypatch.setitem(sys.modules, "somebody_elses", registry)
    begin, done = threading.Semaphore(0), threading.Semaphore(0)

    def work():
        results = []
        while begin.acquire() and len(results) < 50:
            results.append(np.zeros(500))
            sys.modules["somebody_elses"].seen.add(Holder(np.zeros(250)))
            done.release()

    thread = threading.Thread(target=work, daemon=True)
    thread.start()

    def step():
        begin.release()
        done.acquire()

    del registry
    found = {leak.who: leak.growth for leak in find_leak(step, steps=2).leaks}
    for _ in range(51):
        begin.release()
    thread.join()
    assert found == {"local results of work()[7]": 4000, "value via somebody_elses.seen": 2000}


def test_new_arrays_at_the_addresses_of_freed_ones_are_one_leak():
    """As in Out[n], where the arrays of earlier outputs were let go meanwhile."""
    arrays = [np.zeros(100) for _ in range(3)]
    before = _Found(Walk([]))
    before.old.update(map(id, arrays))  # of those that are gone
    (leak,) = _by_holder(Walk((f"Out[{number}]", array) for number, array in enumerate(arrays)), before, 3)
    assert (leak.who, leak.copies, leak.growth) == ("Out[0]", 3, 800)


class Holder:
    def __init__(self, value):
        self.value = value


def test_the_table_says_holder_shape_copies_and_growth():
    kept = []
    found = find_leak(lambda: kept.append(np.ones((256, 512))), steps=2)
    text = str(found)
    assert "kept[" in text
    assert "(256, 512)" in text
    assert "1.00 MiB a step" in text
    assert "<table>" in found._repr_html_()
    assert found.leaks[0].made_at.startswith("test_leaks.py:")


# Twenty clean steps.


class Counting:
    """Keeps what a well-made program keeps: the last results, numbers, and at most a few arrays."""

    def __init__(self):
        self.losses, self.last, self.window, self.turn = [], None, [], 0

    def keep(self, loss, saved, grads):
        self.losses.append(loss)
        self.last = grads
        self.window = [*self.window, saved][-1:]

    def every_other(self, loss, saved, grads):
        self.turn += 1
        self.last = saved if self.turn % 2 else None


def fit_once(**more):
    params = MODEL.init((8, 8, 1), np.random.default_rng(0))
    return lambda: train.fit(MODEL, params, DATA, optimizer=optim.Momentum(), batch_size=6, progress=False, **more)


def gradients(model: Sequential = MODEL, **more):
    params = model.init((8, 8, 1), np.random.default_rng(0))
    return lambda: train.gradients(model, params, DATA.x, DATA.y, **more)


def late_cache():
    seen = []

    def step():
        seen.append(None)
        if len(seen) == 4:
            seen[0] = np.zeros(1000)

    return step


def small_cycle():
    def step():
        loop: list = []
        loop.append(loop)

    return step


def error_that_is_caught():
    def step():
        try:
            failing(1)
        except ValueError:
            pass

    return step


CLEAN = {
    "nothing": lambda: lambda: None,
    "a step": a_step,
    "the last results are kept": lambda: a_step(Counting().keep),
    "every other one is kept": lambda: a_step(Counting().every_other),
    "one batch": gradients,
    "micro-batches": lambda: gradients(micro_batch=5),
    "two workers": lambda: gradients(micro_batch=3, workers=2),
    "an mlp": lambda: gradients(models.mlp()),
    "fit": fit_once,
    "fit in micro-batches": lambda: fit_once(micro_batch=4, workers=2),
    "fit with validation": lambda: fit_once(validation=DATA),
    "fit with clipping": lambda: fit_once(clip_norm=1.0),
    "fit with a callback": lambda: fit_once(callbacks=[lambda step: step.loss < 0]),
    "evaluate": lambda: functools.partial(
        train.evaluate, MODEL, MODEL.init((8, 8, 1), np.random.default_rng(0)), DATA, batch_size=5
    ),
    "result let go": lambda: lambda: np.zeros(1000),
    "made once, late": late_cache,
    "a cycle without an array": small_cycle,
    "an error that is caught": error_that_is_caught,
    "shuffled": lambda: lambda: np.random.default_rng(0).permutation(1000),
    "a view that is let go": lambda: lambda: np.zeros((100, 100))[0].sum(),
}


@pytest.mark.parametrize("name", CLEAN)
def test_a_clean_step_is_not_reported(name):
    found = find_leak(CLEAN[name]())
    assert not found, found
    assert "no leak" in str(found)


def test_the_collector_is_as_it_was_before_also_after_an_error():
    def step():
        raise RuntimeError("in the step")

    with pytest.raises(RuntimeError, match="in the step"):
        find_leak(step)
    assert gc.isenabled()
    assert not gc.get_debug()


def test_one_step_cannot_tell_growth_from_what_is_made_once():
    with pytest.raises(ValueError, match="at least 2"):
        find_leak(lambda: None, steps=1)
