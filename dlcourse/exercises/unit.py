"""What an exercise is: a module of `units` with a solution, inputs to try it on, hints, and the wrong answers that people
give."""

import importlib
import re
import types
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any, TypeVar

import numpy as np

F = TypeVar("F", bound=Callable[..., Any])
ROLE = "_role_in_exercise"
UNITS = Path(__file__).parent / "units"

NOTEBOOKS = {
    "00": "start here",
    "01": "arrays and bytes",
    "02": "two rulers",
    "03": "affine",
    "04": "activations and loss",
    "05": "convolution",
    "06": "pooling and dropout",
    "07": "normalization",
    "08": "a network",
    "09": "optimizers",
    "10": "the training loop",
    "11": "train a CNN",
    "12": "the bill",
    "13": "the incident",
    "14": "the leak museum",
    "16": "a process for each epoch",
}  # those that have exercises


def solution(function: F) -> F:
    """Marks the right answer. It is the reference that a reader's function is held against."""
    setattr(function, ROLE, "solution")
    return function


def wrong(function: F) -> F:
    """Marks a known wrong answer. Its docstring is what a good tutor would say to who gave it."""
    setattr(function, ROLE, "wrong")
    return function


@dataclass(frozen=True)
class Wrong:
    """A known wrong answer: a function that makes the mistake, and what is said to who made it, in one paragraph."""

    function: Callable[..., Any]
    says: str


@dataclass(frozen=True)
class Exercise:
    """reference: the right answer; its name and parameters are those of the reader's function.
    inputs: Generator -> (what the input is in words, the arguments), the nasty ones too. Drawn anew for each check.
    wrong: known wrong answers. On the inputs each differs from the reference and from the others.
    also_wrong: further ones, refused without a sentence of their own.
    large: Generator -> arguments of a MiB or more, on which the peak bytes of a right answer are compared with the reference's.
    costs: (how many times the reference's peak at least, what that often means), the largest first.
    parts: what the members of a returned tuple are called.
    rtol: how far a number may be off, as a part of the largest expected one. None: 1e-7 for float64, 1e-4 for float32.
    seconds: how long all inputs together may take.
    """

    id: str
    title: str
    reference: Callable[..., Any]
    inputs: Callable[[np.random.Generator], Iterable[tuple[str, tuple]]]
    hints: tuple[str, ...]
    wrong: tuple[Wrong, ...]
    also_wrong: tuple[Callable[..., Any], ...] = ()
    large: Callable[[np.random.Generator], tuple] | None = None
    costs: tuple[tuple[float, str], ...] = ()
    parts: tuple[str, ...] = ()
    rtol: float | None = None
    seconds: float = 10.0

    @property
    def name(self) -> str:
        """What the reader's function is called."""
        return self.reference.__name__

    def cases(self) -> list[tuple[str, tuple]]:
        """The inputs, the same at every call."""
        return list(self.inputs(np.random.default_rng(0)))


def read(unit: types.ModuleType) -> Exercise:
    """The exercise of a module: its docstring is id and title, its functions are marked, all else is a name in it. The
    hints are one text; each begins with a dash at the start of a line."""
    exercise_id, title = (unit.__doc__ or "").rstrip(".").split(maxsplit=1)
    own = [one for one in vars(unit).values() if getattr(one, "__module__", "") == unit.__name__]
    (reference,) = [one for one in own if getattr(one, ROLE, "") == "solution"]
    known = [Wrong(one, " ".join((one.__doc__ or "").split())) for one in own if getattr(one, ROLE, "") == "wrong"]
    given = {name: getattr(unit, name) for name in Exercise.__dataclass_fields__ if hasattr(unit, name)}
    given["hints"] = tuple(" ".join(hint.split()) for hint in re.split("^- ", unit.hints, flags=re.MULTILINE)[1:])
    return Exercise(**given | {"id": exercise_id, "title": title, "reference": reference, "wrong": tuple(known)})


@cache
def of_notebook(number: str) -> tuple[Exercise, ...]:
    """The exercises of notebook `number`, such as "05", in order. Empty where it has none."""
    names = [file.stem for file in UNITS.glob(f"e{number}_*.py")]
    found = [read(importlib.import_module(f"dlcourse.exercises.units.{name}")) for name in names]
    return tuple(sorted(found, key=lambda exercise: int(exercise.id.split(".")[1])))


def find(exercise_id: str) -> Exercise:
    """The exercise with this id. Raises ValueError with the ids that there are."""
    if not (isinstance(exercise_id, str) and re.fullmatch(r"[0-9]{2}\.[0-9]+", exercise_id)):
        raise ValueError(f'an exercise is named like "05.2": notebook and number; got {exercise_id!r}')
    number = exercise_id.split(".")[0]
    known = {exercise.id: exercise for exercise in of_notebook(number)}
    if exercise_id not in known:
        have = f"notebook {number} has {', '.join(known)}" if known else f"notebook {number} has no exercises"
        raise ValueError(f"there is no exercise {exercise_id!r}: {have}")
    return known[exercise_id]
