"""MNIST: 70,000 handwritten digits, in the idx files of its authors."""

import gzip
import hashlib
import os
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .download import Source, fetch
from .split import Dataset
from .store import data_folder, load_or_convert

COUNTS = {"train": 60_000, "test": 10_000}
PICTURES_AT_ONCE = 2_000  # in a block that is read: 1.5 MiB
MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"  # the authors' own page no longer hands the files out

# Where sizes and checksums come from is said in data/README.md. The last is that of the unpacked content.
SOURCES = {
    ("train", "x"): Source(
        f"{MIRROR}train-images-idx3-ubyte.gz",
        9_912_422,
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
        "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    ),
    ("train", "y"): Source(
        f"{MIRROR}train-labels-idx1-ubyte.gz",
        28_881,
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
        "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    ),
    ("test", "x"): Source(
        f"{MIRROR}t10k-images-idx3-ubyte.gz",
        1_648_877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
        "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    ),
    ("test", "y"): Source(
        f"{MIRROR}t10k-labels-idx1-ubyte.gz",
        4_542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
        "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    ),
}


def mnist(path: str | os.PathLike[str] | None = None, *, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """MNIST: 60,000 handwritten digits to train on and 10,000 to test on, x uint8 (N, 28, 28, 1), y int64 (N,).

    x is a read-only memory map of a file in the data folder (`folder`, or what `datasets.data_folder()` says). The
    first call makes the files, from the four official ones, which it downloads (11 MiB), or from `path`: a folder that
    holds the four, compressed (train-images-idx3-ubyte.gz) or not (train-images-idx3-ubyte); what is in them must be
    MNIST by its checksum, since other data sets have files of the same names and sizes.
    Later calls map the files that are there, wherever they came from.

    Allocates y (547 KiB), and the first call 3 MiB for a while. Raises as `cifar10` does.
    Source: Y. LeCun, C. Cortes and C. J. C. Burges, The MNIST database of handwritten digits, 1998.
    """
    where = data_folder(folder)
    given = Path(path).expanduser() if path is not None else None
    if given is not None and not given.is_dir():
        raise FileNotFoundError(
            f"{given} is no folder; give the one that holds {SOURCES['train', 'x'].name} and others"
        )

    def file(source: Source) -> Path:
        if given is None:
            return fetch(source, where / "mnist", "datasets.mnist(path='folder of the four files')")
        packed, plain = given / source.name, given / source.name.removesuffix(".gz")
        if packed.is_file() or plain.is_file():
            return packed if packed.is_file() else plain
        raise FileNotFoundError(f"{given} has neither {packed.name} nor {plain.name}; MNIST is four files")

    def pieces() -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
        for part, count in COUNTS.items():
            labels, pictures = SOURCES[part, "y"], SOURCES[part, "x"]
            y = np.concatenate([block for _, block in _read_idx(file(labels), (count,), labels)])
            for row, x in _read_idx(file(pictures), (count, 28, 28), pictures):
                yield part, row, x[..., np.newaxis], y[row : row + len(x)]

    return load_or_convert(where / "mnist", COUNTS, (28, 28, 1), tuple("0123456789"), pieces)


def _read_idx(path: Path, shape: tuple[int, ...], source: Source) -> Iterator[tuple[int, np.ndarray]]:
    """A file of unsigned bytes in the idx format -> (first row, rows uint8), a block at a time.

    Format: two zero bytes, 8 for unsigned bytes, the number of axes, each axis as a big-endian int32, then the bytes.
    Raises ValueError for another format, and after the last block if the content is not that of `source`.
    """
    header = struct.pack(f">HBB{len(shape)}i", 0, 8, len(shape), *shape)
    expected, row_bytes = len(header) + int(np.prod(shape)), int(np.prod(shape[1:]))
    try:
        with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
            found = file.read(len(header))
            if found.startswith(b"\x1f\x8b"):
                raise ValueError(
                    f"{path} is packed by gzip and its name does not say so: unpack it, or name it {source.name}"
                )
            if found != header:
                raise ValueError(
                    f"{path} starts with {found.hex()}; an idx file of bytes {shape} starts with {header.hex()}"
                )
            content = hashlib.sha256(header)
            for row in range(0, shape[0], PICTURES_AT_ONCE):
                rows = min(PICTURES_AT_ONCE, shape[0] - row)
                data = file.read(rows * row_bytes)
                if len(data) < rows * row_bytes:
                    end = len(header) + row * row_bytes + len(data)
                    raise ValueError(f"{path} ends after {end:,} of {expected:,} bytes: it was cut off; fetch it again")
                content.update(data)
                yield row, np.frombuffer(data, np.uint8).reshape(rows, *shape[1:])
            if file.read(1):
                raise ValueError(f"{path} holds more than the expected {expected:,} bytes; it is no MNIST file")
    except (EOFError, gzip.BadGzipFile, zlib.error) as error:
        raise ValueError(f"{path} cannot be unpacked to {expected:,} bytes: {error}; fetch it again") from error
    if content.hexdigest() != source.content:
        raise ValueError(
            f"{path} has the form of {source.name}, but its content is another: sha256 {content.hexdigest()}, and not "
            f"{source.content}. Other data sets, such as Fashion-MNIST, have files of the same names"
        )
