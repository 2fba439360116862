"""The project as a whole: what an import loads, what the files hold, and that the pinned versions are allowed ones."""

import itertools
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml
from packaging.requirements import Requirement
from packaging.version import Version

from notebooks import ROOT

HEAVY = ("IPython", "ipywidgets", "matplotlib", "pooch", "scipy", "sklearn")
PYTHONS = ("3.11", "3.12", "3.13", "3.14")


def tracked() -> list[Path]:
    """The files that belong to the project, or [] where this is no git checkout."""
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=False)
    return [ROOT / name for name in listed.stdout.split("\0") if name and (ROOT / name).is_file()]


def project() -> dict:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]


def pins() -> list[Requirement]:
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def applies(pin: Requirement, python: str, system: str = "linux") -> bool:
    there = {"python_version": python, "python_full_version": f"{python}.0", "sys_platform": system}
    return pin.marker is None or pin.marker.evaluate(there)


def test_import_is_light():
    code = f"import sys, dlcourse; print([name for name in {HEAVY} if name in sys.modules])"
    run = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
    assert run.stdout.strip() == "[]"


def test_no_python_file_is_longer_than_400_lines():
    files = [path for path in tracked() if path.suffix == ".py"]
    lengths = {str(path.relative_to(ROOT)): len(path.read_text(encoding="utf-8").splitlines()) for path in files}
    assert {name: length for name, length in lengths.items() if length > 400} == {}


def test_no_file_holds_a_path_of_somebodys_machine():
    place = re.compile(r"(?<![\w.])/(?:home|Users)/\w|(?<![\w.])/root/|\b[A-Z]:\\Users\\")
    found = []
    for path in tracked():
        data = path.read_bytes()
        if b"\0" in data or path == Path(__file__):
            continue
        lines = enumerate(data.decode("utf-8").splitlines(), 1)
        found += [f"{path.relative_to(ROOT)}:{number}" for number, line in lines if place.search(line)]
    assert found == []


def test_pinned_versions_are_within_the_ranges_of_the_project():
    versions = {(canonical(pin.name), str(next(iter(pin.specifier)).version)) for pin in pins()}
    described = project()
    extras = described["optional-dependencies"].values()
    for requirement in map(Requirement, itertools.chain(described["dependencies"], *extras)):
        pinned = [version for name, version in versions if name == canonical(requirement.name)]
        assert pinned, f"{requirement.name} has no line in constraints.txt: run make constraints"
        assert all(requirement.specifier.contains(version) for version in pinned), f"{requirement}: {pinned}"


@pytest.mark.parametrize("python", PYTHONS)
def test_each_python_has_one_pinned_version_of_each_dependency(python):
    described = project()
    for requirement in map(Requirement, described["dependencies"]):
        wanted = canonical(requirement.name)
        pinned = [pin for pin in pins() if canonical(pin.name) == wanted and applies(pin, python)]
        assert len(pinned) == int(applies(requirement, python)), f"{requirement.name} on Python {python}: {pinned}"


def test_constraints_name_no_index_and_pin_exactly():
    text = (ROOT / "constraints.txt").read_text(encoding="utf-8")
    assert "://" not in text and "--" not in text
    assert [str(pin) for pin in pins() if [part.operator for part in pin.specifier] != ["=="]] == []


def test_every_supported_python_is_declared_and_tested():
    described = project()
    declared = {line.rsplit(" ", 1)[1] for line in described["classifiers"] if "Python :: 3." in line}
    assert declared == set(PYTHONS)
    assert described["requires-python"] == f">={min(PYTHONS, key=Version)}"
    workflow = (ROOT / ".github/workflows/test.yml").read_text(encoding="utf-8")
    assert [python for python in PYTHONS if f'"{python}"' not in workflow] == []


def test_types_are_checked_for_the_python_that_runs():
    # NumPy's stubs are written for the Pythons that it supports: read for an older one, whole overloads are missing.
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["mypy"]
    assert "python_version" not in settings


def test_workflows_are_valid_yaml_with_pinned_actions():
    for path in (ROOT / ".github" / "workflows").glob("*.yml"):
        workflow = yaml.safe_load(path.read_text(encoding="utf-8"))
        assert {"name", "jobs"} <= set(workflow)
        assert True in workflow  # YAML reads the key `on` as true
        for job in workflow["jobs"].values():
            used = [step["uses"] for step in job["steps"] if "uses" in step]
            assert [action for action in used if not re.fullmatch(r"[\w./-]+@v\d+", action)] == []
            assert all({"uses", "run"} & set(step) for step in job["steps"])


def test_binder_gets_the_tested_versions_and_the_course():
    folder = ROOT / "binder"
    assert (folder / "runtime.txt").read_text().strip() in [f"python-{python}" for python in PYTHONS]
    lines = [line for line in (folder / "requirements.txt").read_text().splitlines() if not line.startswith("#")]
    assert lines == ["-c ../constraints.txt", "-e .[data,profilers]"]


def test_the_readme_names_every_notebook():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    names = [path.name for path in sorted((ROOT / "notebooks").glob("*.ipynb"))]
    assert [name for name in names if f"notebooks/{name}" not in readme] == []
    linked = re.findall(r"\]\((?!\w+:)([^)#]+)\)", readme)
    assert [link for link in linked if not (ROOT / link).exists()] == []


def test_make_installs_the_extras_of_the_notebooks_and_the_package_needs_none_of_them():
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    commands = [line for line in makefile.splitlines() if "scripts/install.py" in line]
    assert len(commands) == 2 and all("--extra data --extra profilers" in line for line in commands)
    wanted = re.compile(r"^\s*(?:import|from) (?:pandas|pyarrow|memray|scalene)\b", re.MULTILINE)
    package = [path for path in tracked() if path.suffix == ".py" and path.is_relative_to(ROOT / "dlcourse")]
    assert [str(path) for path in package if wanted.search(path.read_text(encoding="utf-8"))] == []
