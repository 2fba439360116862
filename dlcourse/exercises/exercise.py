"""What an exercise is: the right answer, inputs to try it on, hints, and the wrong answers that people give."""

import importlib
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Wrong:
    """A known wrong answer: a function that makes the mistake, and what a good tutor would say to who made it."""

    function: Callable[..., Any]
    says: str


@dataclass(frozen=True)
class Exercise:
    """reference: the right answer; its name and parameters are those of the reader's function.
    inputs: Generator -> (what the input is in words, the arguments), the nasty ones too. Drawn anew for each check.
    wrong: known wrong answers. On the inputs each differs from the reference and from the others.
    big: Generator -> arguments of a MiB or more, on which the peak bytes of a right answer are compared with the reference's.
    costs: (how many times the reference's peak at least, what that means), the largest first.
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
    big: Callable[[np.random.Generator], tuple] | None = None
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
    "11": "train a CNN",
    "12": "the bill",
}  # those that have exercises


@cache
def of_notebook(number: str) -> tuple[Exercise, ...]:
    """The exercises of notebook `number`, such as "05", in order. Empty where it has none."""
    if number not in NOTEBOOKS:
        return ()
    return tuple(importlib.import_module(f"dlcourse.exercises.nb{number}").EXERCISES)


def find(exercise_id: str) -> Exercise:
    """The exercise with this id. Raises ValueError with the ids that there are."""
    if not (isinstance(exercise_id, str) and re.fullmatch(r"\d\d\.\d+", exercise_id)):
        raise ValueError(f'an exercise is named like "05.2": notebook and number; got {exercise_id!r}')
    number = exercise_id.split(".")[0]
    known = {exercise.id: exercise for exercise in of_notebook(number)}
    if exercise_id not in known:
        have = f"notebook {number} has {', '.join(known)}" if known else f"notebook {number} has no exercises"
        raise ValueError(f"there is no exercise {exercise_id!r}: {have}")
    return known[exercise_id]
