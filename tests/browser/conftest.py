"""A JupyterLab on a copy of the notebooks, and a real Chromium that looks at it.

DLCOURSE_SHOTS=folder keeps the screenshots. REQUIRE_BROWSER=1 makes a missing browser a failure.
"""

import json
import os
import secrets
import shutil
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import nbformat
import pytest
from browser import chromium
from playwright.sync_api import BrowserContext, sync_playwright

from notebooks import ROOT, code_cells

CHROMIUM_OPTIONS = ["--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking"]
CHROMIUM_OPTIONS += ["--disable-component-update", "--disable-sync", "--disable-dev-shm-usage"]


@dataclass(frozen=True)
class Server:
    url: str
    token: str
    notebooks: Path


@pytest.fixture(scope="session")
def browser() -> Iterator[BrowserContext]:
    """One context for all pages, so that JupyterLab's scripts are loaded once."""
    path = chromium.find()
    if path is None:
        message = "NOT RUN: no Chromium was found (CHROMIUM=/path/to/it names one)"
        if os.environ.get("REQUIRE_BROWSER"):
            pytest.fail(message)
        pytest.skip(message)
    # Its sandbox does not work as root or in most containers, and the only pages it opens are on this machine.
    options = CHROMIUM_OPTIONS + (["--no-sandbox"] if sys.platform == "linux" else [])
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path, headless=True, args=options)
        yield browser.new_context(viewport={"width": 1400, "height": 1000})
        browser.close()


@pytest.fixture(scope="session")
def server(browser: BrowserContext, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """JupyterLab on loopback, with no setting, history or workspace of whoever runs the tests."""
    home = tmp_path_factory.mktemp("lab")
    copy = home / "course" / "notebooks"
    shutil.copytree(ROOT / "notebooks", copy, ignore=shutil.ignore_patterns(".ipynb_checkpoints"))
    for path in copy.glob("*.ipynb"):
        forget_outputs(path)
    folders = ["JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR"]
    folders += ["JUPYTERLAB_SETTINGS_DIR", "JUPYTERLAB_WORKSPACES_DIR"]
    env = {**os.environ, **{name: str(home / name.lower()) for name in folders}}
    env.pop("MPLBACKEND", None)
    token = secrets.token_hex(16)
    # Any port below those that the system gives to others; the server takes the next where it is not free.
    port = 20_000 + secrets.randbelow(10_000)
    command = [sys.executable, "-m", "jupyterlab", "--no-browser", "--allow-root", "--ip=127.0.0.1", f"--port={port}"]
    command += [f"--IdentityProvider.token={token}"]
    command += [f"--ServerApp.root_dir={copy.parent}", f"--LabApp.app_settings_dir={ROOT / 'scripts' / 'lab_settings'}"]
    command += ["--LabApp.news_url=None", "--LabApp.check_for_updates_class=jupyterlab.NeverCheckForUpdate"]
    command += ["--LabApp.expose_app_in_browser=True", "--KernelManager.transport_encryption=auto"]
    with (home / "lab.log").open("w") as log:
        process = subprocess.Popen(command, env=env, cwd=home, stdout=log, stderr=subprocess.STDOUT)
        try:
            url = wait_for(process, token, home / "jupyter_runtime_dir", home / "lab.log")
            yield Server(url, token, copy)
        finally:
            process.terminate()
            try:
                process.wait(20)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def forget_outputs(path: Path) -> None:
    """Stored outputs and numbers look like a finished run: without them, what the page shows was made in the test."""
    notebook = nbformat.read(path, as_version=4)
    for cell in code_cells(notebook):
        cell.outputs, cell.execution_count = [], None
    nbformat.write(notebook, path)


def wait_for(process: subprocess.Popen, token: str, runtime: Path, log: Path, seconds: float = 60) -> str:
    """-> the address of the server, once it answers. It writes down its port itself."""
    end = time.monotonic() + seconds
    while time.monotonic() < end and process.poll() is None:
        for written in runtime.glob("jpserver-*.json"):
            try:
                url = f"http://127.0.0.1:{json.loads(written.read_text(encoding='utf-8'))['port']}"
                urllib.request.urlopen(f"{url}/api/status?token={token}", timeout=2).close()
                return url
            except (OSError, ValueError):
                pass
        time.sleep(0.1)
    pytest.fail(f"JupyterLab did not start:\n{log.read_text()[-3000:]}")


@pytest.fixture(scope="session")
def shots(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Where screenshots go."""
    folder = Path(os.environ.get("DLCOURSE_SHOTS") or tmp_path_factory.mktemp("shots"))
    folder.mkdir(parents=True, exist_ok=True)
    return folder
