"""`check` runs the reader's function, and says what is right, what is wrong and why, and what it cost."""

import dis
import inspect
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dlcourse.exercises import record
from dlcourse.exercises.difference import difference, shown
from dlcourse.exercises.limit import Called, TooLong, call
from dlcourse.exercises.unit import Exercise, Wrong, find
from dlcourse.units import binary

LONGEST = 300  # characters of an error's text that are shown
SAME_PEAK = 1.1  # up to this many times the reference's peak counts as the same


@dataclass(frozen=True)
class Verdict:
    """What `check` found, and what it prints."""

    state: Literal["not yet", "right", "wrong"]
    text: str
    wrong: Wrong | None = None  # the known wrong answer that it is


def check(exercise_id: str, function: Any) -> None:
    """Try the reader's function on the exercise's inputs, print what was found, and note a right answer in the progress.

    Its arguments are copies: nothing of the reader's is changed. Raises ValueError for an exercise that does not exist.
    """
    exercise = find(exercise_id)
    verdict = judge(exercise, function)
    print(verdict.text)
    if verdict.state != "not yet":
        record.note(exercise.id, verdict.state == "right")


def hint(exercise_id: str, number: int = 1) -> None:
    """Print hint `number` of an exercise, counted from 1. Raises ValueError where there is none with this number."""
    hints = find(exercise_id).hints
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(hints):
        raise ValueError(f"exercise {exercise_id} has the hints 1 to {len(hints)}; got {number!r}")
    after = f'  Next: hint("{exercise_id}", {number + 1}).' if number < len(hints) else "  This was the last one."
    print(f"{exercise_id}, hint {number} of {len(hints)}: {hints[number - 1]}\n{after}")


def judge(exercise: Exercise, function: Any) -> Verdict:
    """The verdict on a function, without printing or noting anything."""
    head = f"{exercise.id} {exercise.title}: "
    if is_stub(function):
        say = f'{head}not yet. Write the function in place of ... and run this cell again. hint("{exercise.id}") helps.'
        return Verdict("not yet", say)
    if not callable(function):
        return Verdict("wrong", f'{head}check takes the function itself: check("{exercise.id}", {exercise.name}).')
    misfit = _misfit(exercise, function)
    if misfit:
        return Verdict("wrong", head + misfit)

    trials = [_Trial(what, arguments) for what, arguments in exercise.cases()]
    end = time.monotonic() + exercise.seconds
    for trial in trials:
        trial.expected = call(exercise.reference, trial.arguments, 60).result
        trial.called = call(function, trial.arguments, max(0.5, end - time.monotonic()))
        if isinstance(trial.called.error, TooLong):
            return Verdict("wrong", f"{head}{_of_error(exercise, trial, function)}")
        if _has_dots(trial.called):
            say = f'{head}not yet. A ... is left in it. Write code in its place and run this cell again. hint("{exercise.id}") helps.'
            return Verdict("not yet", say)
        trial.problem = _problem(exercise, trial)  # at once: the function may use its result again at its next call
    failed = [trial for trial in trials if trial.problem]
    if not failed:
        return Verdict("right", head + _praise(exercise, function, trials))
    for wrong in exercise.wrong:
        if all(_behaves_alike(exercise, wrong.function, trial) for trial in trials):
            return Verdict("wrong", f"{head}not yet right.\n{wrong.says}", wrong)
    parts = _explained_parts(exercise, trials)
    if parts:
        ways = ", in more than one way" if len(parts) > 1 else ""
        return Verdict("wrong", f"{head}not yet right{ways}.\n" + "\n".join(wrong.says for wrong in parts))
    smallest = min(failed, key=lambda trial: trial.size)
    return Verdict(
        "wrong", f"{head}not yet right.\n{_first_difference(exercise, smallest, len(failed), len(trials), function)}"
    )


def is_stub(function: Any) -> bool:
    """Whether nothing was written yet: `...`, or a function of a docstring and `...`, `pass` or NotImplementedError."""
    if function is ... or function is None:
        return True
    if not isinstance(function, types.FunctionType):
        return False
    quiet = {"RESUME", "LOAD_CONST", "RETURN_CONST", "RETURN_VALUE", "NOP", "POP_TOP", "COPY_FREE_VARS", "CACHE"}
    code = [step for step in dis.get_instructions(function) if step.opname != "CACHE"]
    if all(step.opname in quiet for step in code):
        return all(step.argval in (None, ...) for step in code if step.opname in ("LOAD_CONST", "RETURN_CONST"))
    read = {step.argval for step in code if step.opname.startswith("LOAD_") and step.opname != "LOAD_CONST"}
    return read == {"NotImplementedError"}


