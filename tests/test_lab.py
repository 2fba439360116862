"""`dlcourse lab`, started and ended as a person or a session manager does."""

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request

import psutil
import pytest

pty = pytest.importorskip("pty")
pytestmark = pytest.mark.skipif(os.name == "nt", reason="signals of Unix")


@pytest.fixture
def lab(tmp_path):
    """-> (the process, the server's address, its token, what it prints), at a terminal of its own."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "dlcourse", "lab", "--no-browser", "--port", str(port)]
    environment = {**os.environ, "JUPYTER_RUNTIME_DIR": str(tmp_path), "JUPYTER_CONFIG_DIR": str(tmp_path)}
    ours, terminal = pty.openpty()
    with (tmp_path / "log").open("w") as log:
        process = subprocess.Popen(command, stdin=terminal, stdout=log, stderr=log, env=environment)
    try:
        for _ in range(600):
            found = re.search(r"(http://127\.0\.0\.1:\d+)/lab\S*token=(\w+)", (tmp_path / "log").read_text())
            if found or process.poll() is not None:
                break
            time.sleep(0.1)
        assert found, (tmp_path / "log").read_text()
        yield process, found[1], found[2], tmp_path / "log"
    finally:
        process.kill()
        process.wait()
        os.close(ours)
        os.close(terminal)


def start_kernel(address, token):
    request = urllib.request.Request(f"{address}/api/kernels", data=b"{}", headers={"Authorization": f"token {token}"})
    for _ in range(100):
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                return json.loads(answer.read())["id"]
        except urllib.error.URLError:
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_ending_the_command_ends_the_server_and_its_kernels_without_a_question(lab, number):
    process, address, token, log = lab
    start_kernel(address, token)
    deadline = time.monotonic() + 60
    family = []
    while not family and time.monotonic() < deadline:
        family = psutil.Process(process.pid).children(recursive=True)
    assert family, "a kernel is a child of the server"
    process.send_signal(number)
    process.wait(timeout=60)
    _, alive = psutil.wait_procs(family, timeout=60)
    assert not alive
    assert "y/[n]" not in log.read_text()
    assert "WARNING" not in log.read_text()
