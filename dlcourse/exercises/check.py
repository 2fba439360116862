"""`check` runs the reader's function, and says what is right, what is wrong and why, and what it cost."""

import builtins
import dis
import inspect
import time
import types
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from dlcourse.exercises import recognise, record
from dlcourse.exercises.difference import difference, numbers_in, shown
from dlcourse.exercises.run_limited import Called, TooLong, call
from dlcourse.exercises.unit import Exercise, Wrong, find
from dlcourse.units import binary

LONGEST = 300  # characters of an error's text that are shown
SAME_PEAK = 1.1  # up to this many times the reference's peak counts as the same
COST_SECONDS = 2.0  # how long a right answer may run on the large input


@dataclass(frozen=True)
class Verdict:
    """What `check` found, and what it prints."""

    state: Literal["not yet", "right", "wrong"]
    text: str
    wrong: Wrong | None = None  # the known wrong answer that it is


def check(exercise_id: str, function: Any) -> None:
    """Try the reader's function on the exercise's inputs, print what was found, and note a right answer in the progress.
    After a right answer, what it cost.

    Its arguments are copies: nothing of the reader's is changed. Raises ValueError for an exercise that does not exist.
    """
    exercise = find(exercise_id)
    verdict = judge(exercise, function)
    print(verdict.text, flush=True)
    if verdict.state != "not yet":
        record.note(exercise.id, verdict.state == "right")
    if verdict.state == "right" and (said := cost(exercise, function)):
        print(said)


def hint(exercise_id: str, number: int = 1) -> None:
    """Print hint `number` of an exercise, counted from 1. Raises ValueError if there is none with this number."""
    hints = find(exercise_id).hints
    if isinstance(number, bool) or not isinstance(number, int) or not 1 <= number <= len(hints):
        raise ValueError(f"exercise {exercise_id} has the hints 1 to {len(hints)}; got {number!r}")
    after = f'  Next: hint("{exercise_id}", {number + 1}).' if number < len(hints) else "  This was the last one."
    print(f"{exercise_id}, hint {number} of {len(hints)}: {hints[number - 1]}\n{after}")


def judge(exercise: Exercise, function: Any) -> Verdict:
    """The verdict on a function, without printing or noting anything."""
    head = f"{exercise.id} {exercise.title}: "
    again = f'and run this cell again. hint("{exercise.id}") helps.'
    if is_stub(function):
        return Verdict("not yet", f"{head}not yet. Write the function in place of ... {again}")
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
            return Verdict("not yet", f"{head}not yet. A ... is left in it. Write code in its place {again}")
        trial.problem = _problem(exercise, trial)  # at once: the function may use its result again at its next call
    failed = [trial for trial in trials if trial.problem]
    if not failed:
        asides = [_asides(trial.called) for trial in trials if trial.called.warned or trial.called.printed]
        return Verdict("right", "\n".join([f"{head}right.", *asides[:1]]))
    known, said = _explained(exercise, trials, failed, function)
    return Verdict("wrong", f"{head}not yet right.\n" + "\n".join(said), known)


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
    """One input, what is expected, what came, and what is wrong with it in a few words ("" if nothing is)."""

    what: str
    arguments: tuple
    expected: Any = None
    called: Called = None  # type: ignore[assignment]
    problem: str = ""


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
        wanted, have = (_bare(inspect.signature(one)) for one in (exercise.reference, function))
    except (TypeError, ValueError):
        return ""
    try:
        have.bind(*exercise.cases()[0][1])
    except TypeError:
        return f"the function takes {have}, and {wanted} is expected."
    names = list(have.parameters)[: len(wanted.parameters)]
    if names != list(wanted.parameters) and set(names) == set(wanted.parameters):
        return f"the function takes {have}, and the order {wanted} is expected."
    return ""


def _bare(signature: inspect.Signature) -> inspect.Signature:
    """Without annotations, as the stub has it."""
    none = inspect.Parameter.empty
    bare = [parameter.replace(annotation=none) for parameter in signature.parameters.values()]
    return signature.replace(parameters=bare, return_annotation=none)


