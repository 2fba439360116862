"""Checkpoints: the state of a training alone, in one safetensors file, written to a temporary name and renamed.

What is random is derived from the seed, the epoch and the step, so parameters, slots and the history are all the state
there is. A process that is killed at any moment leaves the last whole checkpoint.
"""

import dataclasses
import functools
import json
import os
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from safetensors import SafetensorError, safe_open

from dlcourse import tree

FILE = "latest.safetensors"
FORMAT = "dlcourse checkpoint 1"


class CheckpointError(OSError):
    """A checkpoint that cannot be written or read, or that belongs to another training. Names the file and the reason."""


def prepare(folder: str | Path) -> None:
    """Make the folder and see that it can be written to, before a training begins. Removes what a killed process left
    of a checkpoint that it was writing. Raises CheckpointError."""
    trial = _partial(Path(folder) / FILE)
    try:
        trial.parent.mkdir(parents=True, exist_ok=True)
        for left in trial.parent.glob("latest*.partial"):
            owner = left.name.split(".")[1]
            if not (owner.isdigit() and psutil.pid_exists(int(owner))):
                left.unlink()
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise CheckpointError(f"checkpoints cannot be written to {folder}: {error}; name a folder that can") from error


def _partial(path: Path) -> Path:
    """The temporary name of a checkpoint: each process has its own, so that two cannot write into one file."""
    return path.with_suffix(f".{os.getpid()}.partial")


