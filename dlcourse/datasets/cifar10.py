"""CIFAR-10: 60,000 small colour photographs of ten classes, in either of the two official forms."""

import io
import os
import pickle
import tarfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from .download import Source, fetch, verify
from .split import Dataset
from .store import data_folder, load_or_convert

CLASS_NAMES = ("airplane", "automobile", "bird", "cat", "deer", "dog", "frog", "horse", "ship", "truck")
ROWS = 10_000  # pictures in each of the six batch files
RECORD = 1 + 3 * 32 * 32  # the label, then 1,024 red, 1,024 green and 1,024 blue bytes, row by row
PICKLED = b"\x80(}]"  # first bytes of a pickled dict or list, in protocols from 2 and in 0 and 1; no label is so high

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
            batches = _in_archive(fetch(BINARY, where, f"datasets.cifar10(path='.../{BINARY.name}')"))
        elif given.is_dir():
            batches = _in_folder(given)
        else:
            verify(given, (BINARY, PYTHON))
            batches = _in_archive(given)
        seen = {"train": np.zeros(10, np.int64), "test": np.zeros(10, np.int64)}
        for batch, name, raw in batches:
            part, row = ("test", 0) if batch == "test_batch" else ("train", BATCHES.index(batch) * ROWS)
            x, y = parse_batch(raw, name, ROWS)
            seen[part] += np.bincount(y, minlength=10)
            yield part, row, x, y
            del raw, x, y  # before the next batch is read: one at a time
        for part, expected in (("train", ROWS // 2), ("test", ROWS // 10)):
            if (seen[part] != expected).any():  # files of the right form that hold something else
                counts = ", ".join(f"{count:,}" for count in seen[part])
                raise ValueError(
                    f"{given} is not CIFAR-10, which has {expected:,} pictures of each class to {part}; here are {counts}"
                )

    return load_or_convert(where / "cifar10", {"train": 5 * ROWS, "test": ROWS}, (32, 32, 3), CLASS_NAMES, pieces)


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
    forms = [{batch: base / f"{batch}{ending}" for batch in BATCHES} for base, ending in places]
    files = next((form for form in forms if form[BATCHES[0]].is_file()), None)
    if files is None:
        raise FileNotFoundError(
            f"{folder} holds neither {BATCHES[0]}.bin (binary form) nor {BATCHES[0]} (Python form); give the folder "
            f"that {BINARY.name} or {PYTHON.name} was extracted to"
        )
    if missing := [file for file in files.values() if not file.is_file()]:
        lacking = ", ".join(file.name for file in missing)
        raise FileNotFoundError(f"{missing[0].parent} lacks {lacking}; extract the archive again")
    for batch, file in files.items():
        yield batch, str(file), file.read_bytes()


def read_cifar10_batch(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Read one batch file of CIFAR-10 -> x uint8 (N, 32, 32, 3), y int64 (N,).

    The form is seen from the file's first byte: binary (records of 3,073 bytes, data_batch_1.bin) or pickled by Python
    2 (data_batch_1) or 3 (a copy of it), in any protocol. A pickle can run code when it is read; here only arrays of
    bytes, lists, dicts, numbers and strings are let in, and a file that asks for anything else is refused.

    Raises FileNotFoundError, and ValueError if the file is empty, cut off, of another kind, or has a label over 9.
    Allocates x, y and, until it returns, the bytes of the file. Format: A. Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give one batch file, or datasets.cifar10(path=folder) for all")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a batch file such as data_batch_1.bin")
    return parse_batch(path.read_bytes(), str(path))


def parse_batch(raw: bytes, name: str, rows: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of one batch file -> x uint8 (N, 32, 32, 3), y int64 (N,); `name` is what errors call it. rows: what N must
    be."""
    if not raw:
        raise ValueError(f"{name} is empty (0 bytes); a batch has records of {RECORD:,} bytes")
    if raw.startswith(b"\x1f\x8b"):
        raise ValueError(f"{name} is a gzip archive and not a batch file; give it to datasets.cifar10(path=...)")
    if rows and raw[0] not in PICKLED and len(raw) != rows * RECORD:
        expected = f"expected {rows * RECORD:,}: it was cut off, or is another file"
        raise ValueError(f"{name} has {len(raw):,} bytes; {expected}")
    planes, y = _pickled(raw, name) if raw[0] in PICKLED else _binary(raw, name)
    if rows and len(y) != rows:
        raise ValueError(f"{name} has {len(y):,} pictures; expected {rows:,}")
    wrong = np.flatnonzero((y < 0) | (y > 9))
    if len(wrong):
        raise ValueError(f"{name}: record {wrong[0]} has label {y[wrong[0]]}; the labels of CIFAR-10 are 0 to 9")
    return np.ascontiguousarray(planes.reshape(-1, 3, 32, 32).transpose(0, 2, 3, 1)), y


def _binary(raw: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    count, rest = divmod(len(raw), RECORD)
    if rest:
        raise ValueError(
            f"{name} has {len(raw):,} bytes, which is no multiple of {RECORD:,}: after {count:,} whole records a last "
            f"one needs {RECORD:,} bytes and has {rest:,}. It was cut off, or is no CIFAR-10 batch; fetch it again"
        )
    records = np.frombuffer(raw, np.uint8).reshape(count, RECORD)
    return records[:, 1:], records[:, 0].astype(np.int64)


def _pickled(raw: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    try:
        batch = _BatchUnpickler(raw).load()
    except Exception as error:  # a damaged pickle can fail in any way
        raise ValueError(f"{name} cannot be read as a pickled CIFAR-10 batch: {error}") from error
    items = batch.items() if isinstance(batch, dict) else ()
    content = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in items}
    if "data" not in content or "labels" not in content:
        found = sorted(map(str, batch)) if isinstance(batch, dict) else type(batch).__name__
        raise ValueError(f"{name} is a pickle of {found}; a CIFAR-10 batch is a dict with b'data' and b'labels'")
    data, labels = content["data"], content["labels"]
    if isinstance(data, bytes) and isinstance(labels, list) and len(data) == len(labels) * (RECORD - 1):
        data = _ByteArray(data, _ByteType("u1"), (len(labels), RECORD - 1), "C")  # pictures as one string of bytes
    x = data.value if isinstance(data, _ByteArray) else None
    if x is None or x.ndim != 2 or x.shape[1] != RECORD - 1:
        found = type(data).__name__ if x is None else f"an array of shape {x.shape}"
        raise ValueError(f"{name}: b'data' is {found}; it must be a uint8 array (N, {RECORD - 1})")
    if not isinstance(labels, list) or any(type(label) is not int or abs(label) >= 2**63 for label in labels):
        raise ValueError(f"{name}: b'labels' must be a list of integers, of 64 bits at most")
    if len(labels) != len(x):
        raise ValueError(f"{name}: {len(x):,} pictures and {len(labels):,} labels; both must be as many")
    return x, np.array(labels, dtype=np.int64)


class _ByteType:
    """Stands in for numpy.dtype while unpickling: it can only be uint8."""

    def __init__(self, code: object, *_flags: object) -> None:
        if code not in ("u1", "|u1", "uint8", b"u1", b"|u1", b"uint8"):
            raise pickle.UnpicklingError(f"it holds an array of dtype {code!r}; pictures are u1 (uint8)")

    def __setstate__(self, state: object) -> None:
        """Byte order, fields and alignment: a single byte has none."""


class _ByteArray:
    """Stands in for a NumPy array while unpickling, and for the functions that make one: takes bytes alone."""

    value: np.ndarray | None = None  # until a state is set

    def __init__(self, *arguments: Any) -> None:
        if len(arguments) == 4:  # of _frombuffer, by which protocol 5 makes an array
            data, dtype, shape, order = arguments
            self.__setstate__((1, shape, dtype, order == "F", data))

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, dtype, fortran, data = state
        if not isinstance(dtype, _ByteType) or not isinstance(data, bytes | bytearray):
            raise pickle.UnpicklingError("it holds an array that is not of bytes")
        self.value = np.frombuffer(data, np.uint8).reshape(shape, order="F" if fortran else "C")


class _Encode:
    """Stands in for _codecs.encode, by which Python 3 writes bytes in protocols 0 to 2. It is an object and no function,
    since a pickle can set attributes of a function."""

    __slots__ = ()

    def __call__(self, text: str, encoding: str) -> bytes:
        if encoding != "latin1":
            raise pickle.UnpicklingError(f"it asks for the encoding {encoding!r}; refused")
        return text.encode("latin1")


_ADMITTED: dict[str, Any] = {
    "numpy.ndarray": _ByteArray,
    "numpy.dtype": _ByteType,
    "numpy.core.multiarray._reconstruct": _ByteArray,
    "numpy.core.numeric._frombuffer": _ByteArray,
    "_codecs.encode": _Encode(),
}


class _BatchUnpickler(pickle._Unpickler):
    """The reader in Python: the one in C makes room for every number below the highest that a file gives an object."""

    def __init__(self, raw: bytes) -> None:
        super().__init__(io.BytesIO(raw), encoding="bytes")  # the strings of Python 2 are read as bytes

    def find_class(self, module: str, name: str) -> Any:
        found = _ADMITTED.get(f"{module}.{name}".replace("numpy._core.", "numpy.core.", 1))
        if found is None or "." in name:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR-10 batch needs; refused")
        return found

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for the outside object {pid!r}, which no CIFAR-10 batch needs; refused")
