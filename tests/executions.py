"""Execute notebooks and look at them: python tests/executions.py first | again | browser [--all] [NOTEBOOK ...]

first    nbval in a fresh kernel: the outputs are those that are stored. Time and peak memory of the process tree are
         sampled meanwhile and held to their limits. One notebook at a time.
again    in one more kernel: each cell twice in a row, the solution after each stub, then all once more from the top:
         no error, the same text, each solution "right". Two notebooks at a time.
browser  JupyterLab in Chromium: 00, and the notebooks whose cells with sliders changed

What has not changed since it passed is not run again, unless --all or the notebook is named.
"""

import argparse
import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import calibration
import ipc
import nbformat
import psutil
import unchanged

import notebooks
from notebooks import FAILURES, ROOT, exercise_of, name_of, solution, tags, text_of

MIB = 2**20
PEAK_LIMIT = 1536 * MIB  # Binder gives 2 GiB to the kernel and JupyterLab together
# Seconds on two quiet cores of the machine of calibration.py. A notebook that trains says so in its metadata:
# {"dlcourse": {"trains": true}}.
SECONDS, SECONDS_TRAINING = 20, 30
BUSY = 0.25  # cores that other programs used: above it a time says more of them than of the notebook
NOT_JUDGED = 75  # exit code: nothing failed, but something could not be told (EX_TEMPFAIL of sysexits.h)
PASSED, FAILED = "passed", "FAILED"


# The first execution: nbval, watched.


class Seen(NamedTuple):
    """What was seen of a kernel: its life by the clock and in processor time, peak bytes of it and all below it, and how
    many cores other programs used meanwhile."""

    seconds: float
    used: float
    peak: int
    others: float


def tree_bytes(root: psutil.Process) -> int:
    """Bytes in memory of a process and all below it. A page that several share counts once (PSS; elsewhere USS)."""
    total = 0
    for process in [root, *root.children(recursive=True)]:
        try:
            memory = process.memory_full_info()
            total += getattr(memory, "pss", memory.uss)
        except psutil.NoSuchProcess:
            continue
        except psutil.AccessDenied:
            total += process.memory_info().rss
    return total


def high_water(process: psutil.Process) -> int:
    """The most that the kernel's own process ever had in memory, as the system counted it. 0 where it does not tell."""
    status = Path(f"/proc/{process.pid}/status")
    if status.exists():
        found = re.search(r"VmHWM:\s+(\d+) kB", status.read_text())
        return int(found[1]) * 1024 if found else 0  # a process that has just ended has none
    return getattr(process.memory_info(), "peak_wset", 0)


def busy_seconds() -> float:
    """Processor time that was used on this machine since it began."""
    times = psutil.cpu_times()._asdict()
    inside = ("guest", "guest_nice")  # already in user and nice
    return sum(value for name, value in times.items() if name not in ("idle", "iowait", *inside))


