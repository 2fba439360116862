"""Is this machine ready for the course? Each line says what was found and, if something is missing, what fixes it.

It runs in a broken environment too: nothing beyond Python's own library is imported before it was found.
"""

import importlib.metadata
import os
import platform
import re
import shutil
import sys
import tempfile
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dlcourse.units import binary

GIB = 1 << 30
INSTALL = "make install (or by hand: python -m pip install -c constraints.txt -e .)"
PINS = Path(__file__).resolve().parent.parent / "constraints.txt"


@dataclass(frozen=True)
class Finding:
    """One line of the report. `fix` is what to do if it is not `ok`."""

    what: str
    found: str
    ok: bool = True
    fix: str = ""


def examine() -> list[Finding]:
    """Look at this machine; nothing is changed, and nothing leaves it. A look that needs a missing package is left out:
    the line of the packages names it."""
    checks: list[Callable[[], Finding]] = [_python, _packages, _blas, _cores, _memory, _disk, _peak]
    findings = []
    for check in checks:
        with suppress(ImportError):
            findings.append(check())
    return findings


def report(findings: list[Finding] | None = None) -> str:
    """The findings as text, a line each, and last lines that say whether the course can start, or what is to be fixed."""
    findings = examine() if findings is None else findings
    width = max(len(finding.what) for finding in findings)
    lines = [f"{'ok ' if finding.ok else 'FIX'}  {finding.what.ljust(width)}  {finding.found}" for finding in findings]
    bad = [finding for finding in findings if not finding.ok]
    if not bad:
        return "\n".join([*lines, "This machine is ready."])
    lines.append(f"{len(bad)} thing{'s' if len(bad) > 1 else ''} to fix:")
    return "\n".join([*lines, *(f"  {finding.what}: {finding.fix}" for finding in bad)])


def _python() -> Finding:
    ok = sys.version_info >= (3, 11)
    return Finding("Python", platform.python_version(), ok, "install Python 3.11 or newer, then make install")


def _packages() -> Finding:
    if missing := [name for name, version in installed().items() if version is None]:
        return Finding("packages", f"missing: {', '.join(missing)}", False, INSTALL)
    from packaging.requirements import Requirement  # JupyterLab needs it

    requirements = [Requirement(text) for text in _needed()]
    versions = {name: version or "" for name, version in installed().items()}
    if outside := [one for one in requirements if not one.specifier.contains(versions[one.name], prereleases=True)]:
        found = ", ".join(f"{one.name} {versions[one.name]} (needed: {one.specifier})" for one in outside)
        return Finding("packages", f"of another version: {found}", False, INSTALL)
    text = f"all there (NumPy {versions['numpy']}, JupyterLab {versions['jupyterlab']})"
    if others := departures():
        text += f"; not the tested versions: {', '.join(others)}"
    return Finding("packages", text)


def installed() -> dict[str, str | None]:
    """The version of each package that the course needs, None if it is missing."""
    found: dict[str, str | None] = {}
    for text in _needed():
        name = re.split(r"[^\w.-]", text, maxsplit=1)[0]
        try:
            found[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            found[name] = None
    return found


def departures() -> list[str]:
    """What the course needs and is installed in another version than the tested one of constraints.txt."""
    from packaging.requirements import Requirement

    if not PINS.exists():
        return []
    lines = (
        line for line in PINS.read_text(encoding="utf-8").splitlines() if line.strip() and not line.startswith("#")
    )
    pins = [pin for pin in map(Requirement, lines) if pin.marker is None or pin.marker.evaluate()]
    tested = {pin.name.lower().replace("_", "-"): pin.specifier for pin in pins}
    versions = {name: version for name, version in installed().items() if version is not None}
    keys = {name: name.lower().replace("_", "-") for name in versions}
    return [
        f"{name} {version} ({tested[keys[name]]})"
        for name, version in versions.items()
        if keys[name] in tested and not tested[keys[name]].contains(version, prereleases=True)
    ]


def _needed() -> list[str]:
    """The requirements of this package that hold for this Python, as it declares them: "numpy<3,>=2.1"."""
    try:
        declared = importlib.metadata.requires("dlcourse") or []
    except importlib.metadata.PackageNotFoundError:  # run from a folder that was not installed
        return ["numpy", "jupyterlab", "matplotlib", "ipywidgets", "psutil", "packaging"]
    parts = [(text.partition(";")[0].strip(), text.partition(";")[2]) for text in declared]
    newer = sys.version_info >= (3, 12)
    return [text for text, marker in parts if not marker or (newer and "extra" not in marker)]


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
    from dlcourse.memory import available

    left = available()
    text = f"{binary(left.free)} of {binary(left.limit)}"
    if left.source != "the machine":
        text += f", bound by {left.source}"
    return Finding("free memory", text, left.free >= 1.5 * GIB, "close other programs: the notebooks need 1.5 GiB")


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
