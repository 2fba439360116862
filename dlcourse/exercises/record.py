"""Which exercises are done: a small file beside the notebooks, and a map of the course that is drawn from it."""

import contextlib
import csv
import datetime
import html
import json
import os
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TextIO

from dlcourse.exercises.unit import NOTEBOOKS, Exercise, of_notebook

FILE = "progress.json"
FOLDER = "DLCOURSE_PROGRESS"  # environment variable: the folder of the file; without it the folder of the notebook
VERSION = 1
PATIENCE = 2.0  # seconds
DONE, OPEN = "■", "□"
FORMULA = ("=", "+", "-", "@")  # a cell that begins so is computed by a spreadsheet


def path() -> Path:
    """Where the file is or will be. Behind a link it is the file that is linked to."""
    return Path(os.path.realpath(os.path.join(_folder(), FILE)))


def _folder() -> str:
    return os.path.expanduser(os.environ.get(FOLDER) or ".")


def load() -> dict[str, dict[str, Any]]:
    """-> {id of an exercise: {"tries": how many checks, "right": the day of the first right answer or None}}.

    A file that is damaged or from another version is kept under another name, which is printed; then nothing is done yet.
    """
    try:
        text = path().read_text(encoding="utf-8-sig")  # some editors add a mark at the start
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except (OSError, UnicodeDecodeError) as error:
        return _set_aside(f"cannot be read ({error.__class__.__name__})")
    try:
        stored = json.loads(text)
        version = stored["version"]
        done = stored["exercises"] if version == VERSION else {}
        whole = all(map(_is_entry, done.values()))
    except (AttributeError, ValueError, TypeError, KeyError, RecursionError):
        whole, version, done = False, VERSION, {}
    if version != VERSION:
        return _set_aside(f"is of version {version!r}, and this course writes version {VERSION}")
    return done if whole else _set_aside("is damaged")


def _is_entry(entry: Any) -> bool:
    written = json.dumps(entry, sort_keys=True)
    return re.fullmatch(r'\{"right": (null|"\d{4}-\d\d-\d\d"), "tries": \d+\}', written) is not None


def _set_aside(why: str) -> dict:
    number = 1
    try:
        while (aside := path().with_name(f"progress-kept-{number}.json")).exists():
            number += 1
        os.replace(path(), aside)
        print(f"{FILE} {why}. It is kept as {aside.name}, and the progress starts anew.")
    except OSError as error:
        print(f"{FILE} {why}, and cannot be moved aside ({error.strerror}). The progress is not kept.")
    return {}


def note(exercise_id: str, right: bool) -> None:
    """Count one more try, and the day where it is right. Where the file cannot be written, a line says so."""
    try:
        with _replacing(path()) as stream:
            done = load()
            entry = done.setdefault(exercise_id, {"tries": 0, "right": None})
            entry["tries"] += 1
            if right and entry["right"] is None:
                entry["right"] = datetime.date.today().isoformat()
            stream.write(json.dumps({"version": VERSION, "exercises": done}, indent=1) + "\n")
    except OSError as error:
        remedy = "" if os.path.isdir(_folder()) else f" Make the folder that {FOLDER} names, or unset it."
        print(f"The progress is not kept: {FILE} cannot be written ({_reason(error)}).{remedy}")


@contextlib.contextmanager
def _replacing(file: Path) -> Iterator[TextIO]:
    """A stream whose text takes the place of `file` at the end: a kill leaves the old one. Two kernels do not mix, since
    the second waits; for what a killed one left, `PATIENCE` seconds."""
    unfinished = file.with_name(f"{file.name}.tmp")
    end = time.monotonic() + PATIENCE
    while True:
        try:
            stream = unfinished.open("x", encoding="utf-8")
            break
        except FileExistsError:
            if time.monotonic() > end:
                unfinished.unlink(missing_ok=True)
            time.sleep(0.005)
    try:
        with stream:
            yield stream
        os.replace(unfinished, file)
    except BaseException:
        unfinished.unlink(missing_ok=True)
        raise


def _reason(error: OSError) -> str:
    return error.strerror or type(error).__name__


@dataclass(frozen=True)
class Map:
    """The exercises of each notebook and which of them are done. Its last line in a cell draws it."""

    rows: tuple[tuple[str, tuple[tuple[Exercise, bool], ...]], ...]

    def _count(self) -> str:
        all_ = [done for _, exercises in self.rows for _, done in exercises]
        return f"{sum(all_)} of {len(all_)} exercises done"

    def __str__(self) -> str:
        width = max(len(name) for name, _ in self.rows)
        squares = [" ".join(DONE if done else OPEN for _, done in exercises) for _, exercises in self.rows]
        lines = [f"{name:<{width}}  {row}" for (name, _), row in zip(self.rows, squares, strict=True)]
        return "\n".join([self._count(), *lines])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def square(exercise: Exercise, done: bool) -> str:
            colour, word = ("#0F7F87", "done") if done else ("transparent", "not yet")
            label = html.escape(f"{exercise.id} {exercise.title}: {word}")
            style = (
                f"display:inline-block;width:14px;height:14px;margin:2px;border:1px solid #0F7F87;background:{colour}"
            )
            return f'<span role="img" aria-label="{label}" title="{label}" style="{style}"></span>'

        cells = "".join(
            f'<tr><td style="text-align:left">{name}</td>'
            f'<td style="text-align:left">{"".join(square(*pair) for pair in exercises)}</td></tr>'
            for name, exercises in self.rows
        )
        return f"<table><caption>{self._count()}</caption><tbody>{cells}</tbody></table>"


def progress(*, export: str | os.PathLike | None = None) -> Map:
    """The map of the course: a square for each exercise, filled where it is done.

    export: the name of a CSV file to write for a teacher: notebook, exercise, title, tries, day of the first right answer.
    Raises ValueError where the name does not end in .csv, and OSError where that file cannot be written; the one that was
    there stays.
    """
    done = load()
    rows = [(number, [(exercise, done.get(exercise.id)) for exercise in of_notebook(number)]) for number in NOTEBOOKS]
    if export is not None:
        _export(Path(os.path.expanduser(str(export))), rows)
    marked = [(number, tuple((e, bool(entry and entry["right"])) for e, entry in row)) for number, row in rows]
    return Map(tuple((f"{number} {NOTEBOOKS[number]}", pairs) for number, pairs in marked))


def _export(file: Path, rows: list[tuple[str, list[tuple[Exercise, dict[str, Any] | None]]]]) -> None:
    if file.suffix.lower() != ".csv" or "\0" in str(file):
        raise ValueError(f'export is the name of a CSV file to write, such as "progress.csv"; got {str(file)!r}')
    try:
        with _replacing(file) as stream:
            writer = csv.writer(stream, lineterminator="\n")
            writer.writerow(["notebook", "exercise", "title", "tries", "right since"])
            for number, row in rows:
                for exercise, entry in row:
                    tries, right = (entry["tries"], entry["right"] or "") if entry else (0, "")
                    cells = [number, exercise.id, exercise.title, tries, right]
                    writer.writerow(["'" + str(one) if str(one)[:1] in FORMULA else one for one in cells])
    except OSError as error:
        raise OSError(f"{file} cannot be written: {_reason(error)}") from None
    print(f"Written: {file.name}")
