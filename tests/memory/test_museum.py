"""The eight leaks of notebook 14, taken from its own cells: each is named, and each mended one leaves no byte."""

import ast

import nbformat
import pytest
from IPython.core.history import HistoryManager
from IPython.core.interactiveshell import InteractiveShell

from dlcourse.exercises import museum
from dlcourse.memory import find_leak
from notebooks import ROOT, code_cells, exercise_cells

OWNERS = {
    "history": "relu_1.saved via history[",
    "closure": "dW in the closure of <lambda>() via at_end[",
    "cycle": "Trial.columns, in a reference cycle through Trial.callbacks",
    "cache": "columns, the cache of columns()[",
    "Out": "Out[10",
    "traceback": "local batch of load() in the traceback of failed[",
    "view": "hardest[",
    "registry": "WATCHED['step ",
}


def definitions(source):
    """What a cell defines: its imports, functions, classes and assignments, but nothing that it only calls."""
    kinds = ast.Import, ast.ImportFrom, ast.FunctionDef, ast.ClassDef, ast.Assign
    return ast.unparse([one for one in ast.parse(source).body if isinstance(one, kinds)])


@pytest.fixture(scope="module")
def names():
    """The names of the notebook's kernel."""
    HistoryManager.enabled = False
    shell = InteractiveShell.instance()
    path = ROOT / "notebooks" / "14_leak_museum.ipynb"
    notebook = nbformat.read(path, as_version=4)
    stubs = exercise_cells(notebook)
    for cell in code_cells(notebook):
        if cell in stubs or "MENDED" in shell.user_ns or cell.source.startswith("tracemalloc.start()"):
            continue
        kept = "\n".join([definitions(cell.source), *(x for x in cell.source.splitlines() if x.startswith("MENDED."))])
        shell.run_cell(kept).raise_error()
    yield shell.user_ns
    museum.WATCHED.clear()
    InteractiveShell.clear_instance()


@pytest.mark.parametrize("name", OWNERS)
def test_the_owner_of_each_leak_of_the_museum_is_named(names, name):
    leaks = find_leak(names["LEAKY"][names["NAMES"].index(name)](), steps=2).leaks
    assert leaks[0].who.startswith(OWNERS[name])
    assert name != "view" or leaks[0].who.endswith(", a view of a (32, 32, 32, 3) array")


@pytest.mark.parametrize("name", OWNERS)
def test_a_leak_grows_and_the_mended_one_leaves_no_byte_in_fifty_steps(names, name):
    place = names["NAMES"].index(name)
    leaky, mended = (museum.levels(names[rooms][place]()) for rooms in ("LEAKY", "MENDED"))
    assert leaky[-1] == 50 * leaky[1] > 0
    assert mended == [0] * 51


def test_a_part_of_the_readers_own_is_tried_on(capsys):
    museum.try_on(7, lambda x, losses, rows: ...)
    museum.try_on(7, lambda x, losses, rows: None)
    museum.try_on(7, lambda x, losses, rows: x[0])
    museum.try_on(7, lambda x, losses, rows: x[losses.argmax()].copy())
    museum.try_on(7, lambda x, losses, rows: int(rows[losses.argmax()]))
    museum.try_on(8, lambda registry, number, y: None)
    museum.try_on(8, museum.watch)
    museum.try_on(8, lambda registry, number, y: registry.update(mean=float(y.mean())))
    said = capsys.readouterr().out.splitlines()
    assert ["not yet" in line for line in said] == [True, True, False, False, False, True, False, False]
    assert "neither the picture" in said[2]
    assert said[3] == "room 7: 50 steps leave 600 KiB. It still leaks."
    assert said[4] == "room 7: 50 steps leave 0 B. Mended."
    assert said[6] == "room 8: 50 steps leave 1.56 MiB. It still leaks."
    assert said[7] == "room 8: 50 steps leave 0 B. Mended."
    with pytest.raises(ValueError, match="room 7 or 8, got 6"):
        museum.try_on(6, museum.pick)
