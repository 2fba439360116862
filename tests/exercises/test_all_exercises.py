"""What holds for every exercise of the course: its data, its solution, and its cell in the notebook."""

import ast
import itertools
from collections.abc import Callable
from typing import Any

import nbformat
import numpy as np
import pytest
import solutions

from dlcourse.exercises.check import judge, peak
from dlcourse.exercises.difference import difference
from dlcourse.exercises.unit import NOTEBOOKS, UNITS, Exercise, of_notebook
from notebooks import exercise_cells, exercise_of, paths, solution

EXERCISES = {exercise.id: exercise for number in NOTEBOOKS for exercise in of_notebook(number)}
CELLS = {
    exercise_of(cell): cell for path in paths() for cell in exercise_cells(nbformat.read(path, as_version=4))
}  # id -> the cell with the stub
WRONG = [(exercise, wrong) for exercise in EXERCISES.values() for wrong in exercise.wrong]


@pytest.fixture(params=list(EXERCISES.values()), ids=list(EXERCISES))
def exercise(request: pytest.FixtureRequest) -> Exercise:
    return request.param


def defined(source: str, name: str) -> Callable[..., Any]:
    """The function `name` of a source that needs nothing but what it imports itself, and `check`."""
    namespace: dict[str, Any] = {"np": np, "check": lambda *_: None}
    exec(compile(source, f"<{name}>", "exec"), namespace)  # noqa: S102  a cell or a solution of the course
    return namespace[name]


@pytest.mark.parametrize("number", NOTEBOOKS)
def test_each_notebook_has_its_exercises(number):
    assert len(of_notebook(number)) >= (2 if number == "00" else 4)
    assert [exercise.id for exercise in of_notebook(number)] == [
        f"{number}.{place}" for place in range(1, len(of_notebook(number)) + 1)
    ]


def test_each_exercise_stands_in_its_notebook_once_and_each_cell_is_of_an_exercise():
    in_notebooks = [exercise_of(cell) for path in paths() for cell in exercise_cells(nbformat.read(path, as_version=4))]
    assert sorted(in_notebooks) == sorted(EXERCISES)


def test_the_folder_of_solutions_is_what_make_notebooks_writes():
    made = {solutions.file_of(exercise.id): solutions.text(exercise) for exercise in EXERCISES.values()}
    assert {file: file.read_text(encoding="utf-8") for file in solutions.FOLDER.glob("*.py")} == made


def test_the_stub_in_the_notebook_is_not_yet(exercise):
    assert judge(exercise, defined(CELLS[exercise.id].source, exercise.name)).state == "not yet"


def test_the_stub_has_the_parameters_of_the_reference(exercise):
    def parameters(source: str) -> list[str]:
        tree = ast.parse(source)
        found = [node for node in tree.body if isinstance(node, ast.FunctionDef) and node.name == exercise.name]
        arguments = found[0].args
        return [one.arg for one in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)]

    code = exercise.reference.__code__
    wanted = list(code.co_varnames[: code.co_argcount + code.co_kwonlyargcount])
    assert parameters(CELLS[exercise.id].source) == wanted
    assert parameters(solution(exercise.id)) == wanted


def test_the_solution_is_right_and_costs_no_more_than_the_reference(exercise):
    function = defined(solution(exercise.id), exercise.name)
    verdict = judge(exercise, function)
    assert verdict.state == "right", verdict.text
    if exercise.large is not None:
        own, reference = (peak(exercise, one, 60)[0] for one in (function, exercise.reference))
        assert 0 < own <= 1.1 * reference


FURTHER = [(e, f, f"{e.id}-{n}") for e in EXERCISES.values() for n, f in enumerate(e.also_wrong)]


@pytest.mark.parametrize(("exercise", "function"), [one[:2] for one in FURTHER], ids=[one[2] for one in FURTHER])
def test_a_further_wrong_answer_is_refused(exercise, function):
    assert judge(exercise, function).state == "wrong"


