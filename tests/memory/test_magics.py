"""`%peak` and `%%peak`: in a shell of this process, and in a notebook's kernel."""

import atexit
import re

import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from nbclient import NotebookClient
from traitlets.config import Config

import dlcourse

ONE = "requested   peak 7.63 MiB, at the end 7.63 MiB\n"  # np.ones(1_000_000)


@pytest.fixture
def shell():
    quiet = Config(HistoryManager={"enabled": False}, InteractiveShell={"colors": "nocolor"})
    shell = InteractiveShell(config=quiet, user_ns={"np": np})
    dlcourse.load_ipython_extension(shell)
    yield shell
    atexit.unregister(shell.atexit_operations)
    shell.atexit_operations()


@pytest.fixture
def run(shell, capsys):
    def run(cell):
        result = shell.run_cell(cell, store_history=True)
        return result, capsys.readouterr().out

    return run


def test_a_cell_prints_both_rulers_and_their_difference(run):
    result, out = run("%%peak\na = np.ones(1_000_000)")
    assert result.success
    lines = out.splitlines()
    assert lines[0] + "\n" == ONE
    assert re.fullmatch(r"system saw  peak -?[\d.]+ \w+ \(.+\)", lines[1])
    assert lines[2].startswith("difference  ")
    assert len(lines) == 3


def test_the_exact_line_can_be_had_alone(run):
    assert run("%%peak --exact\na = np.ones(1_000_000)")[1] == ONE
    assert run("%peak --exact b = np.ones(1_000_000)")[1] == ONE


def test_a_cell_runs_once_in_the_names_of_the_notebook_and_leaves_no_others(run, shell):
    run("count = 0")
    before = set(shell.user_ns)
    run("%%peak --exact\nfor step in range(3):\n    count += 1\ndef later():\n    return count")
    assert shell.user_ns["count"] == 3
    assert {name for name in set(shell.user_ns) - before if not re.fullmatch(r"_i*\d*", name)} == {"step", "later"}
    assert run("later()")[0].result == 3


def test_the_last_expression_is_shown_as_in_any_cell(run, shell):
    result, out = run("%%peak --exact\nx = 3\nx * 2")
    assert result.result == 6
    assert out.endswith("6\n")
    assert shell.user_ns["_"] == 6
    assert shell.user_ns["Out"] == {result.execution_count: 6}


@pytest.mark.parametrize("cell", ["%%peak --exact\nx = 3\nx * 2;", "%peak --exact 3 * 2;", "%%peak --exact\nx = 3"])
def test_what_ends_with_a_semicolon_or_a_statement_shows_nothing(run, shell, cell):
    result, out = run(cell)
    assert result.success
    assert out.count("\n") == 1
    assert shell.user_ns["Out"] == {}


def test_a_line_gives_its_value(run):
    assert run("%peak --exact 3 * 2")[0].result == 6
    result, _ = run("y = %peak --exact {'a': 5}['a']")
    assert result.result is None
    assert run("y")[0].result == 5


@pytest.mark.parametrize(
    "body", ["1 / 0", "x = 1\n\ndef f():\n    return {}['k']\nf()", "x = = 1", "await x", "def f():\npass"]
)
def test_a_cell_that_fails_shows_what_the_plain_cell_shows(run, shell, body):
    shown = []
    shell._showtraceback = lambda kind, value, lines: shown.append((kind.__name__, str(value), "\n".join(lines)))
    shell.autoawait = False
    plain, _ = run("# plain\n" + body)
    measured, out = run("%%peak --exact\n" + body)
    assert not plain.success
    assert not measured.success
    (kind, text, lines), (kind_here, text_here, lines_here) = shown

    def same(text):
        text = re.sub(
            r"\(\w+\.py, line|\(<ipython-input-[\w-]+>, line|File <ipython-input-[\w-]+>:|Cell In\[\d+\], line",
            "",
            text,
        )
        return [line.strip() for line in text.splitlines() if line.strip() not in ("1", "1 # plain")]

    assert (kind_here, same(text_here)) == (kind, same(text))
    assert same(lines_here) == same(lines)
    if kind not in ("SyntaxError", "IndentationError"):
        assert out.startswith("requested   peak ")  # the reading is there all the same


@pytest.mark.parametrize("code", ["await x", "y = 1\nasync with x:\n    pass", "[i async for i in x]"])
def test_await_in_a_measured_cell_says_what_to_take(run, shell, code):
    shell.autoawait = True
    result, out = run("%%peak\n" + code)
    assert not result.success
    assert "UsageError: %peak cannot run await" in out and "with meter()" in out
    assert "requested" not in out
    assert "SyntaxError" in run("%%peak\nawait x = = 1")[1]


