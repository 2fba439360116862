"""The scripts behind the make targets."""

import hashlib
import importlib.util
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from browser import chromium
from packaging.requirements import Requirement

from notebooks import ROOT

posix = pytest.mark.skipif(sys.platform == "win32", reason="make is for Linux and macOS")


def load(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(ROOT / "scripts")
    spec = importlib.util.spec_from_file_location(name, ROOT / "scripts" / f"{name}.py")
    assert spec and spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def find_python(*arguments: str, path: Path | None = None) -> subprocess.CompletedProcess:
    env = {"PATH": str(path)} if path else None
    command = ["/bin/sh", str(ROOT / "scripts" / "find_python.sh"), *arguments]
    return subprocess.run(command, cwd=path, env=env, capture_output=True, text=True, check=False)


def program(folder: Path, name: str, body: str) -> None:
    (folder / name).write_text(f"#!/bin/sh\n{body}\n")
    (folder / name).chmod(0o755)


@posix
def test_a_python_on_the_path_that_does_not_run_is_passed_over(tmp_path):
    program(tmp_path, "python3", "echo 'pyenv: version not installed' >&2; exit 127")
    program(tmp_path, "python3.14", "exit 1")
    program(tmp_path, "python3.13", f'exec "{sys.executable}" "$@"')
    assert find_python(path=tmp_path).stdout.strip() == "python3.13"


@posix
def test_without_a_python_the_error_says_what_to_install(tmp_path):
    found = find_python(path=tmp_path)
    assert found.returncode == 1 and found.stdout == ""
    assert "No Python 3.11 or newer was found" in found.stderr and "PYTHON=" in found.stderr


@posix
def test_a_named_python_is_used_and_a_wrong_one_is_named_in_the_error(tmp_path):
    program(tmp_path, "my python", f'exec "{sys.executable}" "$@"')
    assert find_python(str(tmp_path / "my python")).stdout.strip() == str(tmp_path / "my python")
    program(tmp_path, "python2", "exit 1")
    wrong = find_python(str(tmp_path / "python2"))
    assert wrong.returncode == 1 and "python2 does not run" in wrong.stderr


def test_the_pip_wheel_is_found_on_an_index_page_with_relative_links(monkeypatch):
    pip = load("bootstrap_pip", monkeypatch)
    page = f'<a href="pip-1.0.tar.gz">pip-1.0</a> <a href="../../files/{pip.WHEEL}#sha256=00">{pip.WHEEL}</a>'
    assert pip.find_wheel("https://index.example/simple/pip/", page) == f"https://index.example/files/{pip.WHEEL}"


def test_an_index_without_the_pip_wheel_is_named_in_the_error(monkeypatch):
    pip = load("bootstrap_pip", monkeypatch)
    with pytest.raises(SystemExit, match=r"https://index\.example/simple/pip/ does not offer pip-"):
        pip.find_wheel("https://index.example/simple/pip/", "<html></html>")


def test_a_pip_wheel_with_another_checksum_is_not_installed(monkeypatch):
    pip = load("bootstrap_pip", monkeypatch)
    found = hashlib.sha256(b"not pip").hexdigest()
    with pytest.raises(SystemExit, match=rf"SHA-256 is {found} \(7 bytes\), expected {pip.SHA256}"):
        pip.check(b"not pip", "https://index.example/pip.whl")


def test_an_index_that_cannot_be_reached_is_named_with_what_to_do(monkeypatch, tmp_path):
    pip = load("bootstrap_pip", monkeypatch)
    missing = (tmp_path / "simple").as_uri()
    with pytest.raises(SystemExit, match=r"Cannot read file:.*\n.*PIP_INDEX_URL"):
        pip.fetch(missing)


@pytest.fixture
def install(monkeypatch, tmp_path):
    """scripts/install.py on an empty project, with pip and venv replaced by a list of what they were asked."""
    module = load("install", monkeypatch)
    folder = tmp_path / "a project"
    (folder / ".venv").mkdir(parents=True)
    for name in ("pyproject.toml", "constraints.txt"):
        (folder / name).write_text("first")
    monkeypatch.setattr(module, "ROOT", folder)
    monkeypatch.setattr(module, "VENV", folder / ".venv")
    monkeypatch.setattr(module, "STAMP", folder / ".venv" / "stamp.json")
    monkeypatch.setattr(module, "BIN", Path(sys.executable).parent)
    module.asked = []
    monkeypatch.setattr(module, "make_environment", lambda: module.asked.append("venv"))
    monkeypatch.setattr(module, "install_package", lambda extras: module.asked.append(extras))
    monkeypatch.setattr(module, "departures", lambda extras: [])
    return module


def ask(install: ModuleType, monkeypatch: pytest.MonkeyPatch, *arguments: str) -> list:
    install.asked.clear()
    monkeypatch.setattr(sys, "argv", ["install.py", *arguments])
    assert install.main() == 0
    return list(install.asked)


def test_a_second_installation_does_nothing(install, monkeypatch):
    assert ask(install, monkeypatch) == ["venv", []]
    assert ask(install, monkeypatch) == []


def test_what_is_missing_or_of_another_version_is_mended_and_named(install, monkeypatch, capsys):
    ask(install, monkeypatch)
    assert "Nothing to install" not in capsys.readouterr().out
    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(
            install, "departures", lambda extras: ["numpy 2.3.1 in place of ==2.4.6", "psutil is missing"]
        )
        assert ask(install, monkeypatch) == [[]]
    assert "To mend in .venv: numpy 2.3.1 in place of ==2.4.6, psutil is missing" in capsys.readouterr().out
    assert ask(install, monkeypatch) == []
    assert "Nothing to install" in capsys.readouterr().out


def test_departures_are_those_of_all_that_is_needed_also_of_what_a_dependency_needs(monkeypatch):
    installed = load("installed", monkeypatch)
    here = {
        "course": (
            "1.0",
            ['numpy>=2 ; python_version >= "3"', 'pytest ; extra == "test"', 'never ; python_version < "3"'],
        ),
        "numpy": ("2.3.1", ["deep", "gone"]),
        "deep": ("1.0", ["Numpy"]),
        "pytest": ("9", []),
        "other": ("1.0", ["nobody-needs"]),
    }

    def distribution(name):
        if name.lower() not in here:
            raise installed.importlib.metadata.PackageNotFoundError(name)
        version, requires = here[name.lower()]
        return SimpleNamespace(version=version, requires=requires)

    monkeypatch.setattr(installed.importlib.metadata, "distribution", distribution)
    tested = ("numpy==2.4.6", "deep==1.0", "pytest==9.2", "other==2")
    monkeypatch.setattr(installed, "pins", lambda: {line.split("==")[0]: Requirement(line) for line in tested})
    assert installed.departures("course", set()) == ["numpy 2.3.1 in place of ==2.4.6", "gone is missing"]
    assert "pytest 9 in place of ==9.2" in installed.departures("course", {"test"})


@posix
def test_an_interrupt_while_installing_prints_one_line(tmp_path):
    for name in ("install.py", "bootstrap_pip.py"):
        (tmp_path / "scripts").mkdir(exist_ok=True)
        (tmp_path / "scripts" / name).write_bytes((ROOT / "scripts" / name).read_bytes())
    for name in ("pyproject.toml", "constraints.txt"):
        (tmp_path / name).write_text("")
    (tmp_path / "venv.py").write_text("import time\nprint('slow', flush=True)\ntime.sleep(60)")
    command = [sys.executable, "scripts/install.py"]
    env = os.environ | {"PYTHONPATH": str(tmp_path)}
    with subprocess.Popen(
        command,
        cwd=tmp_path,
        env=env,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    ) as process:
        assert process.stdout and process.stdout.readline().startswith("Making .venv")
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)  # as Ctrl-C does: to all of the foreground
        _, err = process.communicate(timeout=30)
    assert err.strip() == "Stopped. The next `make` starts again from an empty .venv."
    assert process.returncode == 130


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_change_of_what_is_needed_installs_again_into_the_same_environment(install, monkeypatch, name):
    ask(install, monkeypatch)
    (install.ROOT / name).write_text("second")
    assert ask(install, monkeypatch) == [[]]
    assert ask(install, monkeypatch) == []


