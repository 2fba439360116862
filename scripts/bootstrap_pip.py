"""Bring pip into a virtual environment that has none: python bootstrap_pip.py, run by the environment's own python.

Debian's Python without the package python3-venv can make an environment but cannot put pip into it. This script asks
the package index (PIP_INDEX_URL, or pypi.org) for one pip wheel, checks its SHA-256, and lets that wheel install itself.
It needs the standard library alone.
"""

import hashlib
import os
import subprocess
import sys
import tempfile
import urllib.error
import urllib.parse
import urllib.request
from html.parser import HTMLParser
from pathlib import Path

VERSION = "26.3"
WHEEL = f"pip-{VERSION}-py3-none-any.whl"
SHA256 = "f3b60b20ffaadd4415ed7957212a38ac63fa4c5fa375bd0f4a797777940fad13"


class Links(HTMLParser):
    """Collects the href of every link on an index page."""

    def __init__(self) -> None:
        super().__init__()
        self.hrefs: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.hrefs += [value for name, value in attrs if tag == "a" and name == "href" and value]


def find_wheel(page_url: str, page: str) -> str:
    """The address of WHEEL on an index page (PEP 503). Raises SystemExit if the page does not name it."""
    links = Links()
    links.feed(page)
    for href in links.hrefs:
        address = urllib.parse.urldefrag(urllib.parse.urljoin(page_url, href)).url
        if urllib.parse.unquote(address).endswith("/" + WHEEL):
            return address
    raise SystemExit(f"{page_url} does not offer {WHEEL}. Set PIP_INDEX_URL to an index that does.")


def check(wheel: bytes, address: str) -> None:
    """Raises SystemExit unless the bytes are those of the pinned wheel."""
    found = hashlib.sha256(wheel).hexdigest()
    if found != SHA256:
        raise SystemExit(f"{address}: SHA-256 is {found} ({len(wheel):,} bytes), expected {SHA256}. Not installed.")


def fetch(url: str) -> bytes:
    try:
        with urllib.request.urlopen(url, timeout=60) as answer:
            return answer.read()
    except (urllib.error.URLError, OSError) as error:
        raise SystemExit(
            f"Cannot read {url}: {error}\n"
            "Connect to the network, or set PIP_INDEX_URL to a package index that can be reached.\n"
            "On Debian and Ubuntu `apt-get install python3-venv` makes this step unnecessary."
        ) from None


def main() -> None:
    if sys.prefix == sys.base_prefix:
        raise SystemExit("Run this with the python of a virtual environment: .venv/bin/python scripts/bootstrap_pip.py")
    page_url = os.environ.get("PIP_INDEX_URL", "https://pypi.org/simple").rstrip("/") + "/pip/"
    address = find_wheel(page_url, fetch(page_url).decode("utf-8", "replace"))
    wheel = fetch(address)
    check(wheel, address)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, WHEEL)
        path.write_bytes(wheel)
        # A wheel is a zip archive, and Python runs the package inside it.
        command = [sys.executable, str(path / "pip"), "install", "--quiet", "--no-index", str(path)]
        subprocess.run(command, check=True, env={**os.environ, "PIP_USER": "0"})


if __name__ == "__main__":
    main()
