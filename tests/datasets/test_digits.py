import subprocess
import sys

import numpy as np
from sklearn.datasets import load_digits

from dlcourse.datasets import digits


def test_digits_are_the_real_ones_in_bytes_split_about_80_to_20():
    data = digits()
    assert data.train.x.shape == (1437, 8, 8, 1) and data.test.x.shape == (360, 8, 8, 1)
    assert data.train.x.dtype == np.uint8 and data.train.y.dtype == np.int64
    assert data.train.class_names == tuple("0123456789")
    x = np.concatenate([data.train.x, data.test.x])[..., 0]
    y = np.concatenate([data.train.y, data.test.y])
    assert x.min() == 0 and x.max() == 255
    raw = load_digits()
    ours = sorted(zip(np.rint(x * (16 / 255)).astype(int).reshape(-1, 64).tolist(), y.tolist(), strict=True))
    theirs = sorted(zip(raw.data.astype(int).tolist(), raw.target.tolist(), strict=True))
    assert ours == theirs, "each digit once, with its own label, and its 17 levels can be told again"


def test_the_split_of_digits_is_fixed_and_holds_every_class():
    data = digits()
    np.testing.assert_array_equal(data.test.x, digits().test.x)
    assert np.bincount(data.test.y).min() >= 25
    assert data.train.y[:8].tolist() == [4, 9, 5, 8, 5, 3, 3, 9]


def test_digits_are_the_same_read_from_the_file_or_through_scikit_learn(monkeypatch):
    from_file = digits()
    monkeypatch.setattr(sys.modules["dlcourse.datasets.digits"], "_file", lambda: None)
    np.testing.assert_array_equal(digits().train.x, from_file.train.x)
    np.testing.assert_array_equal(digits().train.y, from_file.train.y)


def test_to_read_the_digits_does_not_load_scikit_learn():
    code = "import sys; from dlcourse.datasets import digits; digits(); assert 'sklearn' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)
