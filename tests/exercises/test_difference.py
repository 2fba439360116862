import numpy as np
import pytest

from dlcourse.exercises.difference import difference, shown

ONES = np.ones((2, 2), np.float32)


class Odd:
    def __eq__(self, other):
        raise ValueError

    __hash__ = None


@pytest.mark.parametrize(
    ("expected", "got"),
    [
        (3, 3),
        (3, np.int64(3)),
        (3, 3.0),
        (0.5, np.float32(0.5)),
        (0.5, np.array(0.5)),
        (np.float32(0.1), 0.1),
        (float("inf"), float("inf")),
        (True, np.True_),
        (True, np.array(True)),
        ("float32", "float32"),
        (None, None),
        ((1, 2), [1, 2]),
        ({"W": ONES}, {"W": ONES.copy()}),
        (ONES, ONES + np.float32(1e-5)),
        (np.array([np.nan, np.inf]), np.array([np.nan, np.inf])),
        (np.array([1e6, 0.0], np.float32), np.array([1e6, 0.01], np.float32)),  # the rounding of the large one
        (np.float32(2), np.array(2, np.float32)),
        (np.zeros((0, 3)), np.zeros((0, 3))),
    ],
)
def test_the_same(expected, got):
    assert difference(expected, got) == ""


@pytest.mark.parametrize(
    ("expected", "got", "said"),
    [
        (3, 4, "expected 3, got 4"),
        (3, True, "a number is expected"),
        (3, None, "the result is None"),
        (None, 3, "None is expected"),
        (True, False, "expected True, got False"),
        (True, 1.5, "expected True"),
        ("a", 1, "expected 'a', got 1"),
        (12345, 123456, "expected 12,345, got 123,456"),
        (0.5, 0.6, "expected 0.5, got 0.6"),
        (0.5, 0.500001, "expected 0.5, got 0.500001"),
        (0.5, 0.50000012, "expected 0.5, got 0.50000012"),
        (3, 3.0000001, "expected 3, got 3.0000001"),
        (12345678, 12345678.5, "expected 12345678, got 12345678.5"),
        (0.5, 10**400, "the result is the number an integer of 1329 bits, and comparing it raises OverflowError"),
        (3, (3,), "a tuple of 1 (a comma at the end makes one)"),
        ((1, 2), (1,), "has 1 part, and 2 are expected"),
        (ONES, ..., "the result is an ellipsis"),
        (True, [True], "expected True, got [True]"),
        ("a", Odd(), "expected 'a', got "),
        ((1, 2), (Odd(), 2), "the result[0] is an Odd, and a number is expected"),
        (float("inf"), 20.7, "expected inf, got 20.7"),
        (20.7, float("inf"), "expected 20.7, got inf"),
        (float("inf"), float("-inf"), "expected inf, got -inf"),
        (3, ONES, "is an array of shape (2, 2), and a number is expected"),
        (ONES, 3, "is the number 3, and an array of shape (2, 2) is expected"),
        (ONES, ONES[:1], "has the shape (1, 2), and (2, 2) is expected"),
        (ONES, ONES.astype(float), "has the dtype float64, and float32 is expected"),
        (ONES, np.full((2, 2), "a"), "has the dtype <U1, and float32 is expected"),
        (ONES, np.full((2, 2), None), "has the dtype object, and float32 is expected"),
        (ONES, ONES * 2, "the result[0, 0]: expected 1, got 2; 4 of 4 numbers differ"),
        (np.array([1, 2]), np.array([1, 3]), "the result[1]: expected 2, got 3; 1 of 2 numbers differ"),
        ({"W": ONES}, {"b": ONES}, "has the keys ['b'], and ['W'] are expected"),
        ({"W": ONES}, {"W": 2 * ONES}, "the result['W'][0, 0]"),
        ({"W": ONES}, 3, "a dict is expected"),
        ((1, 2), (1, 3), "the result[1]: expected 2, got 3"),
    ],
)
def test_what_differs_first(expected, got, said):
    assert said in difference(expected, got)


def test_an_integer_that_python_does_not_write_out_is_counted_in_bits():
    assert "expected 3, got an integer of 16610 bits" in difference(3, 10**5000)


def test_members_of_a_tuple_have_names():
    assert difference((1, 2), (1, 3), names=("dx", "dW")).startswith("dW: expected 2")


def test_a_wrong_last_digit_is_seen_in_float64_and_not_in_float32():
    assert difference(np.ones(2), np.ones(2) + 1e-5)
    assert not difference(np.ones(2, np.float32), np.ones(2, np.float32) + np.float32(1e-5))


def test_arguments_are_shown_short():
    assert shown(np.zeros((100, 100))) == "array of shape (100, 100), float64"
    assert shown(np.array([1, 2])) == "[1, 2] (int64)"
    assert shown((2, 3)) == "(2, 3)"
    assert shown(np.random.default_rng(0)) == "a Generator"
    assert shown({"W": ONES}) == "a dict with the keys W"
    assert shown([ONES, ONES]) == "a list of 2"
    assert shown(type("Views", (list,), {})([ONES])) == "a list of 1"
    assert shown(len) == "the function len"
