"""Real handwritten digits, 8x8, that come with scikit-learn."""

import numpy as np

from .split import Dataset, Split

TEST_SAMPLES = 360


def digits() -> Dataset:
    """1,797 real handwritten digits, in a fixed random order: 1,437 to train on and 360 to test on. Needs no network.

    x uint8 (N, 8, 8, 1) from 0 (paper) to 255 (ink); y int64 (N,); class_names "0" to "9". 112 KiB in all.
    The originals count the inked pixels of 4x4 squares, 0 to 16; here that is round(x * 255 / 16).
    Source: E. Alpaydin and C. Kaynak, Optical Recognition of Handwritten Digits, UCI repository, 1998 (its test part).
    """
    from sklearn.datasets import load_digits  # loading scikit-learn takes a second: only who asks for digits waits

    raw = load_digits()
    x = np.rint(raw.images * (255 / 16)).astype(np.uint8)[..., np.newaxis]
    y = raw.target.astype(np.int64)
    order = np.random.default_rng(0).permutation(len(x))
    names = tuple("0123456789")
    test, train = order[:TEST_SAMPLES], order[TEST_SAMPLES:]
    return Dataset(Split(x[train], y[train], names), Split(x[test], y[test], names))