class Watch(threading.Thread):
    """Looks twenty times a second at the kernel that a process starts. A peak that is shorter can be missed."""

    def __init__(self, parent: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.parent, self.over = parent, threading.Event()
        self.begun, self.ended, self.used, self.peak = 0.0, 0.0, 0.0, 0
        self.clock, self.busy, self.children = time.perf_counter(), busy_seconds(), sum(os.times()[2:4])

    def run(self) -> None:
        kernel = None
        while not self.over.wait(0.05):
            try:
                kernel = kernel or next(
                    (one for one in self.parent.children() if "ipykernel" in str(one.cmdline())), None
                )
                if kernel is None or kernel.status() == psutil.STATUS_ZOMBIE:
                    continue
                self.begun = self.begun or kernel.create_time()
                self.used, self.ended = sum(kernel.cpu_times()[:4]), time.time()
                self.peak = max(self.peak, tree_bytes(kernel), high_water(kernel))
            except (psutil.NoSuchProcess, FileNotFoundError, ProcessLookupError):
                continue

    def seen(self) -> Seen:
        self.over.set()
        self.join()
        clock = time.perf_counter() - self.clock
        own = sum(os.times()[2:4]) - self.children  # pytest and its kernel have ended, and were waited for
        return Seen(self.ended - self.begun, self.used, self.peak, max(0.0, (busy_seconds() - self.busy - own) / clock))


def verdict(seen: Seen, speed: calibration.Speed, limit: float, peak_limit: int = PEAK_LIMIT) -> tuple[str, str]:
    """-> "", "NOT JUDGED" or FAILED, and why. limit: seconds on the machine of calibration.py.

    Both times must be over, each beside what the fixed piece of work took by the same measure: other programs stretch
    the clock, and threads that wait for each other use processors. A wait uses none, so where the clock is far over it
    counts alone.
    """
    if seen.peak > peak_limit:
        return FAILED, f"OVER ITS LIMIT OF MEMORY: {seen.peak / MIB:.0f} of {peak_limit / MIB:.0f} MiB"
    clock, used = seen.seconds / speed.clock, seen.used / speed.used
    if min(clock, used) <= limit and clock <= 5 * limit:
        return "", ""
    over = f"{clock:.1f} of {limit:.0f} s"
    if seen.others > BUSY:
        return "NOT JUDGED", (
            f"its time, {over}: other programs used {seen.others:.1f} of {os.cpu_count()} cores. Run it again when they "
            "have ended; DLCOURSE_SLOW=2 doubles the limits"
        )
    return (
        FAILED,
        f"OVER ITS LIMIT OF TIME: {over} on a machine with nothing else to do; DLCOURSE_SLOW=2 doubles the limits",
    )


def nbval(path: Path, strict: bool) -> tuple[int, str, Seen]:
    """-> pytest's exit code, what it printed, and what was seen of the kernel."""
    options = ["-q", "-o", "timeout=600", "--nbval-current-env", "--nbval-cell-timeout=300", "--durations=1"]
    options += ["--nbval-sanitize-with=tests/sanitize.cfg", "--nbval" if strict else "--nbval-lax"]
    command = [sys.executable, ROOT / "tests" / "ipc.py", *options, path]
    with ipc.environment() as env:
        process = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            encoding="utf-8",
            errors="replace",
        )
        watch = Watch(psutil.Process(process.pid))
        watch.start()
        printed, _ = process.communicate()
        return process.returncode, printed, watch.seen()


def is_strict() -> bool:
    """Stored outputs belong to the tested versions on Linux; elsewhere only errors count."""
    others = notebooks.departures()
    if sys.platform == "linux" and not others:
        return True
    print(f"Stored outputs are not compared: {', '.join(others) or sys.platform} is not what they were made with.")
    return False


def first(chosen: list[Path], every: bool) -> int:
    """One after the other, alone on the machine as far as that is ours to say: they are timed."""
    strict, slow = is_strict(), float(os.environ.get("DLCOURSE_SLOW", "1"))
    print(
        f"{'notebook':<32} {'time':>9} {'limit':>6}  {'peak memory':>11}    (seconds as on the machine of calibration.py)"
    )
    failures: dict[str, list[str]] = {}
    unclear, speed = 0, None
    for path in chosen:
        with attempt("first", path, every) as run:
            if run is None:
                continue
            before = speed or calibration.measure()
            code, printed, seen = nbval(path, strict)
            speed = calibration.measure()
            meanwhile = calibration.Speed(*((a + b) / 2 for a, b in zip(before, speed, strict=True)))
            limit = slow * (SECONDS_TRAINING if notebooks.trains(path) else SECONDS)
            state, why = verdict(seen, meanwhile, limit)
            if code:
                state, why = FAILED, f"pytest ended with {code}"
            run.good = not state
            unclear += state == "NOT JUDGED"
            if state == FAILED:
                failures[name_of(path)] = [why, printed]
            row = f"{name_of(path):<32} {seen.seconds / meanwhile.clock:>7.1f} s {limit:>4.0f} s  {seen.peak / MIB:>7.0f} MiB"
            print(f"{row}  {state or PASSED} {why}", flush=True)
            if state:
                print("".join(re.findall(r"^[\d.]+s call .*\n?", printed, re.MULTILINE)), end="", flush=True)
    return report(failures) or (NOT_JUDGED if unclear else 0)


# The second execution: one kernel, each cell twice, solutions, and all once more.


