"""The executions of notebooks: what they see, what they complain of, and what need not run again."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import executions
import ipc
import nbformat
import pytest
import unchanged
from calibration import Speed
from executions import MIB, Seen, verdict
from nbformat.v4 import new_code_cell, new_notebook, new_output

import notebooks

QUIET = Speed(1, 1)
LARGE = "import time\n_ = b'x' * (200 * 2**20)  # each page is written, so each is there\ntime.sleep(3)"
kernels = pytest.mark.timeout(300)
sockets = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no sockets that are files")


def cell(source: str, printed: str = "", *tags: str) -> nbformat.NotebookNode:
    outputs = [new_output("stream", text=printed)] if printed else []
    return new_code_cell(source, outputs=outputs, execution_count=1, metadata={"tags": list(tags)})


def write(path: Path, *cells: nbformat.NotebookNode) -> Path:
    python = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(new_notebook(cells=list(cells), metadata={"kernelspec": python}), path)
    return path


# The first execution.


@kernels
def test_nbval_compares_outputs_and_the_kernel_below_it_is_watched(tmp_path):
    path = write(tmp_path / "a.ipynb", cell("print('as stored')", "as stored\n"), cell(LARGE))
    code, printed, seen = executions.nbval(path, strict=True)
    assert code == 0, printed
    assert seen.peak > 200 * MIB
    assert 0 < seen.used and 0 < seen.seconds < 300
    other = write(tmp_path / "b.ipynb", cell("print('another')", "as stored\n"))
    code, printed, _ = executions.nbval(other, strict=True)
    assert code == 1 and "another" in printed
    assert executions.nbval(other, strict=False)[0] == 0


@sockets
@kernels
def test_kernels_that_start_at_once_have_no_port_to_fight_for(tmp_path):
    def transport(number: int) -> str:
        source = f"from ipykernel.connect import *; _ = open('{number}.json', 'w').write(get_connection_info())"
        code, printed, _ = executions.nbval(write(tmp_path / f"{number}.ipynb", cell(source)), strict=True)
        assert code == 0, printed
        return json.loads((tmp_path / f"{number}.json").read_text())["transport"]

    with ThreadPoolExecutor(2) as pool:
        assert list(pool.map(transport, range(2))) == ["ipc", "ipc"]
    notebook = new_notebook(cells=[cell("from ipykernel.connect import *; print(get_connection_info())")])
    with notebooks.kernel(notebook, tmp_path / "c.ipynb") as client:
        client.execute_cell(notebook.cells[0], 0)
    assert json.loads(notebook.cells[0].outputs[0].text)["transport"] == "ipc"


@sockets
def test_the_path_of_a_socket_is_short_enough_for_every_system():
    with ipc.environment() as env:
        assert len(os.fsencode(ipc.options(env["JUPYTER_RUNTIME_DIR"])["ip"])) < 90  # macOS allows 104 bytes


@pytest.mark.parametrize(
    ("seen", "speed", "state"),
    [
        (Seen(19, 19, 0, 0), QUIET, ""),
        (Seen(21, 21, 0, 0.1), QUIET, "FAILED"),
        (Seen(30, 30, 0, 0.1), Speed(2, 2), ""),  # a slow machine
        (Seen(15, 15, 0, 0.1), Speed(0.5, 0.5), "FAILED"),  # a fast one
        (Seen(90, 30, 0, 6), Speed(5, 1.6), ""),  # a busy one
        (Seen(90, 40, 0, 6), Speed(2, 1.2), "NOT JUDGED"),
        (Seen(101, 1, 0, 0), QUIET, "FAILED"),  # it waits
        (Seen(30, 12, 0, 0.1), QUIET, ""),
        (Seen(1, 1, 1537 * MIB, 6), QUIET, "FAILED"),  # the limit of memory holds however busy the machine is
    ],
)
def test_a_limit_of_time_means_the_same_on_every_machine(seen, speed, state):
    found, why = verdict(seen, speed, 20)
    assert found == state
    assert bool(why) == bool(state)


def test_over_the_limit_of_time_is_said_with_what_to_do():
    assert "40.0 of 20 s" in verdict(Seen(40, 40, 0, 0), QUIET, 20)[1]
    why = verdict(Seen(40, 40, 0, 1.34), QUIET, 20)[1]
    assert "other programs used 1.3 of" in why and "DLCOURSE_SLOW=2" in why


# The second.


@kernels
def test_a_cell_that_says_something_else_the_second_time_is_named(tmp_path):
    path = write(
        tmp_path / "a.ipynb",
        cell("count = globals().get('count', 0)"),
        cell("count += 1\nprint('in a row', count)"),
        cell("print('always the same')"),
        cell("seen = globals().get('seen', 0) + 1\nprint('ignored', seen)", "", "nbval-ignore-output"),
        cell("first = 'last' not in globals()\nprint(first)"),
        cell("last = True"),
    )
    found = executions.again_in_one_kernel(path)
    assert [line.splitlines()[0] for line in found] == [
        "code cell 2, run twice in a row:",
        "code cell 2, run again without a restart:",
        "code cell 5, run again without a restart:",
    ]


@kernels
def test_each_solution_is_run_after_its_stub_and_has_to_be_right(tmp_path, monkeypatch):
    stub = 'from dlcourse.exercises import check\ndef out_size(size, kernel, stride, padding):\n    ...\ncheck("05.1", out_size)'
    path = write(tmp_path / "a.ipynb", cell(stub, "", "exercise"))
    assert executions.again_in_one_kernel(path) == []
    wrong = "def out_size(size, kernel, stride, padding):\n    return size\ncheck('05.1', out_size)"
    monkeypatch.setattr(executions, "solution", lambda _: wrong)
    (found,) = executions.again_in_one_kernel(path)
    assert found.startswith("code cell 1, solved:\n")


# What has not changed.


@pytest.fixture
def project(tmp_path, monkeypatch) -> Path:
    """A package of a few modules and a notebook that imports one of them."""
    files = {
        "dlcourse/__init__.py": "",
        "dlcourse/used.py": "def f():\n    from . import deep\n    from dlcourse.package.inner import g",
        "dlcourse/deep.py": "from .package import outer",
        "dlcourse/unused.py": "",
        "dlcourse/package/__init__.py": "from dlcourse.package.outer import f",
        "dlcourse/package/outer.py": "",
        "dlcourse/package/inner.py": "",
        "dlcourse/exercises/__init__.py": "",
        "dlcourse/exercises/units/__init__.py": "",
        "dlcourse/exercises/units/e05_1.py": "from dlcourse import of_the_unit",
        "dlcourse/exercises/units/e06_1.py": "",
        "dlcourse/of_the_unit.py": "",
        "tests/sanitize.cfg": "",
        "tests/executions.py": "",
        "constraints.txt": "",
        "pyproject.toml": "",
        "data/README.md": "",
        "notebooks/solutions/05_1.py": "",
        "notebooks/solutions/06_1.py": "",
        "README.md": "",
    }
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(unchanged, "ROOT", tmp_path)
    write(
        tmp_path / "notebooks" / "05_a.ipynb",
        cell("x = %memit -o 1\nfrom dlcourse import used"),
    )
    return tmp_path


def test_a_key_hangs_on_what_the_notebook_imports_and_on_nothing_else_of_the_package(project):
    path = project / "notebooks" / "05_a.ipynb"
    hangs_on = set()
    for file in sorted(file for file in project.rglob("*") if file.is_file()):
        before, text = unchanged.key(path), file.read_bytes()
        file.write_bytes(text + b" ")
        if unchanged.key(path) != before:
            hangs_on.add(file.relative_to(project).as_posix())
        file.write_bytes(text)
    everything = {file.relative_to(project).as_posix() for file in project.rglob("*") if file.is_file()}
    apart = {"dlcourse/unused.py", "dlcourse/exercises/units/e06_1.py", "notebooks/solutions/06_1.py", "README.md"}
    assert everything - hangs_on == apart


@pytest.mark.parametrize("source", ["!dlcourse doctor", "import subprocess", "memory.isolated(f)", "%%bash\nls"])
def test_a_notebook_that_starts_a_command_or_a_process_hangs_on_the_whole_package(project, source):
    path = write(project / "notebooks" / "05_a.ipynb", cell(source))
    assert unchanged.modules(path) == set((project / "dlcourse").rglob("*.py"))


def test_what_passed_is_not_run_again_until_it_changes_and_a_failed_run_is_forgotten(project, monkeypatch):
    path = project / "notebooks" / "05_a.ipynb"

    def runs(good: bool, every: bool = False) -> bool:
        with executions.attempt("first", path, every) as run:
            if run is not None:
                run.good = good
            return run is not None

    assert runs(good=False)
    assert runs(good=True)
    assert not runs(good=True)
    assert runs(good=True, every=True)
    assert not runs(good=True)
    assert runs(good=False, every=True)  # a failed run removes the key
    assert runs(good=True)
    (project / "dlcourse" / "deep.py").write_text("# changed")
    assert runs(good=True)
    with pytest.raises(KeyboardInterrupt), executions.attempt("first", path, True):
        raise KeyboardInterrupt
    assert runs(good=True)


def test_a_browser_is_wanted_where_cells_with_sliders_changed(project):
    path = write(project / "notebooks" / "05_a.ipynb", cell("slide()", "", "slider"), cell("other()"))
    assert not unchanged.sliders_changed(path)  # as it was delivered
    write(path, cell("slide()", "", "slider"), cell("another()"))
    assert not unchanged.sliders_changed(path)
    write(path, cell("slide(1)", "", "slider"), cell("other()"))
    assert unchanged.sliders_changed(path)
    unchanged.remember("browser", path, "failed")
    write(path, cell("slide()", "", "slider"))
    assert unchanged.sliders_changed(path)


def test_a_notebook_is_named_by_its_number_its_name_or_its_path():
    (first, *_) = notebooks.paths()
    assert {notebooks.named(text) for text in ("00", first.stem, first.name, str(first))} == {first}
    with pytest.raises(SystemExit, match="There is no notebook '77': there are 00_start_here, "):
        notebooks.named("77")
