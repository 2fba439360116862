"""Where is a Chromium? python chromium.py prints its path, or ends with 1. CHROMIUM=/path/to/it names one."""

import os
import shutil
import sys
from pathlib import Path

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome", "msedge")


def usual_places() -> list[Path]:
    """Where macOS and Windows keep browsers: not on the PATH."""
    places = [
        Path("/Applications/Chromium.app/Contents/MacOS/Chromium"),
        Path("/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"),
        Path("/Applications/Microsoft Edge.app/Contents/MacOS/Microsoft Edge"),
    ]
    for variable in ("PROGRAMFILES", "PROGRAMFILES(X86)", "LOCALAPPDATA"):
        if variable in os.environ:
            folder = Path(os.environ[variable])
            places += [
                folder / "Google/Chrome/Application/chrome.exe",
                folder / "Microsoft/Edge/Application/msedge.exe",
            ]
    return places


def find() -> str | None:
    """The path of a browser, or None. Raises FileNotFoundError if CHROMIUM names something that is not there."""
    named = os.environ.get("CHROMIUM")
    if named:
        found = shutil.which(named)
        if found is None:
            raise FileNotFoundError(f"CHROMIUM is {named!r}, and no program is there")
        return found
    on_path = (shutil.which(name) for name in NAMES)
    there = (str(place) for place in usual_places() if place.exists())
    return next((path for path in (*on_path, *there) if path), None)


if __name__ == "__main__":
    path = find()
    print(path or "no Chromium found")
    sys.exit(path is None)
