"""MNIST: 70,000 handwritten digits, in the idx files of its authors."""

import gzip
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from .download import Source, fetch, verify
from .split import Dataset
from .store import data_folder, load_or_convert

COUNTS = {"train": 60_000, "test": 10_000}
BLOCK = 2_000  # pictures that are read at once: 1.5 MiB
MIRROR = "https://ossci-datasets.s3.amazonaws.com/mnist/"  # the authors' own page no longer hands the files out

# Where sizes and checksums come from is said in data/README.md.
SOURCES = {
    ("train", "x"): Source(
        f"{MIRROR}train-images-idx3-ubyte.gz",
        9_912_422,
        "440fcabf73cc546fa21475e81ea370265605f56be210a4024d2ca8f203523609",
    ),
    ("train", "y"): Source(
        f"{MIRROR}train-labels-idx1-ubyte.gz",
        28_881,
        "3552534a0a558bbed6aed32b30c495cca23d567ec52cac8be1a0730e8010255c",
    ),
    ("test", "x"): Source(
        f"{MIRROR}t10k-images-idx3-ubyte.gz",
        1_648_877,
        "8d422c7b0a1c1c79245a5bcf07fe86e33eeafee792b84584aec276f5a2dbc4e6",
    ),
    ("test", "y"): Source(
        f"{MIRROR}t10k-labels-idx1-ubyte.gz",
        4_542,
        "f7ae60f92e00ec6debd23a6088c31dbd2371eca3ffa0defaefb259924204aec6",
    ),
}


def mnist(path: str | os.PathLike[str] | None = None, *, folder: str | os.PathLike[str] | None = None) -> Dataset:
    """MNIST: 60,000 handwritten digits to train on and 10,000 to test on, x uint8 (N, 28, 28, 1), y int64 (N,).

    x is a read-only memory map of a file in the data folder (`folder`, or what `datasets.data_folder()` says). The
    first call makes the files, from the four official ones, which it downloads (11 MiB), or from `path`: a folder that
    holds the four, compressed (train-images-idx3-ubyte.gz) or not (train-images-idx3-ubyte).
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
            return fetch(source, where / "mnist", "call datasets.mnist(path='folder of the four files')")
        packed, plain = given / source.name, given / source.name.removesuffix(".gz")
        if packed.is_file():
            verify(packed, (source,))
            return packed
        if plain.is_file():
            return plain
        raise FileNotFoundError(f"{given} has neither {packed.name} nor {plain.name}; MNIST is four files")

    def pieces() -> Iterator[tuple[str, int, np.ndarray, np.ndarray]]:
        for part, count in COUNTS.items():
            labels = file(SOURCES[part, "y"])
            y = np.concatenate([block for _, block in _read_idx(labels, (count,))])
            if y.max() > 9:
                raise ValueError(f"{labels} holds label {y.max()}; the labels of MNIST are 0 to 9")
            for row, pictures in _read_idx(file(SOURCES[part, "x"]), (count, 28, 28)):
                yield part, row, pictures[..., np.newaxis], y[row : row + len(pictures)]

    return load_or_convert(where / "mnist", COUNTS, (28, 28, 1), tuple("0123456789"), pieces)


def _read_idx(path: Path, shape: tuple[int, ...]) -> Iterator[tuple[int, np.ndarray]]:
    """A file of unsigned bytes in the idx format -> (first row, rows uint8), a block at a time.

    Format: two zero bytes, 8 for unsigned bytes, the number of axes, each axis as a big-endian int32, then the bytes.
    """
    header = struct.pack(f">HBB{len(shape)}i", 0, 8, len(shape), *shape)
    expected = len(header) + int(np.prod(shape))
    with gzip.open(path) if path.suffix == ".gz" else open(path, "rb") as file:
        found = file.read(len(header))
        if found != header:
            raise ValueError(
                f"{path} starts with {found.hex()}; an idx file of bytes {shape} starts with {header.hex()}"
            )
        received = len(header)
        for row in range(0, shape[0], BLOCK):
            rows = min(BLOCK, shape[0] - row)
            wanted = rows * int(np.prod(shape[1:]))
            data = file.read(wanted)
            received += len(data)
            if len(data) < wanted:
                raise ValueError(
                    f"{path} ends after {received:,} of {expected:,} bytes: it was cut off; fetch it again"
                )
            yield row, np.frombuffer(data, np.uint8).reshape(rows, *shape[1:])
        if file.read(1):
            raise ValueError(f"{path} holds more than the expected {expected:,} bytes; it is no MNIST file")
