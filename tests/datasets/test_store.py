import errno
import os
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from dlcourse.datasets import data_folder, shapes, store


def test_the_folder_is_the_argument_then_the_variable_then_data_of_the_checkout(tmp_path, monkeypatch):
    assert data_folder(tmp_path / "a") == tmp_path / "a"
    monkeypatch.setenv("DLCOURSE_DATA", str(tmp_path / "b"))
    assert data_folder() == tmp_path / "b"
    monkeypatch.delenv("DLCOURSE_DATA")
    root = tmp_path / "checkout"
    module = root / "dlcourse" / "datasets" / "store.py"
    monkeypatch.setattr(store, "__file__", str(module))
    module.parent.mkdir(parents=True)
    assert data_folder().name == "dlcourse" and root not in data_folder().parents, "installed: the user's cache"
    (root / "pyproject.toml").touch()
    assert data_folder() == root.resolve() / "data"


def test_rows_can_be_written_in_any_order(tmp_path):
    rows = np.arange(24, dtype=np.int64).reshape(6, 4)
    with store.new_npy(tmp_path / "a.npy", rows.shape, np.int64) as write:
        write(4, rows[4:])
        write(0, rows[:4])
        assert not (tmp_path / "a.npy").exists()
    np.testing.assert_array_equal(store.open_npy(tmp_path / "a.npy", (6, 4), np.int64), rows)
    np.testing.assert_array_equal(np.load(tmp_path / "a.npy"), rows)


def test_a_file_that_is_not_filled_or_fails_does_not_appear(tmp_path):
    new = partial(store.new_npy, tmp_path / "a.npy", (6, 4), np.uint8)
    with pytest.raises(ValueError, match=r"a\.npy must have 6 rows and was given 5"), new() as write:
        write(0, np.zeros((5, 4), np.uint8))
    with pytest.raises(KeyboardInterrupt), new():
        raise KeyboardInterrupt
    with pytest.raises(ValueError, match=r"rows \(2, 4\) from row 5 do not fit"), new() as write:
        write(5, np.zeros((2, 4), np.uint8))
    assert list(tmp_path.iterdir()) == []


def test_parts_that_a_killed_process_left_are_cleared_after_a_day(tmp_path):
    old, new, other = (tmp_path / name for name in ("a.npy.1.part", "a.npy.2.part", "b.npy.1.part"))
    for path in (old, new, other):
        path.touch()
    for path in (old, other):
        os.utime(path, (1, 1))
    with store.new_npy(tmp_path / "a.npy", (1,), np.uint8) as write:
        write(0, np.zeros(1, np.uint8))
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.npy", "a.npy.2.part", "b.npy.1.part"]


def test_a_full_disk_is_an_error_that_names_the_folder(tmp_path, monkeypatch):
    class Full:
        def __init__(self, file):
            self.file = file

        def __getattr__(self, name):
            return getattr(self.file, name)

        def __enter__(self):
            return self

        def __exit__(self, *_):
            self.file.close()

        def write(self, data):
            if memoryview(data).nbytes > 1000:
                raise OSError(errno.ENOSPC, "No space left on device")
            return self.file.write(data)

    monkeypatch.setattr(store, "open", lambda *a: Full(open(*a)), raising=False)  # noqa: SIM115
    with pytest.raises(OSError, match=r"data folder .*shapes: No space left on device.*DLCOURSE_DATA"):
        shapes(20, 10, folder=tmp_path)
    assert list((tmp_path / "shapes").iterdir()) == []


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_says_how_to_choose_another(tmp_path, monkeypatch, number):
    def refuse(*_, **__):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(Path, "mkdir", refuse)
    with pytest.raises(PermissionError, match=r"data folder .*shapes: .*folder=\.\.\. or .* DLCOURSE_DATA"):
        shapes(20, 10, folder=tmp_path)


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may write everywhere")
def test_a_read_only_folder_is_read_and_not_written(tmp_path):
    shapes(20, 10, folder=tmp_path)
    folder = tmp_path / "shapes"
    folder.chmod(0o500)
    try:
        shapes(20, 10, folder=tmp_path)
        with pytest.raises(PermissionError, match="DLCOURSE_DATA"):
            shapes(30, 10, folder=tmp_path)
    finally:
        folder.chmod(0o700)


def test_a_file_where_the_folder_should_be_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=r"data folder .*shapes: "):
        shapes(20, 10, folder=tmp_path / "file")