def test_an_extra_is_added_once_and_kept(install, monkeypatch):
    ask(install, monkeypatch)
    assert ask(install, monkeypatch, "--extra", "test") == [["test"]]
    assert ask(install, monkeypatch, "--extra", "test") == []
    assert ask(install, monkeypatch) == []


def test_an_extra_that_cannot_be_had_here_is_left_out_and_not_asked_for_again(install, monkeypatch, capsys):
    def without_builds(extras):
        install.asked.append(extras)
        if "profilers" in extras:
            raise install.subprocess.CalledProcessError(1, ["pip"])

    every = ("--extra", "test", "--extra", "data", "--extra", "profilers")
    with monkeypatch.context() as here:
        here.setattr(install, "install_package", without_builds)
        assert ask(install, monkeypatch, *every) == [
            *("venv", ["data", "profilers", "test"]),
            *(["test"], ["data"], ["profilers"]),
        ]
        assert "Left out: [profilers]" in capsys.readouterr().out
        assert ask(install, monkeypatch, *every) == []
        assert json.loads(install.STAMP.read_text())["extras"] == ["data", "test"]
    (install.ROOT / "constraints.txt").write_text("second")
    assert ask(install, monkeypatch, *every) == [["data", "profilers", "test"]]


def test_an_extra_that_is_needed_and_cannot_be_had_is_an_error(install, monkeypatch, capsys):
    def without_network(extras):
        raise install.subprocess.CalledProcessError(1, ["pip"])

    monkeypatch.setattr(install, "install_package", without_network)
    for arguments in ([], ["--extra", "test", "--extra", "data"]):
        monkeypatch.setattr(sys, "argv", ["install.py", *arguments])
        assert install.main() == 1
        assert "Installing failed" in capsys.readouterr().err


