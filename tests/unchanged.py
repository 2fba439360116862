"""What has not changed since it last passed here need not run again in `make test`: a key of all that a notebook hangs on.

The keys lie in .passed, a file for each execution of each notebook. It is removed before a run and written after a good one.
"""

import ast
import hashlib
import importlib.metadata
import os
import platform
import re
import subprocess
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path

import nbformat
from IPython.core.inputtransformer2 import TransformerManager

ROOT = Path(__file__).resolve().parent.parent
RUNNER = ("tests/notebooks.py", "tests/executions.py", "tests/ipc.py", "tests/calibration.py", "tests/unchanged.py")
SETTINGS = ("tests/sanitize.cfg", "pyproject.toml", "constraints.txt")
# A cell that starts a command or a process can run any part of the package.
STARTS = re.compile(
    r"^\s*(!|%%?(bash|sh|script|system|run)\b)|subprocess|multiprocessing|isolated|os\.system|Popen", re.MULTILINE
)
LARGE = 2**20


def key(notebook: Path) -> str:
    """A digest of the notebook, its exercises, what it imports, the data, the runner, the versions and the processor."""
    number = notebook.stem.split("_")[0]
    files = {notebook, *(ROOT / name for name in (*RUNNER, *SETTINGS)), *(ROOT / "data").rglob("*")}
    files |= set((ROOT / "notebooks" / "solutions").glob(f"{number}_*.py"))
    files |= modules(notebook)
    digest = hashlib.sha256(machine().encode())
    for file in sorted(file for file in files if file.is_file()):
        digest.update(f"{file.relative_to(ROOT)}\0".encode())
        digest.update(content(file))
    return digest.hexdigest()


def content(file: Path) -> bytes:
    """What stands for a file: its bytes; of a large one, such as a downloaded data set, its size and time."""
    about = file.stat()
    return f"{about.st_size} {about.st_mtime_ns}".encode() if about.st_size > LARGE else file.read_bytes()


@cache
def machine() -> str:
    """Python, what is installed, and the processor: each may change a digit or a time."""
    installed = {f"{dist.metadata['Name']} {dist.version}" for dist in importlib.metadata.distributions()}
    info = Path("/proc/cpuinfo")
    models = (
        set(re.findall(r"^model name.*", info.read_text(), re.MULTILINE)) if info.exists() else {platform.processor()}
    )
    kernels = os.environ.get("OPENBLAS_CORETYPE", ""), os.environ.get("NPY_DISABLE_CPU_FEATURES", "")
    return "\n".join([sys.version, platform.machine(), str(os.cpu_count()), *sorted(models | installed), *kernels])


def modules(notebook: Path) -> set[Path]:
    """The files of the package that a notebook imports, with all that those import, and its exercises."""
    package = {dotted(file): file for file in (ROOT / "dlcourse").rglob("*.py")}
    cells = nbformat.read(notebook, as_version=4).cells
    sources = [cell.source for cell in cells if cell.cell_type == "code"]
    if any(STARTS.search(source) for source in sources):
        return set(package.values())
    number = notebook.stem.split("_")[0]
    wanted = {name for name in package if name.startswith(f"dlcourse.exercises.units.e{number}_")}
    for source in sources:
        wanted |= imported(TransformerManager().transform_cell(source), "")  # a magic is a call in plain Python
    found: set[str] = set()
    while wanted := {one for name in wanted for one in with_parents(name) if one in package} - found:
        found |= wanted
        texts = {name: package[name].read_text(encoding="utf-8") for name in wanted}
        wanted = {one for name, text in texts.items() for one in imported(text, package_of(name, package))}
    return {package[name] for name in found}


def dotted(file: Path) -> str:
    return ".".join(file.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


def package_of(name: str, package: dict[str, Path]) -> str:
    return name if package[name].name == "__init__.py" else name.rpartition(".")[0]


def with_parents(name: str) -> Iterable[str]:
    parts = name.split(".")
    return (".".join(parts[:end]) for end in range(1, len(parts) + 1))


def imported(source: str, inside: str) -> set[str]:
    """Every name that may be a module in the imports of a source, also in those inside of functions."""
    names = set()
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            above = inside.split(".")[: len(inside.split(".")) - node.level + 1] if node.level else []
            base = ".".join([*above, *([node.module] if node.module else [])])
            names |= {base, *(f"{base}.{alias.name}" for alias in node.names)}
    return names


def record(execution: str, notebook: Path) -> Path:
    return ROOT / ".passed" / f"{notebook.stem}.{execution}"


def has_passed(execution: str, notebook: Path) -> bool:
    """Whether this execution of the notebook passed here with all that it hangs on as it is now."""
    file = record(execution, notebook)
    return file.exists() and file.read_text() == key(notebook)


def forget(execution: str, notebook: Path) -> None:
    record(execution, notebook).unlink(missing_ok=True)


def remember(execution: str, notebook: Path, value: str) -> None:
    """value: the key as it was before the run, so that a file that changed meanwhile counts as changed."""
    file = record(execution, notebook)
    file.parent.mkdir(exist_ok=True)
    file.write_text(value)


def sliders(source: str) -> str:
    """A digest of the cells with sliders in the text of a notebook."""
    cells = nbformat.reads(source, as_version=4).cells
    moved = [cell.source for cell in cells if "slider" in cell.metadata.get("tags", [])]
    return hashlib.sha256("\0".join(moved).encode()).hexdigest()


def sliders_changed(notebook: Path) -> bool:
    """Whether its cells with sliders are others than when the browser last passed here; before the first time, than in
    what git has."""
    now, file = sliders(notebook.read_text(encoding="utf-8")), record("browser", notebook)
    if file.exists():
        return file.read_text() != now
    command = ["git", "show", f"HEAD:{notebook.relative_to(ROOT).as_posix()}"]
    try:
        shown = subprocess.run(command, cwd=ROOT, capture_output=True, encoding="utf-8", check=False)
    except OSError:  # no git: the notebooks are as they were delivered
        shown = None
    before = now if shown is None or shown.returncode else sliders(shown.stdout)
    remember("browser", notebook, before)
    return before != now
