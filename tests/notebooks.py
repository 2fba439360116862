"""Run the notebooks: python tests/notebooks.py store | measure | twice | solved [NOTEBOOK ...]

store    runs each in a fresh kernel and stores its outputs; two runs give the same bytes (`make notebooks`)
measure  prints the time and the peak memory of each one's whole process tree, and holds both to their limits
twice    runs every cell twice in a row, then the whole notebook once more in the same kernel: no error, same text
solved   runs a copy of each in which every exercise is filled in from notebooks/solutions: each check says "right"
"""

import argparse
import configparser
import copy
import os
import queue
import re
import sys
import tempfile
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import nbformat
import psutil
import solutions
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
FAILURES = (CellExecutionError, CellTimeoutError, DeadKernelError)
MIB = 2**20
PEAK_LIMIT = 1536 * MIB  # Binder gives 2 GiB to the kernel and JupyterLab together
# Seconds on two cores. A notebook that trains says so in its metadata: {"dlcourse": {"trains": true}}.
SECONDS, SECONDS_TRAINING = 20, 30
COMPARED = ("text/plain", "text/html", "text/markdown", "text/latex", "application/json")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_TEXT = "Here are sliders or buttons while a kernel is running: run this cell."


def paths() -> list[Path]:
    """All notebooks of the course, in the order in which they are read."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def name_of(path: Path) -> str:
    return path.stem


def code_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    return [cell for cell in notebook.cells if cell.cell_type == "code"]


def tags(cell: nbformat.NotebookNode) -> list[str]:
    return cell.metadata.get("tags", [])


def exercise_cells(notebook: nbformat.NotebookNode) -> list[nbformat.NotebookNode]:
    """The cells with the stub of an exercise. They carry the tag `exercise`."""
    return [cell for cell in code_cells(notebook) if "exercise" in tags(cell)]


def exercise_of(cell: nbformat.NotebookNode) -> str:
    """The id of the exercise whose stub a cell holds, from its last line: check("05.2", …)."""
    found = re.fullmatch(r'check\("(\d\d\.\d+)", \w+\)', cell.source.rstrip().splitlines()[-1])
    assert found, f"the last line of an exercise's cell is its check, got: {cell.source[-60:]!r}"
    return found[1]


def solution(exercise_id: str) -> str:
    return (ROOT / "notebooks" / "solutions" / f"{exercise_id.replace('.', '_')}.py").read_text(encoding="utf-8")


@contextmanager
def kernel(notebook: nbformat.NotebookNode, path: Path) -> Iterator[NotebookClient]:
    """A client with a fresh kernel in the notebook's folder, untouched by the IPython settings of whoever runs it."""
    with tempfile.TemporaryDirectory() as folder:
        env = {key: value for key, value in os.environ.items() if key != "MPLBACKEND"}
        env["IPYTHONDIR"] = env["DLCOURSE_PROGRESS"] = folder  # and without what somebody has solved already
        # Widget state is needed while the notebook runs (an Output widget fails without it) and dropped afterwards.
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            config=Config(KernelManager={"transport_encryption": "auto"}),  # without it each kernel prints a warning
            resources={"metadata": {"path": str(path.parent)}},
        )
        with client.setup_kernel(env=env):
            client.kc.shell_channel.get_msg = patient(client.kc.shell_channel.get_msg)
            yield client


def patient(get_msg: Callable[..., Awaitable[dict]]) -> Callable[..., Awaitable[dict]]:
    """The same wait for a message, in waits of half a second at most.

    While a cell with sliders runs, nbclient itself sends on the socket that it is waiting on; then the answer that comes
    in can go unnoticed until the wait ends, which without this is minutes away (seen in one run of forty).
    """

    async def wait(timeout: float | None = None) -> dict:
        end = float("inf") if timeout is None else time.monotonic() + timeout
        while True:
            left = end - time.monotonic()
            try:
                return await get_msg(timeout=max(0, min(0.5, left)))
            except queue.Empty:
                if left <= 0.5:
                    raise

    return wait


def sanitize(text: str) -> str:
    rules = configparser.RawConfigParser()
    rules.read(ROOT / "tests" / "sanitize.cfg", encoding="utf-8")
    for section in rules.sections():
        text = re.sub(rules[section]["regex"], rules[section]["replace"], text)
    return text


def text_of(cell: nbformat.NotebookNode) -> str:
    """What a reader sees of a cell's outputs, pictures and widgets apart."""
    seen = []
    for output in cell.outputs:
        if output.output_type == "stream":
            seen.append(f"{output.name}: {output.text}")
        elif output.output_type == "error":
            seen.append(f"{output.ename}: {output.evalue}")
        else:
            seen += [f"{kind}: {output.data[kind]}" for kind in COMPARED if kind in output.data]
    return sanitize("\n".join(seen))