def _explained(
    exercise: Exercise, trials: list[_Trial], failed: list[_Trial], function: Callable[..., Any]
) -> tuple[Wrong | None, list[str]]:
    """The known wrong answer that it is, if it is one on every input, and what is said: that, or what is certain about the
    parts that are wrong, and the first difference."""
    names = list(inspect.signature(exercise.reference).parameters)
    arguments = [dict(zip(names, trial.arguments, strict=False)) for trial in trials]
    theirs, expected = [trial.called for trial in trials], [trial.expected for trial in trials]
    parts, count = exercise.parts, len(exercise.parts)
    returned = all(called.returned for called in theirs)
    split = returned and bool(count) and all(_has_parts(called, count) for called in theirs)
    if split:
        order = recognise.in_another_order(parts, expected, [called.result for called in theirs], exercise.rtol)
        if order:
            return None, [order]
    known = [(wrong, [call(wrong.function, trial.arguments, 60) for trial in trials]) for wrong in exercise.wrong]
    for wrong, calls in known:
        if all(_alike(exercise, *pair) for pair in zip(calls, theirs, strict=True)) and _returns_alike(calls, theirs):
            return wrong, [wrong.says]

    # A cell is a part of the result on one input. A known mistake is made if it is made in every cell that it spoils: what
    # is said of it holds for all of them.
    cells = {(t, part) for t in range(len(trials)) for part in range(count if split else 1)}

    def cell(called: Called, part: int) -> Any:
        return called.result[part] if split else called.result

    def same(a: Called, b: Called, part: int) -> bool:
        if not (a.returned and b.returned and (not split or _has_parts(a, count))):
            return False
        return not difference(cell(a, part), cell(b, part), exercise.rtol, () if split else parts)

    right = [Called(value) for value in expected]
    open_ = {(t, part) for t, part in cells if not same(right[t], theirs[t], part)}
    spoils = [{(t, part) for t, part in cells if not same(calls[t], right[t], part)} for _, calls in known]
    ways = [
        (wrong, spoiled)
        for (wrong, calls), spoiled in zip(known, spoils, strict=True)
        if spoiled <= open_
        and all(same(calls[t], theirs[t], part) for t, part in spoiled)
        and not any(isinstance(cell(right[t], part), bool | np.bool_ | str | None) for t, part in spoiled)
        and (len(spoiled) > 1 or any(_tells(cell(theirs[t], part)) for t, part in spoiled))
    ]
    said: list[str] = []

    def tell(ways: list[tuple[Wrong, set[tuple[int, int]]]]) -> None:
        for wrong, spoiled in sorted(ways, key=lambda way: -len(way[1])):
            if spoiled <= open_:
                open_.difference_update(spoiled)
                said.append(wrong.says)

    def fact(calls: list[Called], part: int, others: dict[str, list[Any]], besides: bool) -> str:
        """What is certain about a part of theirs, against that of the right or of a known wrong answer."""
        of, mine = [cell(one, part) for one in calls], [cell(one, part) for one in theirs]
        return recognise.fact(of, mine, arguments, others, besides)

    # first what explains a part on every input, then what explains it on some
    tell([(wrong, spoiled) for wrong, spoiled in ways if not any(p in _parts(spoiled) for _, p in open_ - spoiled)])
    found: dict[str, list[int]] = {}
    for part in sorted(_parts(open_)) if returned else ():
        others = {parts[o]: [cell(one, o) for one in right] for o in range(count) if split and o != part}
        if certain := fact(right, part, others, False):
            found.setdefault(certain, []).append(part)
    in_general = {part for those in found.values() for part in those}
    tell([(wrong, spoiled) for wrong, spoiled in ways if not _parts(spoiled) & in_general])
    first = _first_difference(exercise, failed, len(trials), function)
    if returned and not found and not said:  # a known mistake, and another kind of numbers besides?
        for (wrong, calls), spoiled in zip(known, spoils, strict=True):
            if _parts(spoiled) == _parts(open_) and all(
                c.returned and (not split or _has_parts(c, count)) for c in calls
            ):
                besides = {fact(calls, part, {}, True) for part in _parts(open_)}
                if len(besides) == 1 and "" not in besides:
                    return None, [wrong.says, f"And {besides.pop()}.", first]
    for certain, those in found.items():
        said.append(f"In {' and '.join(parts[part] for part in those) if split else 'the result'} {certain}.")
    return None, [*said, first] if open_ else said


def _tells(value: Any) -> bool:
    """Whether two mistakes hardly give the same: several numbers, or a large one."""
    return numbers_in(value) > 1 or (isinstance(value, int | float) and 1000 < abs(value) < np.inf)


