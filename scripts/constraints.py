"""Renew constraints.txt: the newest versions that pyproject.toml allows, for every Python and system at once.

`make constraints` runs it. One file serves Python 3.11 to 3.14 on Linux, macOS and Windows: where versions must differ,
a line carries a marker. The resolver is uv, installed into a temporary folder. Run `make test` before you commit.
"""

import os
import subprocess
import sys
import tempfile
from pathlib import Path

UV = "uv==0.13.9"
ROOT = Path(__file__).resolve().parent.parent
HEADER = """\
# The versions that were tested together. `make` and Binder install by this file; pyproject.toml has the ranges.
# Made by `make constraints`, for Python 3.11 to 3.14 on Linux, macOS and Windows. Do not edit by hand.
"""


def main() -> None:
    target = ROOT / "constraints.txt"
    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-m", "pip", "install", "--quiet", "--target", folder, UV], check=True)
        options = ["--all-extras", "--universal", "--python-version", "3.11", "--no-header", "--no-annotate"]
        options += ["--no-emit-index-url", "--no-emit-find-links", "--no-config", "--quiet"]
        uv = Path(folder, "bin", "uv.exe" if os.name == "nt" else "uv")
        command: list[str | Path] = [uv, "pip", "compile", "pyproject.toml", *options]
        pins = subprocess.run(command, check=True, cwd=ROOT, capture_output=True, text=True).stdout
    unfinished = target.with_suffix(".tmp")
    unfinished.write_text(HEADER + pins, encoding="utf-8")
    os.replace(unfinished, target)
    print(f"{target.name}: {len(pins.splitlines())} pins")


if __name__ == "__main__":
    main()