def kinds(cell: nbformat.NotebookNode) -> list[list[str]]:
    return [[output.output_type, *sorted(output.get("data", {}))] for output in cell.outputs]


def pictures(cell: nbformat.NotebookNode) -> list[str]:
    data = [output.get("data", {}) for output in cell.outputs]
    return [str(value) for one in data for kind, value in sorted(one.items()) if kind.startswith("image/")]


def numbers_apart(text: str) -> str:
    """Text without its numbers and without the width that they gave to columns and rules."""
    return re.sub(r"[\s─━=-]+", " ", re.sub(r"\d[\d,.]*(e[-+]?\d+)?", "#", text))


def says_the_same(old: nbformat.NotebookNode, new: nbformat.NotebookNode) -> bool:
    """Whether two runs of a cell differ in nothing but what may differ: then the old output is kept, byte for byte.

    Times and addresses may, and in a cell tagged nbval-ignore-output every number and every picture too.
    """
    if old.source != new.source or tags(old) != tags(new):
        return False
    if "nbval-ignore-output" in tags(new):
        return kinds(old) == kinds(new) and numbers_apart(text_of(old)) == numbers_apart(text_of(new))
    return pictures(old) == pictures(new) and text_of(old) == text_of(new)


def store(path: Path, fresh: bool) -> None:
    """Run the notebook and write it back with outputs that hold no random number and no widget state.

    An output that was stored before stays where the new one `says_the_same`, unless `fresh`: so two runs give the same
    bytes, and a change to the file is a change of what the notebook says.
    """
    notebook = nbformat.read(path, as_version=4)
    before = copy.deepcopy(notebook)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    with kernel(notebook, path) as client:
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
    for index, cell in enumerate(notebook.cells):
        cell.id = f"cell-{index:03d}"
        cell.metadata.pop("execution", None)
        for output in cell.get("outputs", []):
            if output.get("data", {}).pop(WIDGET_VIEW, None):  # a model's id is random, and its text is for programmers
                output.data["text/plain"] = WIDGET_TEXT
    for number, (old, new) in enumerate(zip(code_cells(before), code_cells(notebook), strict=True), 1):
        if not fresh and old.execution_count == number and says_the_same(old, new):
            new.outputs = old.outputs
    kept = {key: notebook.metadata[key] for key in ("dlcourse",) if key in notebook.metadata}
    python = {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"}
    notebook.metadata = nbformat.from_dict({**kept, "kernelspec": python, "language_info": {"name": "python"}})
    nbformat.validate(notebook)
    unfinished = path.with_suffix(".tmp")
    unfinished.write_text(nbformat.writes(notebook) + "\n", encoding="utf-8", newline="\n")
    os.replace(unfinished, path)


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
        return int(re.search(r"VmHWM:\s+(\d+) kB", status.read_text())[1]) * 1024  # type: ignore[index]
    return getattr(process.memory_info(), "peak_wset", 0)


class Sampler(threading.Thread):
    """Looks at a process tree twenty times a second and keeps the largest sum. A shorter peak can be missed."""

    def __init__(self, root: psutil.Process) -> None:
        super().__init__(daemon=True)
        self.root, self.peak, self.over = root, 0, threading.Event()

    def run(self) -> None:
        while not self.over.wait(0.05):
            try:
                self.peak = max(self.peak, tree_bytes(self.root))
            except psutil.NoSuchProcess:
                return


def measure(path: Path) -> tuple[float, float, int, str]:
    """-> seconds from the kernel's start to its last cell, seconds of processor time of the kernel and its ended children,
    peak bytes (the sampled tree's or the kernel's own), and which cell took longest."""
    notebook = nbformat.read(path, as_version=4)
    start = time.perf_counter()
    with kernel(notebook, path) as client:
        root = psutil.Process(client.km.provisioner.pid)
        sampler = Sampler(root)
        sampler.start()
        longest = (0.0, "")
        for index, cell in enumerate(notebook.cells):
            begun = time.perf_counter()
            client.execute_cell(cell, index)
            longest = max(longest, (time.perf_counter() - begun, f"{cell.source[:60]!r}"))
        seconds = time.perf_counter() - start
        sampler.over.set()
        sampler.join()
        slowest = f"slowest cell: {longest[0]:.1f} s, {longest[1]}"
        return seconds, sum(root.cpu_times()[:4]), max(sampler.peak, high_water(root)), slowest


def twice(path: Path) -> list[str]:
    """Each cell that says something else the second time, or when the whole notebook is run again without a restart."""
    notebook = nbformat.read(path, as_version=4)
    cells = [(index, cell) for index, cell in enumerate(notebook.cells) if cell.cell_type == "code"]
    differing = []
    with kernel(notebook, path) as client:

        def run(index: int, cell: nbformat.NotebookNode) -> str:
            once = copy.deepcopy(cell)
            client.execute_cell(once, index)
            return text_of(once)

        first = {}
        for again, passes in (("run twice in a row", 2), ("run again without a restart", 1)):
            for number, (index, cell) in enumerate(cells, 1):
                for text in [run(index, cell) for _ in range(passes)]:
                    expected = first.setdefault(index, text)
                    if text != expected and "nbval-ignore-output" not in tags(cell):
                        differing.append(f"code cell {number}, {again}:\n  was: {expected!r}\n  now: {text!r}")
    return differing


def solved(path: Path) -> list[str]:
    """Each exercise whose solution is not "right" in its notebook. An error in any cell of the filled copy is raised."""
    notebook = nbformat.read(path, as_version=4)
    exercises = exercise_cells(notebook)
    for cell in exercises:
        cell.source = solution(exercise_of(cell))
    with kernel(notebook, path) as client:
        for index, cell in enumerate(notebook.cells):
            client.execute_cell(cell, index)
    return [text_of(cell) for cell in exercises if ": right." not in text_of(cell)]


def report_measures(notebooks: list[Path], slow: float) -> int:
    print(f"{'notebook':<32} {'time':>8} {'of it used':>11} {'limit':>8} {'peak memory':>12} {'limit':>10}")
    failures = 0
    for path in notebooks:
        trains = nbformat.read(path, as_version=4).metadata.get("dlcourse", {}).get("trains", False)
        limit = (SECONDS_TRAINING if trains else SECONDS) * slow
        try:
            seconds, used, peak, slowest = measure(path)
        except FAILURES as error:
            failures += 1
            print(f"{name_of(path):<32} failed: {error}", flush=True)
            continue
        # Where others use the machine too, the clock says little about the notebook: both times must be over. A wait
        # uses no processor, so the clock alone counts where it is far over.
        late = min(seconds, used) > limit or seconds > 5 * limit
        over = [what for what, much in (("TIME", late), ("MEMORY", peak > PEAK_LIMIT)) if much]
        failures += bool(over)
        row = (
            f"{name_of(path):<32} {seconds:>6.1f} s {used:>9.1f} s {limit:>6.0f} s "
            f"{peak / MIB:>8.0f} MiB {PEAK_LIMIT / MIB:>6.0f} MiB"
        )
        print(row, *(f" OVER ITS LIMIT OF {what} ({slowest})" for what in over), flush=True)
    return failures


def report(notebooks: list[Path], complaints_of: Callable[[Path], list[str]], good: str, bad: str) -> int:
    """One after the other: two kernels that start at once can choose the same port. The complaints stand at the end too,
    where somebody who sees only the end of a long output finds them."""
    failures: dict[Path, list[str]] = {}
    for path in notebooks:
        try:
            found = complaints_of(path)
        except FAILURES as error:
            found = [str(error)]
        if found:
            failures[path] = found
        print(f"{name_of(path):<32} {bad if found else good}", flush=True)
    for path, found in failures.items():
        print(f"\n{name_of(path)} {bad}:", *found, sep="\n  ", flush=True)
    return len(failures)


def report_stored(notebooks: list[Path], fresh: bool) -> int:
    solutions.write()  # what the notebooks load
    failures = 0
    for path in notebooks:
        try:
            store(path, fresh)
            print(f"{name_of(path):<32} stored", flush=True)
        except FAILURES as error:
            failures += 1
            print(f"{name_of(path):<32} failed and was left as it was: {error}", flush=True)
    return failures


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["store", "measure", "twice", "solved"])
    parser.add_argument("notebooks", nargs="*", type=Path, help="some notebooks only (all when none is named)")
    parser.add_argument("--slow", type=float, default=1.0, help="multiply the limits of time (for a slow machine)")
    parser.add_argument("--fresh", action="store_true", help="store: keep no output of before, not even of a time")
    options = parser.parse_args()
    notebooks = [path.resolve() for path in options.notebooks] or paths()
    if not notebooks:
        print("There is no notebook in notebooks/.")
        return 1
    import matplotlib.font_manager  # noqa: F401  a first import on a machine builds the font cache, and says so

    if options.what == "store":
        return min(report_stored(notebooks, options.fresh), 1)
    if options.what == "measure":
        return min(report_measures(notebooks, options.slow), 1)
    if options.what == "solved":
        return min(report(notebooks, solved, "every exercise solved", "NOT SOLVED"), 1)
    return min(report(notebooks, twice, "the same every time", "DIFFERS"), 1)


if __name__ == "__main__":
    sys.exit(main())