def save(folder: str | Path, params: Any, slots: Any, history: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Write the state as `folder`/latest.safetensors, in place of the one before; returns the path.

    Raises CheckpointError where it cannot be written; the checkpoint before is then as it was. Copies no array.
    """
    path = Path(folder) / FILE
    partial = _partial(path)
    arrays, numbers = _split({"params": params, "slots": slots})
    arrays = {name: np.asarray(array, order="C") for name, array in arrays.items()}  # the file's order; mostly a no-op
    text = json.dumps({"numbers": numbers, "history": history, "settings": settings})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(partial, arrays, {"format": FORMAT, "state": text, "crc": _crc(text, arrays.get, arrays)})
        os.replace(partial, path)
    except OSError as error:
        _remove(partial)
        needed = tree.nbytes(arrays)
        kept = "; the checkpoint before it is unharmed" if path.exists() else ""
        raise CheckpointError(f"{path} could not be written ({needed:,} bytes): {error}{kept}") from error
    except BaseException:  # an interrupt
        _remove(partial)
        raise
    return path


def load(
    folder: str | Path, params: Any, slots: Any, settings: dict[str, Any], *, resume: bool = True
) -> dict[str, Any]:
    """Read `folder`/latest.safetensors into the arrays of `params` and `slots`, in place; returns the stored history,
    {} where there is no checkpoint. Nothing is changed unless everything fits.

    Raises CheckpointError where the file is damaged, of another network, or of other settings; and, with
    `resume=False`, where there is one at all: it is never overwritten unasked.
    """
    path = Path(folder) / FILE
    if not path.exists():
        return {}
    try:
        open(path, "rb").close()  # safe_open calls a file that one may not read a missing one
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") != FORMAT:
                raise CheckpointError(f"{path} is not a checkpoint of this package: expected format {FORMAT!r}")
            names = file.keys()
            if metadata["crc"] != _crc(metadata["state"], file.get_tensor, names):
                raise CheckpointError(f"{path} is damaged: its checksum is wrong; remove it to start anew")
            state = json.loads(metadata["state"])
            if not resume:
                done = len(state["history"]["step_loss"])
                raise CheckpointError(f"{path} holds a training of {done} steps: resume it, or name another folder")
            _check_settings(path, state["settings"], settings)
            arrays, _ = _split({"params": params, "slots": slots})
            _check_arrays(path, {name: file.get_slice(name) for name in names}, arrays)
            for name, array in arrays.items():
                array[...] = file.get_tensor(name)
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} is damaged: {error}; remove it to start anew") from error
    for name, value in state["numbers"].items():
        *_, key = name.split("/")
        slots[key] = value
    return state["history"]


def _write(path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file: the length of its header in 8 bytes, the header as JSON, the arrays one after another.

    The library's own writer is not used: killed in the middle, it leaves a file under a random name each time.
    """
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _DTYPES[array.dtype.name], "shape": array.shape, "data_offsets": (start, end)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the arrays begin at a multiple of 8
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            file.write(array.data)
        file.flush()
        os.fsync(file.fileno())  # on the disk before it takes the name of the whole one


def _crc(text: str, array_of: Callable[[str], Any], names: Iterable[str]) -> str:
    """A checksum of the whole state, an array at a time: the format itself does not notice a changed byte."""
    crc = zlib.crc32(text.encode())
    for name in sorted(names):
        crc = zlib.crc32(array_of(name), crc)
    return f"{crc:08x}"


def describe(**settings: Any) -> dict[str, Any]:
    """What must be equal for a training to go on to the bit, as plain text and numbers."""
    return {name: _describe(value) for name, value in settings.items()}


def _describe(value: Any) -> Any:
    if value is None or isinstance(value, str | bool | int | float):
        return value
    if isinstance(value, np.generic):
        return value.item()
    if isinstance(value, np.ndarray):
        return f"{len(value)} of them, crc {zlib.crc32(value.tobytes()):08x}"
    if isinstance(value, functools.partial):
        return f"{_describe(value.func)}{value.args}{sorted(value.keywords.items())}"
    if dataclasses.is_dataclass(value):
        return repr(value)
    name = f"{getattr(value, '__module__', '')}.{getattr(value, '__qualname__', type(value).__qualname__)}"
    if "<" in name and hasattr(value, "__code__"):
        # A lambda, or a function in a function: many have one name, so the code and what it closes over count.
        code, cells = value.__code__, value.__closure__ or ()
        parts = [code.co_code.hex(), *(repr(c) for c in code.co_consts if not hasattr(c, "co_code"))]
        parts += [str(_describe(cell.cell_contents)) for cell in cells]
        name += f" crc {zlib.crc32(' '.join(parts).encode()):08x}"
    return name


def _split(state: Any) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The arrays and the plain numbers of a tree, by their flat names."""
    flat = tree.flatten(state)
    arrays = {name: leaf for name, leaf in flat.items() if isinstance(leaf, np.ndarray)}
    return arrays, {name: leaf for name, leaf in flat.items() if name not in arrays}


def _check_settings(path: Path, stored: dict[str, Any], given: dict[str, Any]) -> None:
    for name in stored | given:
        if stored.get(name) != given.get(name):
            raise CheckpointError(
                f"{path} was written with {name} = {stored.get(name)}, this training has {given.get(name)}; "
                "take the same, or another folder"
            )


def _check_arrays(path: Path, stored: dict[str, Any], expected: dict[str, np.ndarray]) -> None:
    for name in sorted(stored.keys() | expected.keys()):
        found = _kind(stored[name]) if name in stored else "missing"
        wanted = (
            f"{_DTYPES.get(expected[name].dtype.name)} {expected[name].shape}" if name in expected else "no such array"
        )
        if found != wanted:
            raise CheckpointError(f"{path} is of another network: {name} is {found} there, expected {wanted}")


_DTYPES = {
    "float16": "F16", "float32": "F32", "float64": "F64", "bool": "BOOL",
    "int8": "I8", "int16": "I16", "int32": "I32", "int64": "I64",
    "uint8": "U8", "uint16": "U16", "uint32": "U32", "uint64": "U64",
}  # fmt: skip


def _kind(entry: Any) -> str:
    return f"{entry.get_dtype()} {tuple(entry.get_shape())}"


def _remove(path: Path) -> None:
    try:
        path.unlink(missing_ok=True)
    except OSError:
        pass  # the error that is being reported comes first
