"""Run every test, one kind after another, and close with one table: python test.py [--only KIND]

A kind that fails does not stop the others. A kind that could not run is named NOT RUN, loudly; with REQUIRE_BROWSER=1
a missing browser is a failure. DLCOURSE_SLOW=3 multiplies the notebooks' limits of time, for a slow machine.
"""

import argparse
import importlib.metadata
import os
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

from packaging.requirements import Requirement

ROOT = Path(__file__).resolve().parent.parent
CHROMIUM = "tests/browser/chromium.py"
PYTEST = ["-m", "pytest", "-q"]
LAST = 60  # lines of a kind that failed, written once more at the end
TWO = ["-n", "2", "--dist", "loadfile"]  # two files at a time


def departures() -> list[str]:
    """What is installed in another version than constraints.txt says."""
    found = []
    for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        pin = Requirement(line)
        if pin.marker is not None and not pin.marker.evaluate():
            continue
        try:
            version = importlib.metadata.version(pin.name)
        except importlib.metadata.PackageNotFoundError:
            continue
        if not pin.specifier.contains(version, prereleases=True):
            found.append(f"{pin.name} {version}")
    return found


def nbval() -> tuple[str, list[str]]:
    """Strict comparison of stored outputs belongs to the tested versions on Linux; elsewhere only errors count."""
    others = departures()
    options = ["--nbval-current-env", "--nbval-sanitize-with=tests/sanitize.cfg", "--nbval-cell-timeout=300"]
    notebooks = sorted(str(path.relative_to(ROOT)) for path in (ROOT / "notebooks").glob("*.ipynb"))
    # One after the other: two kernels that start at once can choose the same port.
    command = [*PYTEST, "-o", "timeout=600", *options, *(notebooks or ["notebooks"])]
    if sys.platform == "linux" and not others:
        return "notebooks: stored outputs, strict", [*command, "--nbval"]
    print(f"Stored outputs are not compared: {', '.join(others) or sys.platform} is not what they were made with.")
    return "notebooks: no error (outputs not compared)", [*command, "--nbval-lax"]


def steps(kind: str) -> list[tuple[str, list[str]]]:
    """-> (what it is called, arguments of python), in order."""
    found = []
    if kind in ("lint", "all"):
        found += [
            ("lint: ruff check", ["-m", "ruff", "check"]),
            ("lint: ruff format", ["-m", "ruff", "format", "--check"]),
            ("lint: types, mypy", ["-m", "mypy"]),
            (
                "lint: who imports whom",
                ["-c", "from importlinter.cli import lint_imports_command as run; run()", "--no-logo"],
            ),
        ]
    if kind in ("units", "all"):
        found += [
            # The tests of memory look at their own process: alone on the machine, in one process.
            ("units: memory", [*PYTEST, "tests/memory"]),
            ("units: all others", [*PYTEST, *TWO, "tests", "--ignore=tests/browser", "--ignore=tests/memory"]),
        ]
    if kind in ("notebooks", "all"):
        slow = os.environ.get("DLCOURSE_SLOW", "1")
        found += [
            nbval(),
            ("notebooks: time and peak memory", ["tests/notebooks.py", "measure", "--slow", slow]),
            ("notebooks: every cell twice", ["tests/notebooks.py", "twice"]),
            ("notebooks: every exercise solved", ["tests/notebooks.py", "solved"]),
        ]
    if kind in ("browser", "all"):
        found.append(("browser: JupyterLab", [*PYTEST, "tests/browser"]))
    return found


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
    return "FAILED" if process.returncode else "passed", time.perf_counter() - start, list(last)


def main() -> int:
    parser = argparse.ArgumentParser(description="Run every test of the project.")
    parser.add_argument("--only", choices=["lint", "units", "notebooks", "browser", "all"], default="all")
    kind = parser.parse_args().only

    start = time.perf_counter()
    results = [(name, *run(name, arguments)) for name, arguments in steps(kind)]

    for name, ended, _, last in results:
        if ended == "FAILED":  # again, where somebody who sees only the end of a long output finds it
            print(f"\n=== {name}: {ended}, its last lines again\n{''.join(last)}", end="")
    print(f"\n{'=' * 72}")
    for name, ended, seconds, _ in results:
        print(f"{name:<48} {ended:<8} {seconds:>6.1f} s")
    print(f"{'all together':<48} {'':<8} {time.perf_counter() - start:>6.1f} s")
    ends = [ended for _, ended, *_ in results]
    if "NOT RUN" in ends:
        print("\nNOT RUN: the browser tests. No Chromium was found: install one (Debian: apt-get install chromium),")
        print("or name one: CHROMIUM=/path/to/chromium make test")
    print(f"\n{ends.count('passed')} passed, {ends.count('FAILED')} failed, {ends.count('NOT RUN')} skipped")
    return min(ends.count("FAILED"), 1)


if __name__ == "__main__":
    sys.exit(main())
