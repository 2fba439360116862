"""pytest whose kernels talk through files and not through ports: python ipc.py ARGUMENTS-OF-PYTEST

Two kernels that start at the same time can choose the same port, and one of them is never heard of again. A socket in
a folder has a name of its own. Windows has no such sockets: there ports stay.
"""

import functools
import os
import sys
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

TRANSPORT = "tcp" if sys.platform == "win32" else "ipc"


@contextmanager
def environment() -> Iterator[dict[str, str]]:
    """Variables for whatever starts a kernel: nothing of what somebody has set, solved or stored, and short paths.

    The path of a socket may have about 100 letters; the usual temporary folder of macOS has half of them already.
    """
    with tempfile.TemporaryDirectory(dir="/tmp" if TRANSPORT == "ipc" else None, prefix="course-") as folder:
        there = dict.fromkeys(("JUPYTER_RUNTIME_DIR", "IPYTHONDIR", "DLCOURSE_PROGRESS"), folder)
        yield {key: value for key, value in os.environ.items() if key != "MPLBACKEND"} | there


def options(folder: str) -> dict[str, str]:
    """For a kernel manager: where its sockets are, in a folder of `environment`."""
    if TRANSPORT == "tcp":
        return {}
    return {"transport": "ipc", "ip": os.path.join(folder, uuid.uuid4().hex[:12])}


class Plugin:
    """For nbval, which makes its kernel managers itself."""

    def pytest_configure(self) -> None:
        import nbval.kernel

        there = options(os.environ.get("JUPYTER_RUNTIME_DIR", tempfile.gettempdir()))
        nbval.kernel.KernelManager = functools.partial(nbval.kernel.KernelManager, **there)


if __name__ == "__main__":
    import pytest

    sys.exit(pytest.main(sys.argv[1:], plugins=[Plugin()]))
