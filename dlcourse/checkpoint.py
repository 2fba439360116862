"""Checkpoints: the state of a training alone, in one safetensors file, written to a temporary name and renamed.

What is random is derived from the seed, the epoch and the step, so parameters, slots and the history are all the state
there is. A process that is killed at any moment leaves the last whole checkpoint.
"""

import contextlib
import json
import os
import uuid
import zlib
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from safetensors import SafetensorError, safe_open

from dlcourse import tree
from dlcourse.settings import CheckpointError

FILE = "latest.safetensors"
FORMAT = "dlcourse checkpoint 2"
OLD_FORMAT = "dlcourse checkpoint 1"  # has the history in its header, and knows fewer settings
MAX_HEADER_BYTES = 100_000_000  # the reader takes no longer header


def prepare(folder: str | Path) -> None:
    """Make the folder and see that it can be written to, before a training begins. Removes what a killed process left
    of a checkpoint that it was writing. Raises CheckpointError."""
    trial = _partial(Path(folder) / FILE)
    try:
        trial.parent.mkdir(parents=True, exist_ok=True)
        for left in trial.parent.glob("latest*.partial"):
            owner = left.name.split(".")[1]
            if not (owner.isdigit() and psutil.pid_exists(int(owner))):
                left.unlink(missing_ok=True)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise CheckpointError(f"checkpoints cannot be written to {folder}: {error}; name a folder that can") from error


def _partial(path: Path) -> Path:
    """A temporary name that no other process or thread has."""
    return path.with_suffix(f".{os.getpid()}.{uuid.uuid4().hex}.partial")


def save(folder: str | Path, params: Any, slots: Any, history: dict[str, Any], settings: dict[str, Any]) -> Path:
    """Write the state as `folder`/latest.safetensors, in place of the one before; returns the path.

    Raises CheckpointError if it cannot be written, or could not be read again; the checkpoint before is then as it was.
    Copies no array but the losses, 8 bytes a step.
    """
    path = Path(folder) / FILE
    partial = _partial(path)
    arrays, numbers = _split({"params": params, "slots": slots})
    rest = {name: value for name, value in history.items() if name != "step_loss"}
    arrays["history/step_loss"] = np.array(history["step_loss"], np.float64)
    arrays["history/rest"] = np.frombuffer(json.dumps(rest, default=_plain).encode(), np.uint8)
    # In the file's order of bytes and axes; mostly the array itself.
    arrays = {name: np.asarray(array, array.dtype.newbyteorder("<"), order="C") for name, array in arrays.items()}
    text = json.dumps({"numbers": numbers, "settings": settings})
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        _write(partial, arrays, {"format": FORMAT, "state": text, "crc": _crc(text, arrays.get, arrays)})
        os.replace(partial, path)
    except (OSError, TypeError, ValueError) as error:
        needed = tree.nbytes(arrays)
        kept = "; the checkpoint before it is unharmed" if path.exists() else ""
        raise CheckpointError(f"{path} could not be written ({needed:,} bytes): {error}{kept}") from error
    finally:
        with contextlib.suppress(OSError):  # the error that is being reported comes first
            partial.unlink(missing_ok=True)
    return path


