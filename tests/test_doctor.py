"""The doctor works where it is needed: with packages missing, or of another version."""

import importlib.metadata
import json
import subprocess
import sys

import pytest

from dlcourse import doctor
from dlcourse.__main__ import main

# In a process of its own: a package that is neither listed nor can be imported, as after `pip uninstall`.
WITHOUT = """
import importlib.metadata, sys
gone = {gone!r}
version = importlib.metadata.version
class Gone:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in gone:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)
def listed(name):
    if name in gone:
        raise importlib.metadata.PackageNotFoundError(name)
    return version(name)
sys.meta_path.insert(0, Gone())
importlib.metadata.version = listed
from dlcourse.__main__ import main
sys.exit(main({arguments!r}))
"""


def without(gone, *arguments):
    code = WITHOUT.format(gone=gone, arguments=list(arguments))
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120, check=False)


@pytest.mark.parametrize("gone", [["numpy"], ["psutil"], ["threadpoolctl", "numpy"], ["packaging", "matplotlib"]])
def test_a_missing_package_is_named_with_what_fixes_it_and_is_not_imported(gone):
    done = without(gone, "doctor")
    assert done.returncode == 1, done.stderr
    assert "Traceback" not in done.stderr
    named = [name for name in gone if name != "packaging"]  # no requirement of ours, but of JupyterLab's
    assert f"missing: {', '.join(sorted(named))}" in done.stdout
    assert done.stdout.splitlines()[-1].startswith("  packages: make install")


def test_as_json_too():
    findings = json.loads(without(["numpy"], "doctor", "--json").stdout)
    assert [one["what"] for one in findings if not one["ok"]] == ["packages"]


@pytest.mark.parametrize("command", [["lab"], ["train", "mlp"], ["admit", "mlp", "--budget", "1GiB"], ["bench"]])
def test_a_command_without_its_package_is_one_line_that_says_what_to_do(command):
    done = without(["numpy", "jupyterlab"], *command)
    assert done.returncode == (2 if command[0] == "admit" else 1)  # of admit, 1 means refused
    assert done.stderr.count("\n") == 1
    assert "is missing; make install" in done.stderr


def test_a_version_outside_of_the_range_is_to_be_fixed_and_one_that_was_not_tested_is_told(monkeypatch):
    version = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "4.60" if name == "tqdm" else version(name))
    assert "tqdm 4.60 (needed: " in doctor.report()
    monkeypatch.setattr(importlib.metadata, "version", lambda name: "2.3.1" if name == "numpy" else version(name))
    findings = {finding.what: finding for finding in doctor.examine()}
    assert findings["packages"].ok
    assert "numpy 2.3.1 (==" in findings["packages"].found


def test_a_line_for_each_thing_and_as_json(capsys):
    code = main(["doctor", "--json"])
    findings = json.loads(capsys.readouterr().out)
    assert code == (0 if all(finding["ok"] for finding in findings) else 1)
    assert {"Python", "packages", "free memory", "data folder"} <= {finding["what"] for finding in findings}


def test_free_memory_is_what_binds_and_not_what_the_machine_has(monkeypatch):
    monkeypatch.setenv("MEM_LIMIT", str(2**30))
    (finding,) = [finding for finding in doctor.examine() if finding.what == "free memory"]
    assert not finding.ok
    assert "bound by MEM_LIMIT of JupyterHub" in finding.found
