"""Run every test, one kind after another, and close with one table: python test.py [--only KIND] [--notebook 05] [--all]

A kind that fails does not stop the others. A kind that could not run is named NOT RUN, loudly; with REQUIRE_BROWSER=1
a missing browser is a failure. What has not changed since it passed here is left out of the notebooks' tests, which say
so; --all leaves out nothing, nor does CI (CI=true). DLCOURSE_SLOW=3 multiplies the limits of time.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = "tests/browser/chromium.py"
PYTEST = ["-m", "pytest", "-q"]
LAST = 60  # lines of a kind that failed, written once more at the end
OF_A_NOTEBOOK = ["tests/test_notebooks_stored.py", "tests/test_teaching.py", "tests/exercises/test_all_exercises.py"]
TWO = ["-n", "2", "--dist", "loadfile"]  # two files at a time
KINDS = ("lint", "units", "first", "again", "browser")  # the last three are executions of notebooks
STATES = {0: "passed", 75: "NOT JUDGED"}  # an exit code of tests/executions.py; every other one is a failure
INTRODUCTION = """\
On two quiet cores this takes about 12 minutes the first time and 5 where one notebook has changed: a notebook that is
as it was when it passed here is not run again, and is named. One notebook, its exercises and its page in the browser:
make test NOTEBOOK=05. Everything, whatever passed before: make test-all."""


def steps(kinds: list[str], chosen: list[str], every: bool) -> list[tuple[str, list[str]]]:
    """-> (what it is called, arguments of python), in order. chosen: notebooks; [] for all. Where no kind is named, a
    chosen notebook is tested alone."""
    which = chosen or (["--all"] if every else [])
    found: list[tuple[str, str, list[str]]] = [
        ("lint", "lint: ruff check", ["-m", "ruff", "check"]),
        ("lint", "lint: ruff format", ["-m", "ruff", "format", "--check"]),
        ("lint", "lint: types, mypy", ["-m", "mypy"]),
        (
            "lint",
            "lint: who imports whom",
            ["-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-logo"],
        ),
        # The tests of memory look at their own process: alone on the machine, in one process.
        ("units", "units: memory", [*PYTEST, "tests/memory"]),
        ("units", "units: all others", [*PYTEST, *TWO, "tests", "--ignore=tests/browser", "--ignore=tests/memory"]),
        ("first", "notebooks: outputs, time, peak memory", ["tests/executions.py", "first", *which]),
        ("again", "notebooks: twice, solved, again", ["tests/executions.py", "again", *which]),
        ("browser", "browser: JupyterLab", ["tests/executions.py", "browser", *which]),
    ]
    if chosen and not kinds:
        numbers = " or ".join(Path(name).name[:2] for name in chosen)
        own = ("units", f"units: notebook {numbers}", [*PYTEST, *OF_A_NOTEBOOK, "-k", numbers])
        found = [own, *(step for step in found if step[0] not in ("lint", "units"))]
    return [(name, arguments) for kind, name, arguments in found if kind in (kinds or KINDS)]


def run(name: str, arguments: list[str]) -> tuple[str, float, list[str]]:
    """-> how it ended, seconds, and the last lines that it wrote."""
    print(f"\n=== {name}", flush=True)
    start = time.perf_counter()
    if name.startswith("browser") and not os.environ.get("REQUIRE_BROWSER"):
        browser = subprocess.run([sys.executable, CHROMIUM], cwd=ROOT, check=False)
        if browser.returncode:
            return "NOT RUN", time.perf_counter() - start, []
    with tempfile.TemporaryDirectory() as nobodys:  # whoever runs the tests may have solved exercises
        environment = {**os.environ, "DLCOURSE_PROGRESS": nobodys, "PYTHONUNBUFFERED": "1", "PYTHONIOENCODING": "utf-8"}
        command = [sys.executable, *arguments]
        last: deque[str] = deque(maxlen=LAST)
        with subprocess.Popen(
            command,
            cwd=ROOT,
            env=environment,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                print(line, end="", flush=True)
                last.append(line)
    return STATES.get(process.returncode, "FAILED"), time.perf_counter() - start, list(last)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run every test of the project.")
    parser.add_argument("--only", nargs="+", choices=KINDS, default=[], help="some kinds of tests (else every one)")
    parser.add_argument("--notebook", nargs="+", default=[], help="some notebooks, such as 05, with their exercises")
    parser.add_argument(
        "--all", action="store_true", help="also notebooks that have not changed since they passed here"
    )
    options = parser.parse_args()
    every = options.all or os.environ.get("CI", "").lower() in ("1", "true")

    print(INTRODUCTION, flush=True)
    start = time.perf_counter()
    results = [(name, *run(name, arguments)) for name, arguments in steps(options.only, options.notebook, every)]

    for name, ended, _, last in results:
        if ended == "FAILED":  # again, where somebody who sees only the end of a long output finds it
            print(f"\n=== {name}: {ended}, its last lines again\n{''.join(last)}", end="")
    print(f"\n{'=' * 72}")
    for name, ended, seconds, _ in results:
        print(f"{name:<48} {ended:<10} {seconds:>6.1f} s")
    print(f"{'all together':<48} {'':<10} {time.perf_counter() - start:>6.1f} s")
    ends = [ended for _, ended, *_ in results]
    if "NOT RUN" in ends:
        print("\nNOT RUN: the browser tests. No Chromium was found: install one (Debian: apt-get install chromium),")
        print("or name one: CHROMIUM=/path/to/chromium make test")
    if "NOT JUDGED" in ends:
        print(
            "\nNOT JUDGED: a notebook's time, since other programs used the machine meanwhile. Nothing else is wrong with it."
        )
    skipped = ends.count("NOT RUN") + ends.count("NOT JUDGED")
    print(f"\n{ends.count('passed')} passed, {ends.count('FAILED')} failed, {skipped} skipped")
    return min(ends.count("FAILED"), 1)


if __name__ == "__main__":
    sys.exit(main())
