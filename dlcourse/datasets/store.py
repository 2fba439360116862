"""Where data sets are kept, and arrays in files that are whole or not there."""

import errno
import os
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import DTypeLike

from .split import Dataset, Split


def data_folder(folder: str | os.PathLike[str] | None = None) -> Path:
    """The folder for data sets: `folder` where it is given, else the environment variable DLCOURSE_DATA, else data/ of
    the checkout that this package lies in, else the user's cache folder. It need not exist yet.
    """
    chosen = folder or os.environ.get("DLCOURSE_DATA")
    if chosen:
        return Path(chosen).expanduser()
    root = Path(__file__).resolve().parents[2]
    if (root / "pyproject.toml").is_file():
        return root / "data"
    import pooch

    return Path(pooch.os_cache("dlcourse"))


def make_folder(folder: Path) -> None:
    """Make the folder where it is missing, and see that a file can be written into it; PermissionError where not."""
    trial = folder / f"{uuid.uuid4().hex}.part"
    try:
        folder.mkdir(parents=True, exist_ok=True)
        trial.touch()
        trial.unlink()
    except OSError as error:
        raise cannot_write(folder, error) from error


def open_npy(path: str | os.PathLike[str], shape: tuple[int, ...], dtype: DTypeLike) -> np.memmap | None:
    """Map a .npy file read-only; None where it is missing, cut off, or of another shape or dtype. Allocates nothing."""
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (FileNotFoundError, NotADirectoryError, ValueError, EOFError):
        return None
    whole = array.shape == shape and array.dtype == dtype and array.flags.c_contiguous
    return array if whole and os.path.getsize(path) == array.offset + array.nbytes else None


@contextmanager
def new_npy(
    path: str | os.PathLike[str], shape: tuple[int, ...], dtype: DTypeLike
) -> Iterator[Callable[[int, np.ndarray], None]]:
    """Write a .npy file a block of rows at a time: yields write(first_row, rows).

    The file has a temporary name until every row is there, so whatever stops the writing leaves no half file under
    `path`. Written, not mapped: a full disk is then an error (OSError) and not the end of the process.
    """
    path = Path(path)
    make_folder(path.parent)
    for left in path.parent.glob(f"{path.name}.*.part"):  # of a process that was killed, if it is a day old
        if time.time() - left.stat().st_mtime > 24 * 3600:
            left.unlink(missing_ok=True)
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex}.part")
    written = 0
    try:
        with open(temporary, "wb") as file:
            header = {"descr": np.lib.format.dtype_to_descr(np.dtype(dtype)), "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            start = file.tell()

            def write(first_row: int, rows: np.ndarray) -> None:
                nonlocal written
                rows = np.ascontiguousarray(rows, dtype)
                if rows.shape[1:] != shape[1:] or first_row + len(rows) > shape[0]:
                    raise ValueError(f"rows {rows.shape} from row {first_row} do not fit {path}, which is {shape}")
                try:
                    file.seek(start + first_row * rows.itemsize * int(np.prod(shape[1:])))
                    file.write(rows.data)
                    file.flush()
                except OSError as error:
                    raise cannot_write(path.parent, error) from error
                written += len(rows)

            yield write
            if written != shape[0]:
                raise ValueError(f"{path} must have {shape[0]} rows and was given {written}")
            os.fsync(file.fileno())
        try:
            os.replace(temporary, path)
        except PermissionError:
            # Windows does not replace a file that is mapped: another process was faster and made the same one.
            if open_npy(path, shape, dtype) is None:
                raise
    finally:
        temporary.unlink(missing_ok=True)


def load_or_convert(
    folder: Path,
    counts: dict[str, int],
    sample: tuple[int, ...],
    class_names: tuple[str, ...],
    pieces: Callable[[], Iterator[tuple[str, int, np.ndarray, np.ndarray]]],
) -> Dataset:
    """A data set kept in `folder` as train_x.npy, train_y.npy, test_x.npy, test_y.npy, which are made where one is
    missing or not whole.

    `counts` says how many samples "train" and "test" have, `sample` the shape of one. `pieces()` yields, in any order,
    (part, first row, x uint8, y) and is asked only where the files must be made. x comes back mapped, y as an array.
    """
    files: dict[str, Any] = {}
    for part, count in counts.items():
        files[f"{part}_x"] = folder / f"{part}_x.npy", (count, *sample), np.uint8
        files[f"{part}_y"] = folder / f"{part}_y.npy", (count,), np.int64
    if any(open_npy(*file) is None for file in files.values()):
        with ExitStack() as stack:
            write = {name: stack.enter_context(new_npy(*file)) for name, file in files.items()}
            for part, first_row, x, y in pieces():
                write[f"{part}_x"](first_row, x)
                write[f"{part}_y"](first_row, y)
                del x, y  # before the next piece is made

    def split(part: str) -> Split:
        return Split(np.load(files[f"{part}_x"][0], mmap_mode="r"), np.load(files[f"{part}_y"][0]), class_names)

    return Dataset(split("train"), split("test"))


def cannot_write(folder: Path, error: OSError) -> OSError:
    """The error to raise where writing into a data folder failed: it says how to choose another one."""
    kind = PermissionError if error.errno in (errno.EACCES, errno.EPERM, errno.EROFS) else OSError
    return kind(
        f"cannot write into the data folder {folder}: {error.strerror or error}. Choose another one with folder=... "
        f"or with the environment variable DLCOURSE_DATA"
    )
