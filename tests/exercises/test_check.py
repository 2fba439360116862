import asyncio
import functools
import sys
import time
from dataclasses import replace

import numpy as np
import pytest

from dlcourse.exercises import check, hint, record
from dlcourse.exercises.check import cost, is_stub, judge
from dlcourse.exercises.unit import Exercise, Wrong, find


def affine_backward(dy, x, W):
    return dy @ W.T, x.T @ dy, dy.sum(axis=0)


def mean_of_batch(dy, x, W):
    return dy @ W.T, x.T @ dy, dy.mean(axis=0)


def without_transposing(dy, x, W):
    return dy @ W, x.T @ dy, dy.sum(axis=0)


def inputs(rng):
    def normal(*shape):
        return rng.standard_normal(shape)

    yield "2 samples, 2 → 2", (normal(2, 2), normal(2, 2), normal(2, 2))
    yield "5 samples, 3 → 3, float32", tuple(a.astype(np.float32) for a in (normal(5, 3), normal(5, 3), normal(3, 3)))


def big(rng):
    return tuple(np.ones(shape, np.float32) for shape in ((512, 1024), (512, 1024), (1024, 1024)))


EXERCISE = Exercise(
    id="03.9",
    title="Backward",
    reference=affine_backward,
    inputs=inputs,
    hints=("First.", "Last."),
    wrong=(Wrong(mean_of_batch, "db is a mean."), Wrong(without_transposing, "W has to be transposed.")),
    large=big,
    costs=((3.0, "everything was copied"),),
    parts=("dx", "dW", "db"),
    seconds=30,
)


def verdict(function):
    return judge(EXERCISE, function)


def generator(dy, x, W):
    yield affine_backward(dy, x, W)


async def coroutine(dy, x, W):
    return affine_backward(dy, x, W)


def nothing(dy, x, W):
    dx = dy @ W.T  # noqa: F841  its `return` was forgotten


@pytest.fixture(autouse=True)
def own_folder(tmp_path, monkeypatch):
    monkeypatch.setenv(record.FOLDER, str(tmp_path))


def stub_of_dots(dy, x, W):
    """dy (N, D_out)."""
    ...  # noqa: PIE790  as in a notebook


def stub_of_dots_alone(dy, x, W): ...


def stub_of_pass(dy, x, W):
    pass


def stub_that_refuses(dy, x, W):
    raise NotImplementedError("later")


@pytest.mark.parametrize("stub", [..., None, stub_of_dots, stub_of_dots_alone, stub_of_pass, stub_that_refuses])
def test_a_stub_is_not_yet(stub):
    assert is_stub(stub)
    assert verdict(stub).state == "not yet"


@pytest.mark.parametrize("written", [affine_backward, lambda dy, x, W: 0, lambda dy, x, W: dy, len, 5])
def test_what_was_written_is_no_stub(written):
    assert not is_stub(written)


def test_a_right_answer_in_other_words_is_right():
    found = verdict(lambda dy, x, W: (np.dot(dy, W.T), np.dot(x.T, dy), np.add.reduce(dy)))
    assert found.state == "right"
    assert found.text.endswith(": right.")


def test_the_peak_of_a_right_answer_stands_beside_the_references():
    assert "as much as the reference" in cost(EXERCISE, affine_backward)


def test_a_right_answer_that_takes_more_is_told_what_that_often_is():
    def wasteful(dy, x, W):
        return tuple(np.concatenate([part] * 4)[: len(part)].copy() for part in affine_backward(dy, x, W))

    assert verdict(wasteful).state == "right"
    assert "× the reference's" in cost(EXERCISE, wasteful)
    assert "Often that is: everything was copied." in cost(EXERCISE, wasteful)


def test_a_known_mistake_is_told_by_its_sentence():
    assert verdict(lambda dy, x, W: (dy @ W.T, x.T @ dy, dy.sum(axis=0) / len(dy))).wrong is EXERCISE.wrong[0]


def test_two_known_mistakes_at_a_time_are_both_told():
    found = verdict(lambda dy, x, W: (dy @ W, x.T @ dy, dy.mean(axis=0)))
    assert "db is a mean." in found.text and "W has to be transposed." in found.text


