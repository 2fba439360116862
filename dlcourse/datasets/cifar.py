"""CIFAR-10: 60,000 small colour photographs of ten classes."""

import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .batches import RECORD, parse_batch
from .download import Source, fetch, verify
from .split import Dataset
from .store import data_folder, load_or_convert

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ROWS = 10_000  # pictures in each of the six batch files

# Where sizes and checksums come from is said in data/README.md.
BINARY = Source(
    "https://www.cs.toronto.edu/~kriz/cifar-10-binary.tar.gz",
    170_052_171,
    "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
)
PYTHON = Source(
    "https://www.cs.toronto.edu/~kriz/cifar-10-python.tar.gz",
    170_498_071,
    "6d958be074577803d12ecdefd02955f39262c83c16fe9348329d7fe0b5c001ce",
)
BATCHES = (*(f"data_batch_{i}" for i in range(1, 6)), "test_batch")
FORMS = {"cifar-10-batches-bin": ".bin", "cifar-10-batches-py": ""}  # the archive's folder, the ending of its files


def cifar10(path: str | os.PathLike[str] | None = None, *, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """CIFAR-10: 50,000 pictures to train on and 10,000 to test on, x uint8 (N, 32, 32, 3), y int64 (N,).

    x is a read-only memory map of a file in the data folder (`folder`, or what `datasets.data_folder()` says): the
    pictures do not stand in memory. The first call makes these files, from the official archive, which it downloads
    (162 MiB), or from `path`: one of the two official archives (binary or Python), or a folder of extracted files.
    Later calls map the files that are there, wherever they came from.

    Allocates y (469 KiB); the first call, for a while, 60 MiB from the binary form and 90 MiB from Python's.
    Raises ConnectionError where the download fails, PermissionError where the folder cannot be written, and
    FileNotFoundError or ValueError where `path` is missing, cut off or something else.
    Source: A. Krizhevsky, Learning Multiple Layers of Features from Tiny Images, 2009.
    """
    where = data_folder(folder)
    given = Path(path).expanduser() if path is not None else None
    if given is not None and not given.exists():
        raise FileNotFoundError(f"{given} does not exist; give {BINARY.name}, {PYTHON.name} or the folder of its files")

    def pieces() -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
        if given is None:
            batches = _in_archive(fetch(BINARY, where, f"call datasets.cifar10(path='.../{BINARY.name}')"))
        elif given.is_dir():
            batches = _in_folder(given)
        else:
            verify(given, (BINARY, PYTHON))
            batches = _in_archive(given)
        for batch, name, raw in batches:
            part, row = ("test", 0) if batch == "test_batch" else ("train", BATCHES.index(batch) * ROWS)
            yield part, row, *_parse(name, raw)
            del raw  # before the next batch is read: one at a time

    return load_or_convert(where / "cifar10", {"train": 5 * ROWS, "test": ROWS}, (32, 32, 3), CLASS_NAMES, pieces)


def _parse(name: str, raw: bytes) -> tuple[np.ndarray, np.ndarray]:
    if name.endswith(".bin") and len(raw) != ROWS * RECORD:
        raise ValueError(
            f"{name} has {len(raw):,} bytes; expected {ROWS * RECORD:,}: it was cut off, or is another file"
        )
    x, y = parse_batch(raw, name)
    if len(x) != ROWS:
        raise ValueError(f"{name} has {len(x):,} pictures; expected {ROWS:,}")
    return x, y


def _in_archive(path: Path) -> Iterator[tuple[str, str, bytes]]:
    """The six batches of an archive, in the order in which they stand in it: (batch, name for errors, bytes).

    Members are read by their exact names and nothing is extracted, so no name in an archive can become a file.
    """
    wanted = {f"{folder}/{batch}{ending}": batch for folder, ending in FORMS.items() for batch in BATCHES}
    found = set()
    with tarfile.open(path, "r|gz") as archive:
        for member in archive:
            batch = wanted.get(member.name)
            file = archive.extractfile(member) if batch and member.isfile() else None
            if batch and file:
                found.add(batch)
                yield batch, f"{path}: {member.name}", file.read()
    if len(found) < len(BATCHES):
        raise ValueError(f"{path} lacks {', '.join(b for b in BATCHES if b not in found)}; it is no CIFAR-10 archive")


def _in_folder(folder: Path) -> Iterator[tuple[str, str, bytes]]:
    """The six batches of an extracted archive, given its folder or the folder around it."""
    places = [(base, ending) for name, ending in FORMS.items() for base in (folder, folder / name)]
    for base, ending in places:
        if (base / f"{BATCHES[0]}{ending}").is_file():
            break
    else:
        raise FileNotFoundError(
            f"{folder} holds neither {BATCHES[0]}.bin (binary form) nor {BATCHES[0]} (Python form); give the folder "
            f"that {BINARY.name} or {PYTHON.name} was extracted to"
        )
    files = {batch: base / f"{batch}{ending}" for batch in BATCHES}
    missing = [file.name for file in files.values() if not file.is_file()]
    if missing:
        raise FileNotFoundError(f"{base} lacks {', '.join(missing)}; extract the archive again")
    for batch, file in files.items():
        yield batch, str(file), file.read_bytes()