def test_an_interrupted_installation_is_made_anew(install, monkeypatch):
    ask(install, monkeypatch)
    (install.ROOT / "constraints.txt").write_text("second")

    def interrupted(extras):
        raise KeyboardInterrupt

    with monkeypatch.context() as meanwhile:
        meanwhile.setattr(install, "install_package", interrupted)
        with pytest.raises(KeyboardInterrupt):
            install.main()
    assert ask(install, monkeypatch) == ["venv", []]


def test_an_environment_of_another_folder_or_python_is_made_anew(install, monkeypatch):
    for key, value in (("root", "/elsewhere"), ("python", [3, 10])):
        ask(install, monkeypatch)
        stamp = json.loads(install.STAMP.read_text())
        install.STAMP.write_text(json.dumps(stamp | {key: value}))
        assert ask(install, monkeypatch) == ["venv", []]


def test_a_named_browser_that_is_not_there_is_an_error(monkeypatch):
    monkeypatch.setenv("CHROMIUM", "no-such-browser")
    with pytest.raises(FileNotFoundError, match="no-such-browser"):
        chromium.find()


def test_the_closing_table_says_loudly_that_the_browser_was_not_run(tmp_path):
    code = (
        "import runpy, sys; sys.argv = ['test.py', '--only', 'browser'];"
        "import subprocess; real = subprocess.run;"
        "subprocess.run = lambda *a, **k: real([sys.executable, '-c', 'import sys; sys.exit(1)']);"
        "runpy.run_path('scripts/test.py', run_name='__main__')"
    )
    for required, code_expected, said in (("", 0, "NOT RUN"), ("1", 1, "FAILED")):
        env = {"PATH": "", "REQUIRE_BROWSER": required}
        run = subprocess.run(
            [sys.executable, "-c", code], cwd=ROOT, env=env, capture_output=True, text=True, check=False
        )
        assert run.returncode == code_expected, run.stderr
        assert said in run.stdout


