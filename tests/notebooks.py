"""Read notebooks, run them, store their outputs: python tests/notebooks.py store [--fresh] [NOTEBOOK ...]

Each is run in a fresh kernel; two runs give the same bytes (`make notebooks`). executions.py tests them.
"""

import argparse
import configparser
import copy
import importlib.metadata
import os
import queue
import re
import sys
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import ipc
import nbformat
import solutions
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError, DeadKernelError
from packaging.requirements import Requirement
from traitlets.config import Config

ROOT = Path(__file__).resolve().parent.parent
ENCRYPTED = {"transport_encryption": "auto"}  # without it each kernel that listens at a port prints a warning
FAILURES = (CellExecutionError, CellTimeoutError, DeadKernelError)
COMPARED = ("text/plain", "text/html", "text/markdown", "text/latex", "application/json")
WIDGET_VIEW = "application/vnd.jupyter.widget-view+json"
WIDGET_TEXT = "Here are sliders or buttons while a kernel is running: run this cell."


def paths() -> list[Path]:
    """All notebooks of the course, in the order in which they are read."""
    return sorted((ROOT / "notebooks").glob("*.ipynb"))


def named(text: str) -> Path:
    """The notebook with this number, such as "05", name or path. Raises SystemExit with the names that there are."""
    found = [path for path in paths() if text in (path.stem.split("_")[0], path.stem, path.name)]
    if not found and Path(text).is_file():
        found = [Path(text).resolve()]
    if len(found) != 1:
        raise SystemExit(f"There is no notebook {text!r}: there are {', '.join(map(name_of, paths()))}.")
    return found[0]


def name_of(path: Path) -> str:
    return path.stem


def trains(path: Path) -> bool:
    return nbformat.read(path, as_version=4).metadata.get("dlcourse", {}).get("trains", False)


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
    with ipc.environment() as env:
        # Widget state is needed while the notebook runs (an Output widget fails without it) and dropped afterwards.
        client = NotebookClient(
            notebook,
            timeout=300,
            kernel_name="python3",
            record_timing=False,
            coalesce_streams=True,
            config=Config(KernelManager=ipc.options(env["JUPYTER_RUNTIME_DIR"]) | ENCRYPTED),
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
    parser.add_argument("what", choices=["store"])
    parser.add_argument("notebooks", nargs="*", type=named, help='such as "05"; all where none is named')
    parser.add_argument("--fresh", action="store_true", help="keep no output of before, not even of a time")
    options = parser.parse_args()
    import matplotlib.font_manager  # noqa: F401  a first import on a machine builds the font cache, and says so

    return min(report_stored(options.notebooks or paths(), options.fresh), 1)


if __name__ == "__main__":
    sys.exit(main())
