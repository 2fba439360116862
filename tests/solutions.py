"""notebooks/solutions/NN_K.py, what `%load` gives: made from the exercises' units by `make notebooks`."""

import ast
import inspect
from pathlib import Path

from dlcourse.exercises.unit import NOTEBOOKS, Exercise, of_notebook

FOLDER = Path(__file__).resolve().parent.parent / "notebooks" / "solutions"


def all_exercises() -> list[Exercise]:
    return [exercise for number in NOTEBOOKS for exercise in of_notebook(number)]


def file_of(exercise_id: str) -> Path:
    return FOLDER / f"{exercise_id.replace('.', '_')}.py"


def text(exercise: Exercise) -> str:
    """The solution alone: the imports that it needs, the function, and its check."""
    function = inspect.getsource(exercise.reference).partition("\n")[2]  # without @solution
    used = {node.id for node in ast.walk(ast.parse(function)) if isinstance(node, ast.Name)}
    unit = ast.parse(inspect.getsource(inspect.getmodule(exercise.reference)))
    groups: dict[bool, list[str]] = {}  # Python's own, then NumPy
    for node in unit.body:
        if isinstance(node, ast.Import | ast.ImportFrom) and used & {(n.asname or n.name) for n in node.names}:
            line = ast.unparse(node)
            groups.setdefault("numpy" in line, []).append(line)
    head = "\n\n".join("\n".join(groups[key]) for key in sorted(groups))
    return (head + "\n\n\n" if head else "") + f'{function}\n\ncheck("{exercise.id}", {exercise.name})\n'


def write() -> None:
    """Every file anew; one that belongs to no exercise goes."""
    wanted = {file_of(exercise.id): text(exercise) for exercise in all_exercises()}
    for file in FOLDER.glob("*.py"):
        if file not in wanted:
            file.unlink()
    for file, made in wanted.items():
        file.write_text(made, encoding="utf-8")
