"""Is this machine ready for the course? Each line says what was found and, where something is missing, what mends it."""

import importlib.metadata
import os
import platform
import shutil
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec

from dlcourse.units import binary

GIB = 1 << 30
NEEDED = ("numpy", "jupyterlab", "matplotlib", "ipywidgets", "memory_profiler", "psutil", "threadpoolctl", "pooch",
          "safetensors", "tqdm", "sklearn")  # fmt: skip
INSTALL = "make install (or by hand: python -m pip install -c constraints.txt -e .)"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `mend` is what to do where it is not `ok`."""

    what: str
    found: str
    ok: bool = True
    mend: str = ""


def examine() -> list[Finding]:
    """Look at this machine; nothing is changed, and nothing leaves it."""
    checks: list[Callable[[], Finding]] = [_python, _packages, _blas, _cores, _memory, _disk, _peak]
    return [check() for check in checks]


def report(findings: list[Finding] | None = None) -> str:
    """The findings as text, a line each, and a last line that says whether the course can start."""
    findings = examine() if findings is None else findings
    width = max(len(finding.what) for finding in findings)
    lines = []
    for finding in findings:
        lines.append(f"{'ok   ' if finding.ok else 'MEND '} {finding.what.ljust(width)}  {finding.found}")
        if not finding.ok:
            lines.append(f"      {' ' * width}  to mend it: {finding.mend}")
    bad = sum(not finding.ok for finding in findings)
    return "\n".join([*lines, f"{bad} thing{'s' if bad > 1 else ''} to mend." if bad else "This machine is ready."])


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    return Finding("Python", platform.python_version(), ok, "install Python 3.11 or newer, then make install")


def _packages() -> Finding:
    missing = [name for name in NEEDED if find_spec(name) is None]
    if sys.version_info >= (3, 12) and find_spec("setuptools") is None:
        missing.append("setuptools")  # memory_profiler imports distutils, which Python 3.12 no longer has
    if missing:
        return Finding("packages", f"missing: {', '.join(missing)}", False, INSTALL)
    versions = {name: importlib.metadata.version(name) for name in ("numpy", "jupyterlab")}
    return Finding("packages", f"all there (NumPy {versions['numpy']}, JupyterLab {versions['jupyterlab']})")


def _blas() -> Finding:
    import numpy  # noqa: F401  loads the library that is asked for here
    from threadpoolctl import threadpool_info

    blas = [one for one in threadpool_info() if one["user_api"] == "blas"]
    found = [f"{one['internal_api']} {one['version']}, kernels {one.get('architecture', 'not told')}" for one in blas]
    return Finding("matrix products", ", ".join(dict.fromkeys(found)) or "by NumPy's own code (slow, but right)")


def _cores() -> Finding:
    cores = usable_cores()
    return Finding("cores", f"{cores}" + (" (two or more are quicker)" if cores == 1 else ""))


def usable_cores() -> int:
    """The processors that this process may run on."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def _memory() -> Finding:
    import psutil

    free = psutil.virtual_memory().available
    limit = _container_limit()
    free = min(free, limit) if limit else free
    return Finding("free memory", binary(free), free >= 1.5 * GIB, "close other programs: the notebooks need 1.5 GiB")


def _container_limit() -> int | None:
    """The memory limit of the container that this runs in, in bytes; None where there is none."""
    for path in ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        try:
            with open(path) as file:
                limit = int(file.read())
        except (OSError, ValueError):
            continue
        return limit if limit < 1 << 50 else None
    return None


def _disk() -> Finding:
    from dlcourse.datasets import data_folder

    folder = data_folder()
    while not folder.exists():
        folder = folder.parent
    free = shutil.disk_usage(folder).free
    try:
        with tempfile.TemporaryFile(dir=folder):
            pass
    except OSError as error:
        choose = "choose another folder by the environment variable DLCOURSE_DATA"
        return Finding("data folder", f"cannot be written: {error.strerror}", False, choose)
    return Finding("data folder", f"can be written, {binary(free)} free", free >= GIB, "free 1 GiB of disk")


def _peak() -> Finding:
    how = {"linux": "VmHWM, exact", "darwin": "getrusage, exact", "win32": "peak working set, exact"}
    return Finding("resident peaks", how.get(sys.platform, "getrusage"))