def test_everything_is_run_where_it_is_asked_for_and_a_named_notebook_alone(monkeypatch):
    runner = load("test", monkeypatch)
    assert all("--all" not in arguments for _, arguments in runner.steps([], [], every=False))
    executed = [arguments for _, arguments in runner.steps([], [], every=True) if "tests/executions.py" in arguments]
    assert [arguments[1:] for arguments in executed] == [[kind, "--all"] for kind in ("first", "again", "browser")]
    alone = runner.steps([], ["notebooks/05_convolution.ipynb"], every=False)
    assert [name.partition(":")[0] for name, _ in alone] == ["units", "notebooks", "notebooks", "browser"]
    assert alone[0][1][-1] == "05"
    assert [name for name, _ in runner.steps(["units"], ["05"], every=False)] == ["units: memory", "units: all others"]


def matrix(row: str) -> subprocess.CompletedProcess:
    command = ["bash", str(ROOT / "scripts" / "matrix.sh"), row]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@posix
def test_the_matrix_names_its_rows_and_the_workflow_runs_each():
    named = matrix("no-such-row")
    assert named.returncode == 2
    rows = set(re.findall(r"^    ([\w| -]+)\)", (ROOT / "scripts" / "matrix.sh").read_text(), re.MULTILINE))
    rows = {row for line in rows for row in line.split(" | ")}
    assert {row for row in rows if row not in named.stdout.split()} == set()
    workflow = (ROOT / ".github" / "workflows" / "test.yml").read_text()
    assert rows - set(re.findall(r"row: ([\w-]+),", workflow)) == {"debian", "first-python"}  # those of .ci/run


@posix
@pytest.mark.parametrize(
    ("printed", "closing", "code"),
    [
        ("echo 9 passed, 0 failed, 1 skipped", "9 passed, 0 failed, 1 skipped", 0),
        ("echo 8 passed, 1 failed, 0 skipped; exit 1", "8 passed, 1 failed, 0 skipped", 1),
        ("echo no network >&2; exit 7", "0 passed, 1 failed, 0 skipped", 1),
    ],
)
def test_ci_closes_with_the_sum_of_its_rows_whatever_happens(tmp_path, printed, closing, code):
    for folder in (".ci", "scripts", "bin"):
        (tmp_path / folder).mkdir()
    program(tmp_path / "scripts", "matrix.sh", printed)
    (tmp_path / ".ci" / "run").write_bytes((ROOT / ".ci" / "run").read_bytes())
    for name in ("dpkg", "chromium"):
        program(tmp_path / "bin", name, "exit 0")
    env = os.environ | {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin"}  # Debian's own Python stands first
    run = subprocess.run(["bash", tmp_path / ".ci" / "run"], env=env, capture_output=True, text=True, check=False)
    assert run.stdout.splitlines()[-1] == closing
    assert run.returncode == code


def test_an_output_is_kept_only_where_nothing_but_a_time_or_a_measured_number_changed(monkeypatch):
    from nbformat.v4 import new_code_cell, new_output

    from notebooks import says_the_same

    def cell(text, *tags, source="measure()"):
        return new_code_cell(source, outputs=[new_output("stream", text=text)], metadata={"tags": list(tags)})

    assert says_the_same(cell("took 1.2 s"), cell("took 10 s"))
    assert not says_the_same(cell("1.2 MiB"), cell("1.3 MiB"))
    assert not says_the_same(cell("took 1.2 s"), cell("took 1.2 s", source="other()"))
    measured = "nbval-ignore-output"
    assert says_the_same(cell("peak  9.5 MiB", measured), cell("peak 10.2 MiB", measured))
    assert not says_the_same(cell("peak 9.5 MiB", measured), cell("peak 9.5 KiB", measured))
