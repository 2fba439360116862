import re
import tracemalloc

import numpy as np
import pytest

from dlcourse.inputs import as_input


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_images_are_scaled_as_the_formula_says(dtype):
    x = np.arange(256, dtype=np.uint8).reshape(4, 8, 8, 1)
    out = as_input(x, dtype)
    assert out.dtype == dtype and out.shape == x.shape
    np.testing.assert_array_equal(out, (x.astype(dtype) / dtype(255) - dtype(0.5)) / dtype(0.25))
    assert out.min() == -2 and out.max() == 2
    assert x[0, 0, 1, 0] == 1, "the images themselves stay as they are"


def test_images_cost_exactly_one_new_array():
    x = np.full((25, 32, 32, 3), 7, np.uint8)
    as_input(x)
    domain = tracemalloc.DomainFilter(True, np.lib.tracemalloc_domain)
    tracemalloc.start()
    try:
        out = as_input(x)
        held = tracemalloc.take_snapshot().filter_traces([domain])
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert sum(trace.size for trace in held.traces) == out.nbytes == x.size * 4
    assert peak - out.nbytes < 16 * 1024, "a temporary stood beside the result"


def test_part_of_a_memory_map_becomes_a_plain_array(tmp_path):
    np.save(tmp_path / "x.npy", np.zeros((6, 4, 4, 3), np.uint8))
    mapped = np.load(tmp_path / "x.npy", mmap_mode="r")
    assert type(as_input(mapped[[3, 1]])) is np.ndarray


@pytest.mark.parametrize("dtype", [np.int64, np.int32, np.uint16, np.int8])
def test_other_integers_pass_as_they_are(dtype):
    tokens = np.array([[3, 1], [2, 0]], dtype)
    assert as_input(tokens) is tokens


def test_floats_are_cast_only_where_the_dtype_differs():
    x = np.array([0.1, np.nan], np.float32)
    assert as_input(x) is x
    cast = as_input(x, np.float64)
    assert cast.dtype == np.float64
    np.testing.assert_array_equal(cast, x.astype(np.float64))
    assert as_input(x.astype(np.float16)).dtype == np.float32


@pytest.mark.parametrize(
    "x", [[True, False], [1j], ["a"], [b"a"], np.array([[1], None], object), np.array("2026", "M8")]
)
def test_anything_else_is_refused_with_its_dtype_and_what_is_right(x):
    with pytest.raises(TypeError, match=re.escape(f"dtype {np.asarray(x).dtype}; ") + ".*uint8.*float32"):
        as_input(x)


@pytest.mark.parametrize("dtype", [np.int32, "uint8", complex, bool, object])
def test_the_result_must_be_a_float(dtype):
    with pytest.raises(TypeError, match="give float32 or float64"):
        as_input(np.zeros(2, np.uint8), dtype)