def test_an_unknown_mistake_is_told_where_it_differs_first_on_the_smallest_input():
    found = verdict(lambda dy, x, W: (dy @ W.T, x.T @ dy + (np.arange(dy.shape[1]) == 1), dy.sum(axis=0)))
    assert found.state == "wrong" and found.wrong is None
    assert "“2 samples, 2 → 2” dW[0, 1]: expected" in found.text
    assert "2 of 4 numbers differ" in found.text
    assert "  W = [[" in found.text


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (nothing, "the result is None"),
        (lambda dy, x, W: dy, "3 things (dx, dW, db) are expected"),
        (lambda dy, x, W: (dy, x), "has 2 parts, and 3 (dx, dW, db) are expected"),
        (lambda dy, x, W: (dy.sum(), x.T @ dy, dy.sum(axis=0)), "dx has the shape (), and (2, 2) is expected"),
        (lambda dy, x, W: (dy @ W.T, x.T @ dy, dy.sum(axis=0, dtype=float)), "db has the dtype float64"),
        (lambda dy, x, W: 1 / 0, "raises ZeroDivisionError (line 1 of your function): division by zero."),
        (lambda dy, x: 0, "takes (dy, x), and (dy, x, W) is expected"),
        (lambda dy, x, W: exit(3), "raises SystemExit"),  # noqa: PLR1722
        (generator, "has `yield` in it"),
        (coroutine, "has `async` in it"),
        (lambda x, dy, W: 0, "takes (x, dy, W), and the order (dy, x, W) is expected"),
        (7, 'check takes the function itself: check("03.9", affine_backward)'),
    ],
)
def test_what_is_wrong_is_said(function, said):
    found = verdict(function)
    assert found.state == "wrong"
    assert said in found.text


def part_of_dots(dy, x, W):
    dx = dy @ W.T
    dW = ...
    return dx, dW, dy.sum(axis=0)


def computes_with_dots(dy, x, W):
    y = ...
    return 2 * y


@pytest.mark.parametrize("function", [part_of_dots, computes_with_dots, functools.wraps(len)(stub_of_dots)])
def test_a_function_with_dots_left_in_it_is_not_yet(function):
    found = verdict(lambda *arguments: function(*arguments) or ...)
    assert found.state == "not yet"
    assert "A ... is left in it." in found.text


def test_two_known_mistakes_in_a_list_are_both_told_and_one_mistake_in_two_parts_once():
    both = Wrong(lambda dy, x, W: (dy @ W.T, x.T @ dy + 1, dy.sum(axis=0) + 1), "One is added.")
    exercise = replace(EXERCISE, wrong=(both, *EXERCISE.wrong))
    found = judge(exercise, lambda dy, x, W: [dy @ W, x.T @ dy + 1, dy.sum(axis=0) + 1])
    assert found.text.splitlines()[1:] == ["One is added.", "W has to be transposed."]


def test_of_two_mistakes_in_a_part_the_one_is_told_that_leaves_the_other_parts_right():
    all_means = Wrong(lambda dy, x, W: tuple(part / len(dy) for part in affine_backward(dy, x, W)), "All are means.")
    exercise = replace(EXERCISE, wrong=(all_means, *EXERCISE.wrong))
    found = judge(exercise, lambda dy, x, W: (dy @ W, x.T @ dy, dy.mean(axis=0)))
    assert "db is a mean." in found.text and "All are means." not in found.text


def test_a_result_that_is_used_again_at_the_next_call_is_right():
    result = []

    def again(dy, x, W):
        result[:] = affine_backward(dy, x, W)
        return result

    assert verdict(again).state == "right"


class Leaves(BaseException):
    def __str__(self):
        raise ValueError


def raises(error):
    def fails(dy, x, W):
        held = np.ones(3)
        raise error if error else RuntimeError(str(held))

    return fails


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (Leaves(), "raises Leaves (line 3 of your function).\n"),
        (asyncio.CancelledError(), "raises CancelledError (line 3 of your function).\n"),
        (ValueError("one\ntwo"), "raises ValueError (line 3 of your function): one.\n"),
        (ValueError("x" * 5000), "x ...\n"),
    ],
    ids=["no text", "cancelled", "two lines", "long"],
)
def test_an_error_is_said_in_one_line(error, said):
    assert said in verdict(raises(error)).text
    assert len(verdict(raises(error)).text) < 1000


def test_the_line_is_that_of_the_function_and_not_of_a_helper_in_the_same_cell():
    def calls(dy, x, W):
        return raises(None)(dy, x, W)

    def decorated(dy, x, W):
        return calls(dy, x, W)

    assert "(line 2 of your function)" in verdict(calls).text
    assert "(line 2 of your function)" in verdict(functools.wraps(calls)(decorated)).text


def test_a_function_that_fails_on_the_large_input_is_told_the_error():
    def fails(dy, x, W):
        if dy.size > 1000:
            raise MemoryError("too large")
        return affine_backward(dy, x, W)

    assert verdict(fails).state == "right"
    assert cost(EXERCISE, fails) == "But on a large input it raises MemoryError: too large."


def test_endless_recursion_is_said():
    def around(dy, x, W):
        return around(dy, x, W)

    assert "RecursionError" in verdict(around).text


def test_a_function_that_changes_its_arguments_is_told_which_and_the_next_inputs_are_whole():
    def in_place(dy, x, W):
        dy *= 2
        return affine_backward(dy / 2, x, W)

    assert "changes its argument dy" in verdict(in_place).text


@pytest.mark.parametrize("to", ["stdout", "stderr"])
def test_what_it_prints_is_kept_from_the_page_and_said(capsys, to):
    def loud(dy, x, W):
        print("\ndy is", dy, file=getattr(sys, to))
        return affine_backward(dy, x, W)

    found = verdict(loud)
    assert found.state == "right"
    assert "It prints, which nobody asked for: 'dy is" in found.text
    assert capsys.readouterr() == ("", "")