def load(
    folder: str | Path, params: Any, slots: Any, settings: dict[str, Any], *, resume: bool = True
) -> dict[str, Any]:
    """Read `folder`/latest.safetensors into the arrays of `params` and `slots`, in place; returns the stored history,
    {} if there is no checkpoint. Nothing is changed unless everything fits.

    Raises CheckpointError if the file is damaged, of another network, or of other settings; and, with
    `resume=False`, if there is one at all: it is never overwritten unasked.
    """
    path = Path(folder) / FILE
    if not path.exists():
        return {}
    try:
        open(path, "rb").close()  # safe_open calls a file that one may not read a missing one
        with safe_open(path, framework="numpy") as file:
            metadata = file.metadata() or {}
            if metadata.get("format") not in (FORMAT, OLD_FORMAT):
                raise CheckpointError(f"{path} is not a checkpoint of this package: expected format {FORMAT!r}")
            names = set(file.keys())
            if metadata["crc"] != _crc(metadata["state"], file.get_tensor, names):
                raise CheckpointError(f"{path} is damaged: its checksum is wrong; remove it to start anew")
            state = json.loads(metadata["state"])
            if metadata["format"] == OLD_FORMAT:
                history = state["history"]
                settings = {name: value for name, value in settings.items() if name in state["settings"]}
            else:
                history = json.loads(file.get_tensor("history/rest").tobytes())
                history["step_loss"] = file.get_tensor("history/step_loss").tolist()
            if not resume:
                done = len(history["step_loss"])
                raise CheckpointError(f"{path} holds a training of {done} steps: resume it, or name another folder")
            _check_settings(path, state["settings"], settings)
            arrays, numbers = _split({"params": params, "slots": slots})
            names -= {"history/rest", "history/step_loss"}
            entries = {name: file.get_slice(name) for name in names}
            kinds = {name: f"{entry.get_dtype()} {tuple(entry.get_shape())}" for name, entry in entries.items()}
            expected = {name: f"{_dtype(name, array)} {array.shape}" for name, array in arrays.items()}
            stored_kinds = kinds | dict.fromkeys(state["numbers"], "a number")
            _check_arrays(path, stored_kinds, expected | dict.fromkeys(numbers, "a number"))
            for name, array in arrays.items():
                array[...] = file.get_tensor(name)
    except CheckpointError:
        raise
    except OSError as error:
        raise CheckpointError(f"{path} cannot be read: {error}") from error
    except (SafetensorError, KeyError, json.JSONDecodeError) as error:
        raise CheckpointError(f"{path} is damaged: {error}; remove it to start anew") from error
    flat = {name: state["numbers"].get(f"slots/{name}", leaf) for name, leaf in tree.flatten(slots).items()}
    slots.update(tree.unflatten(flat, like=slots))
    return history


def _write(path: Path, arrays: dict[str, np.ndarray], metadata: dict[str, str]) -> None:
    """Write a safetensors file: the length of its header in 8 bytes, the header as JSON, the arrays one after another.

    The library's own writer is not used: killed in the middle, it leaves a file under a random name each time.
    """
    header: dict[str, Any] = {"__metadata__": metadata}
    end = 0
    for name, array in arrays.items():
        start, end = end, end + array.nbytes
        header[name] = {"dtype": _dtype(name, array), "shape": array.shape, "data_offsets": (start, end)}
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)  # so that the arrays begin at a multiple of 8
    if len(text) > MAX_HEADER_BYTES:
        raise ValueError(f"names and settings take {len(text):,} bytes; a reader takes {MAX_HEADER_BYTES:,}")
    with open(path, "wb") as file:
        file.write(len(text).to_bytes(8, "little"))
        file.write(text)
        for array in arrays.values():
            file.write(array.data)
        file.flush()
        os.fsync(file.fileno())  # on the disk before it takes the name of the whole one


def _dtype(name: str, array: np.ndarray) -> str:
    """The format's name of a dtype, such as F32."""
    kind, bits = array.dtype.kind, 8 * array.dtype.itemsize
    if kind not in "fiub" or bits > 64:
        raise TypeError(f"{name} is {array.dtype}, which the file format does not have")
    return "BOOL" if kind == "b" else f"{kind.upper()}{bits}"


def _crc(text: str, array_of: Callable[[str], Any], names: Iterable[str]) -> str:
    """A checksum of the whole state, an array at a time: the format itself does not notice a changed byte."""
    crc = zlib.crc32(text.encode())
    for name in sorted(names):
        crc = zlib.crc32(array_of(name), crc)
    return f"{crc:08x}"


def _split(state: Any) -> tuple[dict[str, np.ndarray], dict[str, int]]:
    """The arrays and the plain numbers of a tree, by their flat names."""
    flat = tree.flatten(state)
    arrays = {name: leaf for name, leaf in flat.items() if isinstance(leaf, np.ndarray)}
    return arrays, {name: _plain(leaf) for name, leaf in flat.items() if name not in arrays}


def _plain(number: Any) -> Any:
    """Python's number for NumPy's."""
    return number.item() if isinstance(number, np.generic) else number


def _check_settings(path: Path, stored: dict[str, Any], given: dict[str, Any]) -> None:
    for name in stored | given:
        if stored.get(name) != given.get(name):
            raise CheckpointError(
                f"{path} was written with {name} = {stored.get(name)}, this training has {given.get(name)}; "
                "take the same, or another folder"
            )


def _check_arrays(path: Path, stored: dict[str, str], expected: dict[str, str]) -> None:
    for name in sorted(stored.keys() | expected.keys()):
        found, wanted = stored.get(name, "missing"), expected.get(name, "no such array")
        if found != wanted:
            raise CheckpointError(f"{path} is of another network: {name} is {found} there, expected {wanted}")
