import importlib
import os
import subprocess
import sys
import tracemalloc
import zlib
from types import SimpleNamespace

import numpy as np
import pytest

from dlcourse.datasets import shapes

drawn = importlib.import_module("dlcourse.datasets.shapes")  # the module; the package has the function by that name


def test_shapes_are_bytes_with_labels_and_names():
    data = shapes(120, 70)
    assert data.train.x.shape == (120, 32, 32, 3) and data.train.x.dtype == np.uint8
    assert data.test.x.shape == (70, 32, 32, 3) and data.test.y.dtype == np.int64
    assert data.train.class_names == drawn.CLASS_NAMES and len(drawn.CLASS_NAMES) == 10


def test_the_same_seed_gives_the_same_bytes_on_every_machine():
    data = shapes(200, 100, seed=3)
    sums = [zlib.crc32(np.ascontiguousarray(part)) for part in (data.train.x, data.train.y.astype("<i8"), data.test.x)]
    # Where this fails because the pictures were meant to change, raise drawn.VERSION, and then these numbers.
    assert sums == [1310687378, 2732072055, 2823762279] and drawn.VERSION == 2


def test_a_picture_does_not_depend_on_how_many_are_asked_for():
    many = shapes(203, 1).train
    for count in (1, 49, 50, 51, 203):
        few = shapes(count, 1).train
        np.testing.assert_array_equal(few.x, many.x[:count])
        np.testing.assert_array_equal(few.y, many.y[:count])


def test_counts_and_seed_may_be_numbers_of_numpy(tmp_path):
    few = shapes(np.int8(100), np.int8(10), seed=np.int8(3), folder=tmp_path)
    np.testing.assert_array_equal(few.train.x, shapes(100, 10, seed=3).train.x)
    with pytest.raises(MemoryError, match="2,000,000,000 train"):
        shapes(np.int32(2_000_000_000), 10)


def test_every_ten_neighbours_hold_each_class_once():
    data = shapes(1000, 10)
    np.testing.assert_array_equal(np.sort(data.train.y.reshape(-1, 10), axis=1), np.tile(np.arange(10), (100, 1)))
    assert len(np.unique(data.train.y.reshape(-1, 10), axis=0)) > 90, "and not always in the same order"


def test_no_picture_is_drawn_twice_and_none_is_in_both_parts():
    data, other = shapes(2000, 2000), shapes(500, 500, seed=1)
    drawings = [x.tobytes() for part in (data.train, data.test, other.train, other.test) for x in part.x]
    assert len(set(drawings)) == 5000


def test_pictures_of_a_class_differ_in_place_size_and_colour_and_are_visible():
    data = shapes(1000, 10).train
    deviation = data.x.reshape(1000, -1).std(axis=1)
    assert deviation.min() > 5, "a picture is nearly empty"
    for label in range(10):
        mean = data.x[data.y == label].mean(axis=0)
        assert mean.std() < 40, "the pictures of a class lie on each other"


def test_on_disk_gives_the_same_pictures_from_a_read_only_map(tmp_path):
    here, there = shapes(130, 60), shapes(130, 60, folder=tmp_path / "set")
    for a, b in ((here.train, there.train), (here.test, there.test)):
        assert isinstance(b.x, np.memmap) and not b.x.flags.writeable
        np.testing.assert_array_equal(a.x, b.x)
        np.testing.assert_array_equal(a.y, b.y)
    names = sorted(path.name for path in (tmp_path / "set" / "shapes").iterdir())
    assert names == ["v2-seed0-test-60.npy", "v2-seed0-train-130.npy"]


def test_on_disk_uses_the_folder_of_the_environment(tmp_path):
    shapes(10, 10, on_disk=True, seed=5)
    assert (tmp_path / "data" / "shapes" / "v2-seed5-train-10.npy").is_file()


def test_a_whole_file_is_used_again_and_a_damaged_one_is_made_again(tmp_path):
    expected = np.array(shapes(60, 10, folder=tmp_path).train.x)
    file = tmp_path / "shapes" / "v2-seed0-train-60.npy"
    os.utime(file, ns=(1, 1))
    shapes(60, 10, folder=tmp_path)
    assert file.stat().st_mtime_ns == 1
    whole = file.read_bytes()
    other = whole.replace(b"(60, 32, 32, 3)", b"(60, 32, 3, 32)")
    for damaged in (whole[:-1], whole[:1000], whole[:5], b"", whole + b"x", b"<html>", other):
        file.write_bytes(damaged)
        np.testing.assert_array_equal(shapes(60, 10, folder=tmp_path).train.x, expected)
        assert file.read_bytes() == whole


def test_a_process_killed_while_drawing_leaves_no_half_file(tmp_path):
    code = """
import os, sys, importlib
drawn = importlib.import_module("dlcourse.datasets.shapes")
draw, calls = drawn._draw, []
def killed(*arguments):
    calls.append(1)
    if len(calls) == 3:
        os._exit(9)
    return draw(*arguments)
drawn._draw = killed
drawn.shapes(200, 10, folder=sys.argv[1])
"""
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False).returncode == 9
    left = [path.name for path in (tmp_path / "shapes").iterdir()]
    assert len(left) == 1 and left[0].endswith(".part")
    np.testing.assert_array_equal(shapes(200, 10, folder=tmp_path).train.x, shapes(200, 10).train.x)


def test_drawing_needs_two_mebibytes_of_working_memory_however_many_pictures(tmp_path):
    shapes(50, 50)
    for count in (500, 2000):
        tracemalloc.start()
        try:
            shapes(count, 50, folder=tmp_path)
            peak = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()
        assert peak < 2 * 2**20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"samples": 0}, "samples is 0; give 1 or more"),
        ({"test_samples": -5}, "test_samples is -5"),
        ({"seed": -1}, "seed is -1; give an integer from 0"),
        ({"seed": 2**32}, "seed is 4294967296"),
    ],
)
def test_numbers_that_cannot_be_are_refused(arguments, message):
    with pytest.raises(ValueError, match=message):
        shapes(**arguments)
    with pytest.raises(TypeError):
        shapes(10.5)


def test_more_than_the_memory_or_the_disk_holds_is_refused_before_anything_is_drawn(tmp_path, monkeypatch):
    with pytest.raises(
        MemoryError, match=r"1,000,000,000,000 train and 1 test pictures need 2875924 GiB of memory, and"
    ):
        shapes(10**12, 1)
    with pytest.raises(MemoryError, match=r"of memory, and .* is free; ask for fewer$"):
        shapes(10**12, 1, folder=tmp_path / "new" / "one")
    free = SimpleNamespace(free=3072 * 1000)
    monkeypatch.setattr(drawn.shutil, "disk_usage", lambda _: free)
    with pytest.raises(OSError, match=r"need 2.98 MiB on the disk of .*new.*, and 2.93 MiB is free.*DLCOURSE_DATA"):
        shapes(1000, 17, folder=tmp_path / "new")
    assert not (tmp_path / "new").exists()
    shapes(100, 10, folder=tmp_path)
    free.free = 0
    shapes(100, 10, folder=tmp_path)  # they are there, and need no more
