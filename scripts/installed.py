"""What is missing in this environment, or of another version than the tested one: installed.py [EXTRA ...]

install.py runs it with the environment's own python. It prints a line for each package; nothing where all is well.
"""

import importlib.metadata
import sys
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"


def pins() -> dict[str, Requirement]:
    """The tested version of each package, for this Python and system."""
    lines = CONSTRAINTS.read_text(encoding="utf-8").splitlines()
    found = [Requirement(line) for line in lines if line.strip() and not line.startswith("#")]
    return {canonicalize_name(pin.name): pin for pin in found if pin.marker is None or pin.marker.evaluate()}


def departures(package: str, extras: set[str]) -> list[str]:
    """Of all that a package needs, and what that needs in turn: what is missing, and what is of another version."""
    tested, seen, found = pins(), set(), []
    waiting = [Requirement(f"{package}[{','.join(sorted(extras))}]")]
    while waiting:
        wanted = waiting.pop()
        name = canonicalize_name(wanted.name)
        if (name, frozenset(wanted.extras)) in seen:
            continue
        seen.add((name, frozenset(wanted.extras)))
        try:
            about = importlib.metadata.distribution(wanted.name)
        except importlib.metadata.PackageNotFoundError:
            found.append(f"{wanted.name} is missing")
            continue
        right = tested.get(name, wanted).specifier
        if not right.contains(about.version, prereleases=True):
            found.append(f"{wanted.name} {about.version} in place of {right}")
        for needed in map(Requirement, about.requires or []):
            contexts = [{"extra": extra} for extra in wanted.extras or ("",)]
            if needed.marker is None or any(needed.marker.evaluate(context) for context in contexts):
                waiting.append(needed)
    return found


if __name__ == "__main__":
    print(*departures("dlcourse", set(sys.argv[1:])), sep="\n")