@pytest.mark.parametrize(("exercise", "wrong"), WRONG, ids=[f"{e.id}-{w.function.__name__}" for e, w in WRONG])
def test_a_known_wrong_answer_gets_its_own_sentence_and_no_other(exercise, wrong):
    verdict = judge(exercise, wrong.function)
    assert verdict.state == "wrong"
    assert verdict.wrong is wrong, verdict.text
    assert wrong.says in verdict.text
    assert not any(other.says in verdict.text for other in exercise.wrong if other is not wrong)


WITH_PARTS = [exercise for exercise in EXERCISES.values() if exercise.parts]


@pytest.mark.parametrize("exercise", WITH_PARTS, ids=[exercise.id for exercise in WITH_PARTS])
def test_right_parts_in_any_other_order_are_told_so_and_nothing_else(exercise):
    results = [exercise.reference(*arguments) for _, arguments in exercise.cases()]
    for order in itertools.permutations(range(len(exercise.parts))):
        same = all(difference(result, [result[part] for part in order], exercise.rtol) == "" for result in results)
        verdict = judge(exercise, lambda *a, order=order: tuple(exercise.reference(*a)[part] for part in order))
        assert verdict.state == ("right" if same else "wrong"), verdict.text
        assert same or verdict.text.splitlines()[1].startswith("The numbers are right, and stand in another order:")


def test_a_unit_is_one_file_of_a_screen_or_two():
    """The budget of an exercise; what is over it must be sentences that learners need."""
    lines = {file.stem: len(file.read_text(encoding="utf-8").splitlines()) for file in UNITS.glob("e*.py")}
    assert max(lines.values()) <= 160, max(lines, key=lambda name: lines[name])
    assert sum(lines.values()) / len(lines) <= 90


def test_each_has_three_to_six_known_wrong_answers_with_different_sentences(exercise):
    assert 3 <= len({wrong.says for wrong in exercise.wrong}) == len(exercise.wrong) <= 6
    assert all(wrong.says[-1] in ".?!" and 20 < len(wrong.says) < 500 for wrong in exercise.wrong)


def test_an_unknown_wrong_answer_is_told_the_first_difference(exercise):
    def elsewhere(value: Any) -> Any:
        """The same, with its first number, or the whole, far off."""
        if isinstance(value, np.ndarray):
            other = value.copy()
            if other.size:
                first = other.flat[0]
                other.flat[0] = not first if value.dtype == bool else first + 77
            return other
        if isinstance(value, tuple | list):
            return type(value)([elsewhere(value[0]), *value[1:]]) if value else value
        if isinstance(value, dict):
            return {key: elsewhere(one) for key, one in value.items()}
        if isinstance(value, bool | np.bool_):
            return not value
        if isinstance(value, str):
            return value + " and more"
        return value + 77 if value is not None else 77

    verdict = judge(exercise, lambda *arguments: elsewhere(exercise.reference(*arguments)))
    assert verdict.state == "wrong" and verdict.wrong is None, verdict.text
    assert not any(wrong.says in verdict.text for wrong in exercise.wrong), verdict.text
    assert "On the input “" in verdict.text and "expected" in verdict.text, verdict.text


def test_inputs_are_several_and_the_same_at_each_check(exercise):
    first, second = exercise.cases(), exercise.cases()
    assert len(first) >= 3
    assert [what for what, _ in first] == [what for what, _ in second]
    assert len({what for what, _ in first}) == len(first)
    assert judge(exercise, lambda *_: "nothing").text == judge(exercise, lambda *_: "nothing").text


def test_there_are_hints(exercise):
    assert 2 <= len(exercise.hints) <= 4
    assert all(one[-1] in ".?!`)" for one in exercise.hints)


def test_a_solution_ends_with_its_check(exercise):
    assert solution(exercise.id).splitlines()[-1] == f'check("{exercise.id}", {exercise.name})'


def test_solutions_are_short_and_commented(exercise):
    lines = [line for line in solution(exercise.id).splitlines() if line.strip()]
    assert len(lines) <= 30
    assert "#" in solution(exercise.id)
