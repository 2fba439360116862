import subprocess
import sys

import numpy as np
import pytest

from dlcourse.datasets import Dataset, Split


def test_x_and_y_must_be_as_many():
    with pytest.raises(ValueError, match=r"x \(3, 2\) and y \(4,\) must have the same number"):
        Split(np.zeros((3, 2)), np.zeros(4, np.int64))
    with pytest.raises(ValueError, match="same number"):
        Split(np.zeros((3, 2)), np.array(1))


@pytest.mark.parametrize("label", [-1, 2])
def test_a_label_without_a_name_is_refused(label):
    with pytest.raises(ValueError, match=f"label {label} has no class: labels go from 0 to 1"):
        Split(np.zeros((2, 3)), np.array([0, label]), ("cat", "dog"))


@pytest.mark.parametrize("names", [(), ("cat", "dog")])
def test_text_as_labels_is_answered_with_the_numbers_to_take(names):
    with pytest.raises(TypeError, match=r"y is <U3; labels must be numbers.*np.unique\(labels, return_inverse=True\)"):
        Split(np.zeros((2, 3)), np.array(["cat", "dog"]), names)


@pytest.mark.parametrize("labels", [np.array([0.0, np.nan]), np.array([True, False])])
def test_labels_with_names_are_integers(labels):
    with pytest.raises(TypeError, match="those of classes integers"):
        Split(np.zeros((2, 3)), labels, ("cat", "dog"))


def test_lists_are_answered_with_what_makes_arrays_of_them():
    with pytest.raises(TypeError, match=r"x must be a NumPy array, got list; np.array\(x\) makes one"):
        Split([[1.0]], np.array([0]))
    with pytest.raises(TypeError, match="y must be a NumPy array, got tuple"):
        Split(np.ones((1, 1)), (0,))


def test_labels_without_names_are_not_checked():
    assert len(Split(np.zeros((2, 3)), np.array([0.5, 7.25]))) == 2


def test_repr_shows_shapes_and_bytes_and_no_pixels(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((100, 32, 32, 3), np.uint8))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    y = np.zeros(100, np.int64)
    on_disk, part = Split(mapped, y, ("cat",)), Split(mapped[[1, 2]], y[:2], ("cat",))
    assert repr(on_disk) == "Split(x uint8 (100, 32, 32, 3) 300 KiB on disk, y int64 (100,), 1 classes)"
    assert repr(part) == "Split(x uint8 (2, 32, 32, 3) 6.00 KiB in memory, y int64 (2,), 1 classes)"
    assert repr(Dataset(on_disk, part)).startswith("Dataset(train=Split(x uint8 (100")


def test_importing_the_data_sets_is_light():
    heavy = {"sklearn", "scipy", "pooch", "requests", "matplotlib", "tqdm"}
    code = f"import sys, dlcourse.datasets; print(sorted({heavy} & set(sys.modules)))"
    assert (
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
    )