def _parts(cells: set[tuple[int, int]]) -> set[int]:
    return {part for _, part in cells}


def _has_parts(called: Called, count: int) -> bool:
    return called.returned and isinstance(called.result, tuple | list) and len(called.result) == count


def _alike(exercise: Exercise, known: Called, theirs: Called) -> bool:
    if known.error is not None or theirs.error is not None:
        return type(known.error) is type(theirs.error)
    if known.changed != theirs.changed:
        return False
    return not difference(known.result, theirs.result, exercise.rtol, exercise.parts)


def _returns_alike(known: list[Called], theirs: list[Called]) -> bool:
    """Whether something was returned, or the errors say the same: that both raise a ValueError shows little."""
    return any(called.error is None for called in theirs) or all(
        _text(a.error) == _text(b.error) for a, b in zip(known, theirs, strict=True)
    )


def _first_difference(exercise: Exercise, failed: list[_Trial], count: int, function: Callable[..., Any]) -> str:
    """On the smallest input that has numbers in it: what is expected, what came, and the arguments."""
    trial = min(failed, key=lambda one: (not numbers_in(one.arguments), numbers_in(one.arguments)))
    names = list(inspect.signature(exercise.reference).parameters)
    if trial.called.error is not None:
        said = _of_error(exercise, trial, function)
    elif trial.called.changed:
        changed = ", ".join(names[place] for place in trial.called.changed)
        said = f"On the input “{trial.what}” it changes its argument {changed}. Work on a copy, or make something new."
    else:
        said = f"On the input “{trial.what}” {_sentence(trial.problem)}"
    given = "\n".join(f"  {name} = {shown(value)}" for name, value in zip(names, trial.arguments, strict=False))
    which = ": " + ", ".join(f"“{one.what}”" for one in failed) if len(failed) <= min(3, count - 1) else ""
    rest = f"{len(failed)} of {count} inputs fail{'s' * (len(failed) == 1)}{which}." if count > 1 else ""
    return "\n".join(line for line in (said, given, rest, _asides(trial.called)) if line)


def _of_error(exercise: Exercise, trial: _Trial, function: Callable[..., Any]) -> str:
    error = trial.called.error
    if isinstance(error, TooLong):
        return f"stopped after {exercise.seconds:g} s on the input “{trial.what}”. Does a loop in it never end, or is it slow?"
    said = f"On the input “{trial.what}” it raises {type(error).__name__}{_line(trial.called, function)}"
    said = f"{said}: {_sentence(_text(error))}" if _text(error) else f"{said}."
    if type(error) is NameError and not hasattr(builtins, str(error.name)):
        said += f" If {error.name} stands in a cell above, run the cells above first."
    return said


def _line(called: Called, function: Any) -> str:
    """The line of the reader's function that was running, counted from its first, if it can be known."""
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


def cost(exercise: Exercise, function: Callable[..., Any]) -> str:
    """Peak bytes of a right answer beside the reference's, on the large input. "" if there is none, or no end of it."""
    if exercise.large is None:
        return ""
    own, error = peak(exercise, function, COST_SECONDS)
    if isinstance(error, TooLong):
        return ""
    if error is not None:
        return f"But on a large input it raises {type(error).__name__}: {_sentence(_text(error))}"
    reference, _ = peak(exercise, exercise.reference, 60)
    ratio = own / max(reference, 1)
    if ratio <= SAME_PEAK:
        less = "less than" if ratio < 1 / SAME_PEAK else "as much as"
        return f"On a large input it peaks at {binary(own)}, {less} the reference ({binary(reference)})."
    why = next((f" Often that is: {text}." for least, text in exercise.costs if ratio >= least), "")
    return f"On a large input it peaks at {binary(own)}, {ratio:.1f} × the reference's {binary(reference)}.{why}"


def peak(exercise: Exercise, function: Callable[..., Any], seconds: float) -> tuple[int, BaseException | None]:
    """Traced peak in bytes of one call on the large input. -> it, and what was raised instead."""
    from dlcourse.memory import traced_peak

    assert exercise.large is not None
    found = 0

    def measured(*arguments: Any) -> None:
        nonlocal found
        with traced_peak() as traced:
            function(*arguments)
        found = traced.peak

    error = call(measured, exercise.large(np.random.default_rng(0)), seconds).error
    return found, error
