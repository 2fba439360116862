"""Fetch an official file once, and never trust one whose bytes are not the published ones."""

import hashlib
from dataclasses import dataclass
from pathlib import Path

from .store import cannot_write, make_folder

RETRIES = 2  # after the first attempt


@dataclass(frozen=True)
class Source:
    """A file as its authors publish it."""

    url: str
    size: int  # bytes
    sha256: str
    content: str = ""  # the sha256 of what it unpacks to, if that is checked

    @property
    def name(self) -> str:
        return self.url.rpartition("/")[2]


def fetch(source: Source, folder: Path, reader: str) -> Path:
    """The file's path in `folder`, downloaded where it is missing or damaged, with a progress bar and two retries.

    `reader` is the call that reads a file which was downloaded another way, for the error.
    Raises OSError (PermissionError) for a folder that cannot be written, ConnectionError where the download fails or its bytes
    are wrong; no damaged file stays behind.
    """
    import pooch
    import requests

    received = 0

    def download(url: str, output: str, registry: pooch.Pooch) -> None:
        nonlocal received
        pooch.HTTPDownloader(progressbar=True, timeout=30)(url, output, registry)
        received = Path(output).stat().st_size
        if received != source.size:
            raise ValueError(f"expected {source.size:,} bytes and received {received:,}")

    make_folder(folder)
    pooch.get_logger().setLevel("WARNING")  # the bar is enough; its messages hold paths of this machine
    known = {"registry": {source.name: f"sha256:{source.sha256}"}, "urls": {source.name: source.url}}
    registry = pooch.create(folder, "", **known, retry_if_failed=RETRIES)
    try:
        return Path(registry.fetch(source.name, downloader=download))
    except (requests.RequestException, ValueError) as error:
        reason = str(error)
        if isinstance(error, ValueError) and received == source.size:
            reason = f"received {received:,} bytes as expected, but their sha256 is not {source.sha256}"
        elif isinstance(error, requests.ConnectionError) and not isinstance(error, requests.exceptions.SSLError):
            reason = "no connection"
        raise ConnectionError(
            f"{source.url} could not be downloaded: {reason}. Download it by hand, on another machine if need be, "
            f"and read it with {reader}, at the command line with --path, or put it into {folder} and try again. "
            "datasets.shapes() and datasets.digits() need no network"
        ) from error
    except OSError as error:  # the disk is full
        raise cannot_write(folder, error) from error


def verify(path: Path, sources: tuple[Source, ...]) -> Source:
    """Which of the sources the file is, by size and sha256; ValueError with the bytes expected and found otherwise."""
    size = path.stat().st_size
    named = [source for source in sources if source.name == path.name] or list(sources)
    for source in sources:
        if size == source.size:
            with open(path, "rb") as file:
                found = hashlib.file_digest(file, "sha256").hexdigest()
            if found == source.sha256:
                return source
            raise ValueError(
                f"{path} has {size:,} bytes like the official {source.name}, but its sha256 is {found} and not "
                f"{source.sha256}: its bytes are others. The official file is {source.url}"
            )
    official = " or ".join(f"{source.size:,} ({source.name})" for source in named)
    cause = f"it {'was cut off, or ' if size < max(source.size for source in named) else ''}is another file"
    raise ValueError(f"{path} has {size:,} bytes; expected {official}: {cause}. Download it again from {named[0].url}")