@dataclass
class _Trial:
    """One input, what is expected, what came, and what is wrong with it in a few words ("" where nothing is)."""

    what: str
    arguments: tuple
    expected: Any = None
    called: Called = None  # type: ignore[assignment]
    problem: str = ""

    @property
    def size(self) -> int:
        return sum(argument.size for argument in self.arguments if isinstance(argument, np.ndarray))


def _problem(exercise: Exercise, trial: _Trial) -> str:
    if trial.called.error is not None:
        return f"it raises {type(trial.called.error).__name__}"
    if trial.called.changed:
        return "it changes its arguments"
    return difference(trial.expected, trial.called.result, exercise.rtol, exercise.parts)


def _has_dots(called: Called) -> bool:
    """Whether a `...` was returned or computed with: a function that is written in part."""
    if isinstance(called.error, TypeError | AttributeError):
        return "ellipsis" in _text(called.error)
    result = called.result if isinstance(called.result, tuple | list) else (called.result,)
    return any(part is ... for part in result)


def _misfit(exercise: Exercise, function: Callable[..., Any]) -> str:
    """Whether the function cannot be called as the reference is, or would do nothing when it is called."""
    for kind, word in ((inspect.isgeneratorfunction, "yield"), (inspect.iscoroutinefunction, "async")):
        if kind(function):
            return f"the function has `{word}` in it, so a call does not run it. Use `def` and `return` alone."
    try:
        wanted, have = inspect.signature(exercise.reference), inspect.signature(function)
    except (TypeError, ValueError):
        return ""
    try:
        have.bind(*[None for _ in exercise.cases()[0][1]])
    except TypeError:
        return f"the function takes {have}, and {wanted} is expected."
    names = list(have.parameters)[: len(wanted.parameters)]
    if names != list(wanted.parameters) and set(names) == set(wanted.parameters):
        return f"the function takes {have}, and the order {wanted} is expected."
    return ""


def _behaves_alike(exercise: Exercise, wrong: Callable[..., Any], trial: _Trial) -> bool:
    theirs, known = trial.called, call(wrong, trial.arguments, 60)
    if known.error is not None or theirs.error is not None:
        return type(known.error) is type(theirs.error)
    if known.changed != theirs.changed:
        return False
    return not difference(known.result, theirs.result, exercise.rtol, exercise.parts)


def _explained_parts(exercise: Exercise, trials: list[_Trial]) -> list[Wrong]:
    """Where the result has parts, such as dx, dW, db: the known wrong answers that agree with the reader's in a part that
    is wrong. So two mistakes at a time are told too."""
    count = len(exercise.parts)
    if not count or not all(_has_parts(trial.called, count) for trial in trials):
        return []
    known = [(wrong, [call(wrong.function, trial.arguments, 60) for trial in trials]) for wrong in exercise.wrong]
    known = [(wrong, calls) for wrong, calls in known if all(_has_parts(one, count) for one in calls)]

    def same(a: list[Any], b: list[Any]) -> set[int]:
        """The parts that are the same on all inputs."""
        pairs = list(zip(a, b, strict=True))
        return {part for part in range(count) if not any(difference(x[part], y[part], exercise.rtol) for x, y in pairs)}

    expected, theirs = [trial.expected for trial in trials], [trial.called.result for trial in trials]
    closest = []  # first the mistake that has most in common with what the reader wrote, then the one with fewer wrong parts
    for wrong, calls in known:
        results = [one.result for one in calls]
        closest.append((wrong, same(results, theirs), same(expected, results)))
    closest.sort(key=lambda one: (-len(one[1]), -len(one[2])))
    found: list[Wrong] = []
    for part in sorted(set(range(count)) - same(expected, theirs)):
        ways = [wrong for wrong, agrees, _ in closest if part in agrees]
        if ways and not any(way in found for way in ways):
            found.append(ways[0])
    return found


def _has_parts(called: Called, count: int) -> bool:
    returned = called.error is None and not called.changed
    return returned and isinstance(called.result, tuple | list) and len(called.result) == count