def test_what_it_warns_of_is_said():
    def warns(dy, x, W):
        np.exp(np.float32(1000))
        return affine_backward(dy, x, W)

    assert "It warns: overflow" in verdict(warns).text


def test_the_reference_of_an_unknown_id_names_what_there_is():
    with pytest.raises(ValueError, match=r"named like"):
        find("five")
    with pytest.raises(ValueError, match=r"notebook 99 has no exercises"):
        find("99.1")
    with pytest.raises(ValueError, match=r"notebook 00 has 00\.1, 00\.2"):
        find("00.9")


def test_check_prints_and_notes_what_was_tried(capsys):
    check("00.1", ...)
    assert "not yet" in capsys.readouterr().out
    assert record.load() == {}
    check("00.1", lambda *_: -1)
    check("00.1", find("00.1").reference)
    check("00.1", lambda *_: -1)
    assert "right." in capsys.readouterr().out
    entry = record.load()["00.1"]
    assert entry["tries"] == 3 and entry["right"]


def test_hints_are_counted_from_one(capsys):
    hint("00.1")
    first = capsys.readouterr().out
    assert first.startswith("00.1, hint 1 of") and 'hint("00.1", 2)' in first
    for number in (0, 99, True, 1.0, "1"):
        with pytest.raises(ValueError, match="has the hints 1 to"):
            hint("00.1", number)


def test_right_is_said_before_the_cost_is_known(capsys, monkeypatch):
    module = sys.modules["dlcourse.exercises.check"]
    monkeypatch.setattr(module, "cost", lambda *_: print(capsys.readouterr().out.endswith(": right.\n")))
    check("04.1", find("04.1").reference)
    assert capsys.readouterr().out == "True\n"


def test_a_right_answer_that_is_slow_on_the_large_input_hears_nothing_of_it(monkeypatch):
    def slow(dy, x, W):
        time.sleep(30 if dy.size > 1000 else 0)
        return affine_backward(dy, x, W)

    start = time.monotonic()
    assert cost(EXERCISE, slow) == ""
    assert time.monotonic() - start < 20


def test_none_inside_a_result_is_not_taken_for_a_missing_return():
    found = verdict(lambda dy, x, W: (dy @ W.T, None, dy.sum(axis=0)))
    assert "dW is None, and an array of shape (2, 2) is expected" in found.text
    assert "Does each path" not in found.text


@pytest.mark.parametrize(
    ("argument", "change"),
    [
        ({1, 2}, set.clear),
        ([{1}], lambda x: x[0].add(2)),
        (bytearray(b"ab"), lambda x: x.reverse()),
        ({"a": [1]}, lambda x: x["a"].pop()),
    ],
)
def test_every_container_is_watched_for_changes(argument, change):
    exercise = replace(
        EXERCISE, reference=lambda x: 1, inputs=lambda rng: iter([("one", (argument,))]), parts=(), wrong=()
    )
    assert "changes its argument x" in judge(exercise, lambda x: (change(x), 1)[1]).text


def test_a_signature_is_shown_as_the_stub_has_it():
    def typed(dy: np.ndarray, x: "np.ndarray") -> tuple[np.ndarray, ...]:
        return dy, x

    assert "takes (dy, x), and (dy, x, W) is expected" in verdict(typed).text


def test_the_smallest_failing_input_has_numbers_in_it():
    inputs = [("large", (np.ones(9),)), ("empty", (np.ones(0),)), ("small", (np.ones(2),))]
    exercise = replace(EXERCISE, reference=lambda x: x + 1, inputs=lambda rng: iter(inputs), parts=(), wrong=())
    assert "On the input “small”" in judge(exercise, lambda x: (x * 3).astype(np.float32)).text


def test_numbers_of_numpy_are_shown_as_plain_ones():
    exercise = replace(
        EXERCISE, reference=lambda x: False, inputs=lambda rng: iter([("one", (1,))]), parts=(), wrong=()
    )
    assert "expected False, got True" in judge(exercise, lambda x: np.True_).text
    assert "expected False, got 6.5" in judge(exercise, lambda x: np.float64(6.5)).text


def test_a_helper_that_is_not_defined_sends_the_reader_up():
    assert "run the cells above first" in verdict(lambda dy, x, W: sum_back(dy)).text  # noqa: F821


def test_a_function_that_closes_standard_output_is_judged():
    def closes(dy, x, W):
        sys.stdout.close()
        return affine_backward(dy, x, W)

    assert verdict(closes).state == "right"


def test_few_inputs_that_fail_are_named():
    found = verdict(lambda dy, x, W: tuple(part + (len(dy) == 5) for part in affine_backward(dy, x, W)))
    assert "1 of 2 inputs fails: “5 samples, 3 → 3, float32”." in found.text
