"""Make .venv and install the package with the tested versions: python install.py [--extra test]

It does nothing when that was done before, neither pyproject.toml nor constraints.txt has changed since, and all that is
needed is still there in the tested version. What was installed is written to a stamp file at the very end: an environment
without its stamp was interrupted, and is made anew. The extras that only some notebooks use are left out, and said so, if
there is no build of them for this machine.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

from bootstrap_pip import VERSION as PIP_VERSION

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
STAMP = VENV / "dlcourse-installed.json"
OPTIONAL = {"data", "profilers"}  # the package needs neither
COMPILED = "memray,pandas,pyarrow,scalene"  # never built here: that takes minutes, and compilers
BIN = VENV / ("Scripts" if os.name == "nt" else "bin")


def key() -> str:
    """What an installation depends on: the two files, where the folder is, and which Python made it."""
    parts = [str(ROOT), f"{sys.version_info[0]}.{sys.version_info[1]}"]
    parts += [(ROOT / name).read_text(encoding="utf-8") for name in ("pyproject.toml", "constraints.txt")]
    return hashlib.sha256("\0".join(parts).encode()).hexdigest()


def read_stamp() -> dict | None:
    try:
        stamp = json.loads(STAMP.read_text(encoding="utf-8"))
        return stamp if isinstance(stamp, dict) else None
    except (OSError, ValueError):
        return None


def environment_is_whole(stamp: dict | None) -> bool:
    """True if .venv was finished before, here and by this Python version, and its python still runs."""
    python = BIN / Path("python")
    if stamp is None or stamp.get("root") != str(ROOT) or stamp.get("python") != list(sys.version_info[:2]):
        return False
    try:
        code = "import sys, pip; print(*sys.version_info[:2])"
        run = subprocess.run([python, "-c", code], check=False, capture_output=True, text=True)
    except OSError:
        return False
    return run.returncode == 0 and run.stdout.split() == [str(part) for part in sys.version_info[:2]]


def departures(extras: list[str]) -> list[str]:
    """What is missing in .venv or is of another version than the tested one, a line for each package."""
    command: list[str | Path] = [BIN / "python", ROOT / "scripts" / "installed.py", *extras]
    run = subprocess.run(command, check=False, capture_output=True, text=True)
    return run.stdout.split("\n")[:-1] if run.returncode == 0 else ["packaging is missing"]  # which installed.py needs


def make_environment() -> None:
    """A fresh .venv with pip in it, also where Python's own ensurepip is missing or broken."""
    base = getattr(sys, "_base_executable", None) or sys.executable
    print(f"Making {VENV.name} with Python {sys.version.split()[0]} ...", flush=True)
    whole = subprocess.run([base, "-m", "venv", "--clear", VENV], check=False, capture_output=True, text=True)
    if whole.returncode:
        print("This Python brings no pip (no ensurepip): getting it from the package index ...", flush=True)
        subprocess.run([base, "-m", "venv", "--clear", "--without-pip", VENV], check=True)
        subprocess.run([BIN / "python", ROOT / "scripts" / "bootstrap_pip.py"], check=True)
    else:
        pip_install(f"pip=={PIP_VERSION}")  # the one that came with Python may need twice the time for all the rest


def pip_install(*arguments: str) -> None:
    command: list[str | Path] = [BIN / "python", "-m", "pip", "install", "--quiet", *arguments]
    env = {**os.environ, "PIP_USER": "0", "PIP_DISABLE_PIP_VERSION_CHECK": "1"}
    subprocess.run(command, check=True, cwd=ROOT, env=env)


def install_package(extras: list[str]) -> None:
    target = f".[{','.join(extras)}]" if extras else "."
    print(f"Installing {target} by constraints.txt; this takes a minute or two ...", flush=True)
    pip_install("-c", "constraints.txt", "--only-binary", COMPILED, "-e", target)


def install_what_can_be(extras: list[str]) -> list[str]:
    """Install the package with its extras -> those that cannot be had on this machine, of the optional ones."""
    try:
        install_package(extras)
        return []
    except subprocess.CalledProcessError:
        if not OPTIONAL & set(extras):
            raise
    kept = [extra for extra in extras if extra not in OPTIONAL]
    install_package(kept)
    for extra in sorted(OPTIONAL & set(extras)):
        try:
            install_package([extra])
            kept = [*kept, extra]
        except subprocess.CalledProcessError:
            print(
                f"Left out: [{extra}], which cannot be installed here. Only notebooks that use it need it.", flush=True
            )
    return sorted(set(extras) - set(kept))


def main() -> int:
    parser = argparse.ArgumentParser(description="Make .venv and install dlcourse into it.")
    parser.add_argument(
        "--extra", action="append", default=[], help="an extra of pyproject.toml: test, data, profilers"
    )
    wanted = set(parser.parse_args().extra)

    stamp = read_stamp()
    whole = environment_is_whole(stamp)
    if stamp and stamp["key"] == key():  # with the same files, what could not be had is not asked for again
        wanted -= set(stamp.get("left_out", ()))
    extras = sorted(wanted | set(stamp["extras"] if whole and stamp else ()))
    if whole and stamp and stamp["key"] == key() and extras == stamp["extras"]:
        wrong = [line for line in departures(extras) if line]
        if not wrong:
            print("Nothing to install: .venv has all that is needed, in the tested versions.")
            return 0
        print(f"To mend in {VENV.name}: {', '.join(wrong)}", flush=True)
    try:
        if not whole:
            make_environment()
        STAMP.unlink(missing_ok=True)
        left_out = install_what_can_be(extras)
    except subprocess.CalledProcessError as error:
        print(f"\nInstalling failed: {' '.join(map(str, error.cmd))}", file=sys.stderr)
        print("The lines above say why. The next `make` starts again from an empty .venv.", file=sys.stderr)
        return 1
    got = [extra for extra in extras if extra not in left_out]
    done = {"key": key(), "extras": got, "left_out": left_out, "root": str(ROOT), "python": list(sys.version_info[:2])}
    unfinished = STAMP.with_suffix(".tmp")
    unfinished.write_text(json.dumps(done), encoding="utf-8")
    os.replace(unfinished, STAMP)
    return 0


if __name__ == "__main__":
    try:
        code = main()
    except KeyboardInterrupt:
        print("\nStopped. The next `make` starts again from an empty .venv.", file=sys.stderr)
        code = 130
    sys.exit(code)