def test_what_was_done_before_a_failure_stays_done(run, shell):
    run("%%peak --exact\nx = 7\n1 / 0")
    assert shell.user_ns["x"] == 7


def test_it_stands_inside_itself_and_around_meters(run):
    result, out = run(
        "%%peak --exact\n%peak --exact np.ones(250_000).sum()\nfrom dlcourse.memory import meter\n"
        "with meter() as m:\n    np.ones(500_000)\nz = np.ones(1_000_000)\nm.requested"
    )
    inner, outer = out.splitlines()[:2]
    assert inner == "requested   peak 1.91 MiB, at the end under 4 KiB"
    assert re.match(r"requested   peak 7.6\d MiB", outer)
    assert 4_000_000 <= result.result < 4_010_000


@pytest.mark.parametrize("cell", ["%%peak\n", "%%peak --exact\n", "%peak "])
def test_a_cell_that_ends_the_tracing_has_no_reading(run, cell):
    run("import tracemalloc")
    result, out = run(cell + "tracemalloc.start(); x = np.ones(1_000_000); tracemalloc.stop()")
    assert out.startswith("could not measure: tracing was ended inside the block")
    assert "requested" not in out
    assert isinstance(result.error_in_exec, RuntimeError)


@pytest.mark.parametrize("cell", ["%peak", "%peak --exact", "%%peak --all\n1", "%%peak 1 + 1\n2"])
def test_a_wrong_call_says_what_it_takes(run, cell):
    result, out = run(cell)
    assert "[--exact]" in str(result.error_in_exec)
    assert "UsageError: expected %" in out


def test_names_in_braces_stay_code(run):
    run("n = 3")
    assert run("%peak --exact f'{n}' + '$n'")[0].result == "3$n"


CELLS = [
    "%load_ext dlcourse\nimport numpy as np\nfrom dlcourse.memory import isolated, wall",
    "%%peak --exact\na = np.ones(25_000_000)\na[:2]",
    "%%peak --exact\nb = np.ones(1_000_000) + np.ones(1_000_000)\nfor i in range(3):\n    print(i)",
    "def f(n):\n    print('from the child')\n    return int(np.ones(n).sum())\nprint(isolated(f, 1000).value)",
    "isolated(f, 1000, start='spawn')",
    "%%peak\nf(10)\n1 / 0",
    "isolated(f, 10**9, wall='50 MiB')",
    "with wall('100 MiB'):\n    np.ones(25_000_000)",
    "after = np.ones(25_000_000).nbytes\nafter",
]


@pytest.fixture(scope="module")
def notebooks():
    """The same notebook, run in two kernels."""
    done = []
    for _ in range(2):
        notebook = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(cell) for cell in CELLS])
        settings = Config(KernelManager={"transport_encryption": "auto"})
        NotebookClient(notebook, timeout=60, kernel_name="python3", allow_errors=True, config=settings).execute()
        done.append(["".join(map(text, cell.outputs)) for cell in notebook.cells])
    return done


def text(output):
    if output.output_type == "stream":
        return output.text
    if output.output_type == "error":
        return f"{output.ename}: {output.evalue}\n"
    return output.data["text/plain"] + "\n"


def test_the_exact_lines_are_the_same_in_two_kernels(notebooks):
    first, second = notebooks
    assert first[1:3] == second[1:3]
    assert first[1] == "requested   peak 191 MiB, at the end 191 MiB\narray([1., 1.])\n"
    assert first[2] == "0\n1\n2\nrequested   peak 15.3 MiB, at the end 7.63 MiB\n"


def test_a_failing_cell_counts_as_an_error_in_a_kernel(notebooks):
    for cells in notebooks:
        assert cells[5].startswith("from the child\nrequested")
        assert cells[5].endswith("ZeroDivisionError: division by zero\n")


def test_a_function_of_a_notebook_runs_in_a_process_of_its_own(notebooks):
    for cells in notebooks:
        assert cells[3].endswith("1000\n")
        assert "f is defined in the notebook" in cells[4]


def test_in_a_kernel_the_wall_ends_a_cell_and_not_the_kernel(notebooks):
    for cells in notebooks:
        assert "MemoryError: past the wall of 50.0 MiB: Unable to allocate 7.45 GiB" in cells[6]
        assert "Unable to allocate 191. MiB" in cells[7]
        assert cells[8] == "200000000\n"
