"""Real handwritten digits, 8x8, that come with scikit-learn."""

import importlib.util
from pathlib import Path

import numpy as np

from .split import Dataset, Split

TEST_SAMPLES = 360


def digits() -> Dataset:
    """1,797 real handwritten digits, in a fixed random order: 1,437 to train on and 360 to test on. Needs no network.

    x uint8 (N, 8, 8, 1) from 0 (paper) to 255 (ink); y int64 (N,); class_names "0" to "9". 112 KiB in all.
    The originals count the inked pixels of 4x4 squares, 0 to 16; here that is round(x * 255 / 16).
    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI repository, 1998 (its test part).
    """
    counts, y = _counts_and_labels()
    x = np.rint(counts.reshape(-1, 8, 8, 1) * (255 / 16)).astype(np.uint8)
    order = np.random.default_rng(0).permutation(len(x))
    names = tuple("0123456789")
    test, train = order[:TEST_SAMPLES], order[TEST_SAMPLES:]
    return Dataset(Split(x[train], y[train], names), Split(x[test], y[test], names))


def _counts_and_labels() -> tuple[np.ndarray, np.ndarray]:
    """(1797, 64) float64, (1797,) int64. From scikit-learn's file, if it is in its place: to load the library takes a second."""
    file = _file()
    if file:
        rows = np.loadtxt(file, delimiter=",")
        return rows[:, :64], rows[:, 64].astype(np.int64)
    from sklearn.datasets import load_digits

    raw = load_digits()
    return raw.data, raw.target.astype(np.int64)


def _file() -> Path | None:
    found = importlib.util.find_spec("sklearn")
    folders = found.submodule_search_locations or [] if found else []
    files = [Path(folder) / "datasets" / "data" / "digits.csv.gz" for folder in folders]
    return next((file for file in files if file.is_file()), None)