def again_in_one_kernel(path: Path) -> list[str]:
    """What is wrong: a cell that says something else the second time, a solution that is not right."""
    notebook = nbformat.read(path, as_version=4)
    cells = [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    wrong: list[str] = []
    said: dict[int, str] = {}
    with notebooks.kernel(notebook, path) as client:

        def run(index: int, cell: nbformat.NotebookNode, source: str) -> str:
            once = nbformat.from_dict({**cell, "source": source})
            client.execute_cell(once, index)  # which puts it into the notebook
            return text_of(once)

        def same(number: int, index: int, cell: nbformat.NotebookNode, when: str) -> None:
            text = run(index, cell, cell.source)
            expected = said.setdefault(index, text)
            if text != expected and "nbval-ignore-output" not in tags(cell):
                wrong.append(f"code cell {number}, {when}:\n  was: {expected!r}\n  now: {text!r}")

        for number, (index, cell) in enumerate(cells, 1):
            same(number, index, cell, "run once")
            same(number, index, cell, "run twice in a row")
            if "exercise" in tags(cell):
                text = run(index, cell, solution(exercise_of(cell)))
                if ": right." not in text:
                    wrong.append(f"code cell {number}, solved:\n  {text}")
        for number, (index, cell) in enumerate(cells, 1):
            same(number, index, cell, "run again without a restart")
    return wrong


def again(chosen: list[Path], every: bool) -> int:
    """Each in a process of its own, two at a time: nothing is timed here."""
    failures: dict[str, list[str]] = {}

    def one(path: Path) -> None:
        with attempt("again", path, every) as run:
            if run is None:
                return
            begun = time.perf_counter()
            command = [sys.executable, __file__, "alone", path]
            ended = subprocess.run(command, capture_output=True, encoding="utf-8", errors="replace", check=False)
            run.good = not ended.returncode
            if not run.good:
                failures[name_of(path)] = [ended.stdout, ended.stderr]
            state = PASSED if run.good else FAILED
            print(f"{name_of(path):<32} {time.perf_counter() - begun:>7.1f} s  {state}", flush=True)

    with ThreadPoolExecutor(1 if ipc.TRANSPORT == "tcp" else 2) as pool:
        list(pool.map(one, chosen))
    return report(failures)


def alone(chosen: list[Path], every: bool) -> int:
    """What `again` starts, a process for each notebook."""
    try:
        wrong = again_in_one_kernel(*chosen)
    except FAILURES as error:
        wrong = [str(error)]
    print(*wrong, sep="\n", end="\n" if wrong else "")
    return int(bool(wrong))


# The third execution: a browser.


def browser(chosen: list[Path], every: bool) -> int:
    """pytest on tests/browser for 00 and what has changed, or for every one."""
    named = [path for path in chosen if every or path.stem.startswith("00") or unchanged.sliders_changed(path)]
    print(f"In Chromium: {', '.join(map(name_of, named))}", flush=True)
    if len(named) < len(chosen):
        print("The others' cells with sliders have not changed; make test-all runs every one.", flush=True)
    command = [sys.executable, "-m", "pytest", "-q", "tests/browser", "-k", " or ".join(map(name_of, named))]
    code = subprocess.run(command, cwd=ROOT, check=False).returncode
    for path in named:
        digest = unchanged.sliders(path.read_text(encoding="utf-8"))
        unchanged.remember("browser", path, "failed" if code else digest)
    return code


# What they share.


class Run:
    good = False


@contextmanager
def attempt(execution: str, path: Path, every: bool) -> Iterator[Run | None]:
    """None where nothing has changed since this execution of the notebook passed. Else what becomes of it is kept."""
    if not every and unchanged.has_passed(execution, path):
        print(f"{name_of(path):<32} unchanged since it passed here: not run (make test-all runs it)", flush=True)
        yield None
        return
    key, run = unchanged.key(path), Run()
    unchanged.forget(execution, path)
    yield run
    if run.good:
        unchanged.remember(execution, path, key)


def report(failures: dict[str, list[str]]) -> int:
    """What failed stands at the end, where somebody who sees only the end of a long output finds it."""
    for name, found in failures.items():
        print(f"\n{name} {FAILED}:", *found, sep="\n", flush=True)
    return int(bool(failures))


EXECUTIONS: dict[str, Callable[[list[Path], bool], int]] = {
    "first": first,
    "again": again,
    "browser": browser,
    "alone": alone,
}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("execution", choices=EXECUTIONS)
    parser.add_argument("notebooks", nargs="*", type=notebooks.named, help='such as "05"; all where none is named')
    parser.add_argument("--all", action="store_true", help="also what has not changed since it passed here")
    options = parser.parse_args()
    import matplotlib.font_manager  # noqa: F401  a first import on a machine builds the font cache, and says so

    return EXECUTIONS[options.execution](options.notebooks or notebooks.paths(), options.all or bool(options.notebooks))


if __name__ == "__main__":
    sys.exit(main())
