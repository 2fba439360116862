from dataclasses import replace

import numpy as np
import pytest

from dlcourse.exercises.check import judge
from dlcourse.exercises.unit import find

EXERCISE = replace(find("03.2"), wrong=())  # what is said without knowing a wrong answer
affine_backward = EXERCISE.reference


def verdict(function):
    return judge(EXERCISE, function)


def ordered(*order):
    return lambda dy, x, W: tuple(affine_backward(dy, x, W)[part] for part in order)


@pytest.mark.parametrize(
    ("order", "said"),
    [
        ((1, 0, 2), "dW where dx is expected, dx where dW is expected."),
        ((2, 0, 1), "db where dx is expected, dx where dW is expected, dW where db is expected."),
    ],
)
def test_right_parts_in_another_order_are_told_by_their_names(order, said):
    found = verdict(ordered(*order))
    assert found.text.splitlines()[1].startswith("The numbers are right, and stand in another order:")
    assert said in found.text and "The order is dx, dW, db." in found.text
    assert len(found.text.splitlines()) == 2


def test_two_parts_that_are_always_equal_are_not_told_as_exchanged():
    exercise = find("00.2")
    found = judge(exercise, lambda inputs, outputs: exercise.reference(inputs, outputs)[::-1])
    assert "slots where params is expected, params where slots is expected." in found.text
    assert "twice too large" not in found.text


def test_a_sentence_about_the_whole_is_not_said_of_one_part():
    params = find("00.2").reference
    found = judge(find("00.2"), lambda i, o: (*params(i, o)[:2], 8 * i * o))  # biases are missing in the slots alone
    assert "The weights are counted, the biases are not." not in found.text
    assert "slots: expected" in found.text


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (lambda dx, dW, db: (-dx, dW, db), "In dx the sign is the other one."),
        (lambda dx, dW, db: (dx, 2 * dW, 2 * db), "In dW and db all is too large by the factor 2."),
        (lambda dx, dW, db: (dx, dW.T, db), "In dW rows and columns are exchanged."),
        (lambda dx, dW, db: (dx, dW, db + 1), "In db there is 1 too much, always."),
        (lambda dx, dW, db: (dx, dW, db[None]), "In db the numbers are right, the shape is not"),
        (lambda dx, dW, db: (dx, dW.ravel(), db), "In dW the numbers are right, the shape is not"),
        (lambda dx, dW, db: (dx, dW / len(dx), db), "In dW all is too small by the factor len(dy)."),
        (lambda dx, dW, db: (dx, dW, np.abs(db)), "In db the sign is lost."),
        (lambda dx, dW, db: (dx, dW * 0, db), "In dW 0 stands everywhere."),
        (lambda dx, dW, db: (dx, dW, dW), "In db stands what dW should be."),
        (
            lambda dx, dW, db: (dx.astype(np.float64), dW, db),
            "dx has the dtype float64, and float32 is expected. Its numbers are",
        ),
    ],
    ids=["sign", "factor", "transposed", "offset", "axis", "flat", "N", "abs", "zeros", "other part", "dtype"],
)
def test_what_is_certain_about_a_part_is_said_in_general(change, said):
    found = verdict(lambda dy, x, W: change(*affine_backward(dy, x, W)))
    assert found.wrong is None and said in found.text, found.text
    assert "On the input “" in found.text


def test_one_wrong_number_proves_no_general_mistake():
    exercise = replace(
        EXERCISE, reference=lambda x: 2 * x, inputs=lambda rng: iter([("two", (2,))]), parts=(), wrong=()
    )
    found = judge(exercise, lambda x: 2 * x + 2)
    assert "On the input “two” the result: expected 4, got 6" in found.text.splitlines()[1]
