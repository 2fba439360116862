"""One batch file of CIFAR-10, in either of the two official forms."""

import io
import os
import pickle
import pickletools
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

RECORD = 1 + 3 * 32 * 32  # the label, then 1,024 red, 1,024 green and 1,024 blue bytes, row by row
PICKLED = (
    b"\x80(}]"  # how a pickle of a dict or list begins, the second to fourth in protocols 0 and 1; no label is so high
)


def read_cifar10_batch(path: str | os.PathLike[str]) -> tuple[np.ndarray, np.ndarray]:
    """Read one batch file of CIFAR-10 -> x uint8 (N, 32, 32, 3), y int64 (N,).

    The form is seen from the file's first byte: binary (records of 3,073 bytes, data_batch_1.bin) or pickled by Python
    2 (data_batch_1) or 3 (a copy of it). A pickle can run code when it is read; here only arrays of bytes, lists, dicts,
    numbers and strings are let in, and a file that asks for anything else is refused.

    Raises FileNotFoundError, and ValueError where the file is empty, cut off, of another kind, or has a label over 9.
    Allocates x, y and, until it returns, the bytes of the file. Format: A. Krizhevsky, www.cs.toronto.edu/~kriz/cifar.html
    """
    path = Path(path)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder; give one batch file, or datasets.cifar10(path=folder) for all")
    if not path.exists():
        raise FileNotFoundError(f"{path} does not exist; give a batch file such as data_batch_1.bin")
    return parse_batch(path.read_bytes(), str(path))


def parse_batch(raw: bytes, name: str) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of one batch file -> x uint8 (N, 32, 32, 3), y int64 (N,); `name` is what errors call it."""
    if not raw:
        raise ValueError(f"{name} is empty (0 bytes); a batch has records of {RECORD:,} bytes")
    if raw.startswith(b"\x1f\x8b"):
        raise ValueError(f"{name} is a gzip archive and not a batch file; give it to datasets.cifar10(path=...)")
    planes, y = _pickled(raw, name) if raw[0] in PICKLED else _binary(raw, name)
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
        for opcode, argument, _ in pickletools.genops(raw):
            # The unpickler makes room for every number below the highest one: a short file could ask for gigabytes.
            if opcode.name in ("PUT", "LONG_BINPUT") and (argument or 0) > len(raw):
                raise pickle.UnpicklingError(f"it numbers an object {argument}, in {len(raw):,} bytes")
        batch = _BatchUnpickler(raw).load()
    except Exception as error:  # a damaged pickle can fail in any way
        raise ValueError(f"{name} cannot be read as a pickled CIFAR-10 batch: {error}") from error
    items = batch.items() if isinstance(batch, dict) else ()
    content = {key.decode("latin1") if isinstance(key, bytes) else key: value for key, value in items}
    if "data" not in content or "labels" not in content:
        found = sorted(map(str, batch)) if isinstance(batch, dict) else type(batch).__name__
        raise ValueError(f"{name} is a pickle of {found}; a CIFAR-10 batch is a dict with b'data' and b'labels'")
    data, labels = content["data"], content["labels"]
    x = data.value if isinstance(data, _ByteArray) else None
    if x is None or x.ndim != 2 or x.shape[1] != RECORD - 1:
        found = type(data).__name__ if x is None else f"an array of shape {x.shape}"
        raise ValueError(f"{name}: b'data' is {found}; it must be a uint8 array (N, {RECORD - 1})")
    if not isinstance(labels, list) or any(type(label) is not int or abs(label) >= 2**63 for label in labels):
        raise ValueError(f"{name}: b'labels' must be a list of integers, of 64 bits at most")
    if len(labels) != len(x):
        raise ValueError(f"{name}: {len(x):,} pictures and {len(labels):,} labels; both must be as many")
    return x, np.array(labels, dtype=np.int64)


class _ByteArray:
    """Stands in for a NumPy array while unpickling: takes bytes, and no other dtype."""

    value: np.ndarray | None = None  # until a state is set

    def __init__(self, *_arguments: object) -> None:
        pass

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        _version, shape, dtype, fortran, data = state
        self.value = _array(data, dtype, shape, "F" if fortran else "C")


class _BufferArray(_ByteArray):
    """Stands in for NumPy's function _frombuffer, by which protocol 5 makes an array."""

    def __init__(self, data: object, dtype: object, shape: object, order: object) -> None:
        self.value = _array(data, dtype, shape, order)


def _array(data: object, dtype: object, shape: object, order: object) -> np.ndarray:
    if not isinstance(dtype, _ByteType) or not isinstance(data, bytes | bytearray):
        raise pickle.UnpicklingError("it holds an array that is not of bytes")
    if not isinstance(shape, tuple) or any(type(axis) is not int or axis < 0 for axis in shape):
        raise pickle.UnpicklingError(f"it holds an array of shape {shape!r}")
    return np.frombuffer(data, np.uint8).reshape(shape, order="F" if order == "F" else "C")


class _ByteType:
    """Stands in for numpy.dtype while unpickling: it can only be uint8."""

    def __init__(self, code: object, *_flags: object) -> None:
        if code not in ("u1", "|u1", "uint8", b"u1", b"|u1", b"uint8"):
            raise pickle.UnpicklingError(f"it holds an array of dtype {code!r}; pictures are u1 (uint8)")

    def __setstate__(self, state: object) -> None:
        """Byte order, fields and alignment: a single byte has none."""


class _Encode:
    """Stands in for _codecs.encode, by which Python 3 writes bytes in protocols 0 to 2: text of latin1, back to bytes.

    A text can be named again in few bytes, so that a short file could ask for gigabytes: all together may be as long as
    the file. It is an object and no function, as a pickle can set attributes of a function.
    """

    def __init__(self, room: int) -> None:
        self._room = room

    def __call__(self, text: object, encoding: object) -> bytes:
        if not isinstance(text, str) or encoding != "latin1":
            raise pickle.UnpicklingError(f"it asks for an encoding {encoding!r} of {type(text).__name__}; refused")
        self._room -= len(text)
        if self._room < 0:
            raise pickle.UnpicklingError("its texts, encoded, are longer than the file; refused")
        return text.encode("latin1")

    def __setstate__(self, state: object) -> None:
        raise pickle.UnpicklingError("it asks to change how text is encoded; refused")


# The names by which NumPy 1 (core) and 2 (_core) write an array, and what they may make here.
_ADMITTED: dict[tuple[str, str], Any] = {("numpy", "ndarray"): _ByteArray, ("numpy", "dtype"): _ByteType}
for _core in ("numpy.core", "numpy._core"):
    _ADMITTED[f"{_core}.multiarray", "_reconstruct"] = _ByteArray
    _ADMITTED[f"{_core}.numeric", "_frombuffer"] = _BufferArray


class _BatchUnpickler(pickle.Unpickler):
    def __init__(self, raw: bytes) -> None:
        super().__init__(io.BytesIO(raw), encoding="bytes")  # the strings of Python 2 are read as bytes
        self._admitted = _ADMITTED | {("_codecs", "encode"): _Encode(len(raw))}

    def find_class(self, module: str, name: str) -> Any:
        if (module, name) not in self._admitted:
            raise pickle.UnpicklingError(f"it asks for {module}.{name}, which no CIFAR-10 batch needs; refused")
        return self._admitted[module, name]

    def persistent_load(self, pid: object) -> NoReturn:
        raise pickle.UnpicklingError(f"it asks for the outside object {pid!r}, which no CIFAR-10 batch needs; refused")