def _first_difference(exercise: Exercise, trial: _Trial, failed: int, all_: int, function: Callable[..., Any]) -> str:
    names = list(inspect.signature(exercise.reference).parameters)
    if trial.called.error is not None:
        said = _of_error(exercise, trial, function)
    elif trial.called.changed:
        changed = ", ".join(names[place] for place in trial.called.changed)
        said = f"On the input “{trial.what}” it changes its argument {changed}. Work on a copy, or make a new array."
    else:
        said = f"On the input “{trial.what}” {_sentence(trial.problem)}"
    given = "\n".join(f"  {name} = {shown(value)}" for name, value in zip(names, trial.arguments, strict=False))
    rest = f"{failed} of {all_} inputs fail." if all_ > 1 else ""
    return "\n".join(line for line in (said, given, rest, _asides(trial.called)) if line)


def _of_error(exercise: Exercise, trial: _Trial, function: Callable[..., Any]) -> str:
    error = trial.called.error
    assert error is not None
    if isinstance(error, TooLong):
        return f"stopped after {exercise.seconds:g} s on the input “{trial.what}”. Does a loop in it never end, or is it slow?"
    said = f"On the input “{trial.what}” it raises {type(error).__name__}{_line(trial.called, function)}"
    return f"{said}: {_sentence(_text(error))}" if _text(error) else f"{said}."


def _line(called: Called, function: Any) -> str:
    """The line of the reader's function that was running, counted from its first, where it can be known."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    lines = [line for of, line in called.lines if of is code]
    return f" (line {lines[-1] - code.co_firstlineno + 1} of your function)" if code and lines else ""


def _text(of: object) -> str:
    """What an error or a warning says, its first line alone."""
    try:
        text = str(of).strip().partition("\n")[0]
    except Exception:  # noqa: BLE001  it may be the reader's own class
        return ""
    return text if len(text) <= LONGEST else text[:LONGEST] + " ..."


def _sentence(text: str) -> str:
    """With a full stop at its end, unless it has an end."""
    text = text.strip()
    return text if not text or text[-1] in ".?!" or "\n" in text else text + "."


def _asides(called: Called) -> str:
    said = [f"It warns: {_sentence(_text(text))}" for text in called.warned[:2]]
    if called.printed.strip():
        said.append(f"It prints, which nobody asked for: {_text(called.printed)[:60]!r}.")
    return "\n".join(said)


def _praise(exercise: Exercise, function: Callable[..., Any], trials: list[_Trial]) -> str:
    said = ["right."]
    if exercise.large is not None:
        said = [f"right. {_cost(exercise, function)}"]
    warned = [trial for trial in trials if trial.called.warned or trial.called.printed]
    if warned:
        said.append(_asides(warned[0].called))
    return "\n".join(said)


def _cost(exercise: Exercise, function: Callable[..., Any]) -> str:
    """Peak bytes of a right answer beside the reference's."""
    (reference, _), (own, error) = peak(exercise, exercise.reference), peak(exercise, function)
    if isinstance(error, TooLong):
        return "On a large input it did not end in time, so its bytes are not known."
    if error is not None:
        return f"But on a large input it raises {type(error).__name__}: {_sentence(_text(error))}"
    ratio = own / max(reference, 1)
    if ratio <= SAME_PEAK:
        less = "less than" if ratio < 1 / SAME_PEAK else "as much as"
        return f"On a large input it peaks at {binary(own)}, {less} the reference ({binary(reference)})."
    why = next((f": {text}" for least, text in exercise.costs if ratio >= least), "")
    return f"On a large input it peaks at {binary(own)}, {ratio:.1f} × the reference's {binary(reference)}{why}."


def peak(exercise: Exercise, function: Callable[..., Any]) -> tuple[int, BaseException | None]:
    """Traced peak in bytes of one call on the big input, after a warm-up on the first small one. -> it, and what was
    raised instead."""
    from dlcourse.memory import traced_peak

    assert exercise.large is not None
    arguments = exercise.large(np.random.default_rng(0))
    seconds = 60 if function is exercise.reference else exercise.seconds
    call(function, exercise.cases()[0][1], seconds)
    measured = _Measured(function, traced_peak)
    error = call(measured, arguments, seconds).error
    return measured.peak, error


class _Measured:
    """The function, with its traced peak kept."""

    def __init__(self, function: Callable[..., Any], ruler: Any) -> None:
        self.function, self.ruler, self.peak = function, ruler, 0

    def __call__(self, *arguments: Any) -> None:
        with self.ruler() as traced:
            self.function(*arguments)
        self.peak = traced.peak
