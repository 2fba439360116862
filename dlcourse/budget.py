"""What `dlcourse admit` does: networks against budgets, given one by one or in a file, and what would fit a refused one.

[story]                          # a table for each network; its name is free
model = "cifar_cnn"              # or "MODULE:FUNCTION", which gives (model, data, optimizer), or a model alone
data = [32, 32, 3]               # the shape of one input; a network with a name knows its own
batch = 100
limit = "60 MiB"                 # of arrays: parameters, gradients, saved, workspace, slots
micro_batch = 25                 # this and what follows may be left out
workers = 2
optimizer = "Adam"
inference = false                # true: a forward pass alone
"""

import difflib
import importlib
import json
import math
import os
import sys
import tomllib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from dlcourse import layers as L
from dlcourse import memory, models, optim
from dlcourse.gradients import deferred
from dlcourse.model import Sequential
from dlcourse.units import binary, parse

KEYS: dict[str, Any] = {"model": str, "data": list, "batch": int, "limit": (str, int)}
MAY_BE_LEFT_OUT: dict[str, Any] = {"micro_batch": int, "workers": int, "optimizer": str, "inference": bool}
KINDS: dict[Any, str] = {
    str: "a text",
    list: "a list of numbers",
    int: "a whole number",
    bool: "true or false",
    (str, int): "a size",
}
SHAPES = {"cifar_cnn": (32, 32, 3), "small_cnn": (8, 8, 1), "mlp": (8, 8, 1)}
OPTIMIZERS = [name for name, kind in vars(optim).items() if isinstance(kind, type) and hasattr(kind, "lr")]


class BudgetError(ValueError):
    """A budget file that cannot be used: the text names file, table and key."""


@dataclass(frozen=True)
class Step:
    """A training step, or with `inference` a forward pass, and the bytes that it may take."""

    model: Any
    in_shape: tuple[int, ...]
    optimizer: Any
    limit: int
    batch_size: int = 100
    micro_batch: int | None = None
    workers: int = 1
    inference: bool = False

    def bill(self) -> memory.Bill:
        options = {name: value for name, value in vars(self).items() if name not in ("model", "in_shape", "limit")}
        return memory.bill(self.model, self.in_shape, **options)

    def admit(self) -> memory.Admission:
        options = {name: value for name, value in vars(self).items() if name not in ("model", "in_shape", "limit")}
        return memory.admit(self.model, self.in_shape, options.pop("optimizer"), budget=self.limit, **options)


def run(options: Any) -> int:
    """The command. -> 0 if each network is admitted, 1 if one is refused, 2 if one cannot be judged."""
    file = options.file or (options.network if (options.network or "").lower().endswith(".toml") else None)
    given = [name for name in ("budget", "batch_size", "micro_batch", "workers") if getattr(options, name) is not None]
    if file is not None and (given or options.inference or (options.file and options.network)):
        options.parser.error(f"{file} has models, limits and batches of its own: give the file alone, and --json")
    if file is None and (options.network is None or options.budget is None):
        options.parser.error("the following are required: a network and --budget SIZE, or a FILE.toml with both")
    code, verdicts = 0, {}
    name = ""
    try:
        for name, step in (read(file) if file is not None else {"": _of_options(options)}).items():
            verdict = step.admit()
            found = [] if verdict else changes(step, verdict)
            code = code if verdict else 1
            verdicts[name] = verdict.to_dict() | {"changes": [asdict(one) for one in found]}
            if not options.json:
                head = f"[{name}]\n" if name else ""
                print(
                    head + "\n".join([str(verdict), *_advice(found, step.limit)]) + ("\n" if name else ""), flush=True
                )
    except (Exception, SystemExit) as error:  # noqa: BLE001  the reader's function may raise anything; 1 would mean refused
        text = _text(error)
        place = f"{file} [{name}]: " if name and not isinstance(error, BudgetError) else ""
        print(f"dlcourse: error: {place}{text}", file=sys.stderr)
        return 2
    if options.json:
        print(json.dumps(verdicts if file is not None else verdicts[""]))
    return code


def _of_options(options: Any) -> Step:
    model, in_shape, optimizer = _described(options.network, Path.cwd())
    cut = {"micro_batch": options.micro_batch, "workers": options.workers or 1, "inference": options.inference}
    return Step(model, in_shape, optimizer, parse(options.budget), options.batch_size or 100, **cut)


# The file.


def read(path: str | Path) -> dict[str, Step]:
    """{name of a table: its step}, each built and its bill made once, so that nothing is run for a file with a mistake.

    Raises BudgetError, which names file, table and key."""
    try:
        tables = tomllib.loads(Path(path).read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise BudgetError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # no TOML, or no UTF-8
        raise BudgetError(f"{path}: {error}") from None
    if loose := [key for key, value in tables.items() if not isinstance(value, dict)]:
        raise BudgetError(f"{path}: {loose[0]} stands in no table: put a line such as [story] above it")
    if not tables:
        raise BudgetError(f"{path}: no table: each network has one, with the keys {', '.join(KEYS)}")
    return {name: _step(f"{path} [{name}]", table, Path(path).resolve().parent) for name, table in tables.items()}


def _step(where: str, table: dict[str, Any], folder: Path) -> Step:
    known = KEYS | MAY_BE_LEFT_OUT
    for key, value in table.items():
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]}?" if close else f"there are {', '.join(known)}"
            raise BudgetError(f"{where} {key}: no such key; {hint}")
        kind = known[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise BudgetError(f"{where} {key}: must be {KINDS[kind]}, got {value!r}")
        if key == "data" and not (value and all(type(size) is int and size > 0 for size in value)):
            raise BudgetError(f"{where} data: must be the shape of one input, such as [32, 32, 3], got {value}")
        if key in ("batch", "micro_batch", "workers") and value < 1:
            raise BudgetError(f"{where} {key}: must be at least 1, got {value}")
    named = table.get("model") in SHAPES
    if missing := [key for key in KEYS if key not in table and not (key == "data" and (named or "model" in table))]:
        raise BudgetError(f"{where} {missing[0]}: missing")

    def at(key: str, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except (Exception, SystemExit) as error:  # the reader's function may raise anything
            raise BudgetError(f"{where} {key}: {_text(error)}") from error

    limit = at("limit", parse, table["limit"])
    model, in_shape, optimizer = at("model", _described, table["model"], folder, table.get("data"))
    if "optimizer" in table:
        if table["optimizer"] not in OPTIMIZERS:
            raise BudgetError(f"{where} optimizer: {table['optimizer']!r} is none of {', '.join(OPTIMIZERS)}")
        optimizer = getattr(optim, table["optimizer"])()
    cut = {key: table[key] for key in ("micro_batch", "workers", "inference") if key in table}
    step = Step(model, in_shape, optimizer, limit, table["batch"], **cut)
    at("data" if "data" in table else "model", step.bill)
    return step


def _described(text: str, folder: Path, data: Any = None) -> tuple[Any, tuple[int, ...], Any]:
    """(model, in_shape, optimizer): a network by its name, with Adam, or what a function of a module returns, which is
    looked for in `folder` and in the folder of the process."""
    if text in SHAPES:
        return models.MODELS[text](), tuple(data or SHAPES[text]), optim.Adam()
    module, _, name = text.partition(":")
    if not module or not name:
        raise ValueError(f"expected MODULE:FUNCTION or one of {', '.join(SHAPES)}, got {text!r}")
    sys.path[:0] = dict.fromkeys([str(folder), os.getcwd()])
    found = getattr(importlib.import_module(module), name)()
    if data is not None and hasattr(found, "calls"):
        found = found, tuple(data), optim.Adam()
    if not isinstance(found, tuple) or len(found) != 3:
        raise TypeError(f"{text} must return (model, in_shape, optimizer), got {type(found).__name__}")
    return (found[0], tuple(data), found[2]) if data is not None else found


def _text(error: BaseException) -> str:
    """In one line."""
    if isinstance(error, SystemExit):
        return "the function ended the process"
    return " ".join(str(error).split()) or type(error).__name__


# What would fit.


@dataclass(frozen=True)
class Change:
    """A change of a step, and the bytes of its peak by the bill then."""

    change: str
    bytes: int
    fits: bool


Lever = Callable[[Step, int], tuple[str, Step] | None]


def changes(step: Step, verdict: memory.Admission) -> list[Change]:
    """What could be changed in a refused step, the most harmless first: a smaller batch, micro-batches, recomputation,
    8-bit slots, each alone; and, if none of them fits, the first of their combinations that does, else the smallest one.
    If a run took more than its bill, so much less of the budget is left."""
    if verdict.problem:
        return []
    limit = step.limit - max(0, (verdict.measured or 0) - verdict.bill.peak)
    found = [_pulled(step, limit, lever) for lever in (_batch, _micro_batch, _recompute, _slots)]
    if not any(one is not None and one.fits for one in found):
        together = [
            _pulled(step, limit, *levers)
            for levers in (
                *((_micro_batch, _recompute), (_micro_batch, _slots), (_micro_batch, _recompute, _slots)),
                *((_batch, _slots), (_batch, _recompute, _slots)),
            )
        ]
        alone = min((one.bytes for one in found if one is not None), default=math.inf)
        made = [one for one in together if one is not None and one.bytes < alone]
        found += [one for one in made if one.fits][:1] or sorted(made, key=lambda one: one.bytes)[:1]
    return [one for one in found if one is not None]


def _pulled(step: Step, limit: int, *levers: Lever) -> Change | None:
    """The step after all these changes, the first one last, so that the batch is searched for with the others done."""
    names: list[str] = []
    for lever in reversed(levers):
        if (way := lever(step, limit)) is None:
            return None
        names.insert(0, way[0])
        step = way[1]
    peak = step.bill().peak
    return Change(" and ".join(names), peak, peak <= limit)


def _largest(most: int, limit: int, change: Callable[[int], Step]) -> int:
    """The largest number up to `most` that fits, by halving; 1 if none does."""
    low, high = 1, most + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if change(middle).bill().peak <= limit else (low, middle)
    return low


def _batch(step: Step, limit: int) -> tuple[str, Step] | None:
    if step.batch_size == 1:
        return None
    size = _largest(step.batch_size - 1, limit, lambda n: replace(step, batch_size=n))
    return f"batch {size} in place of {step.batch_size}", replace(step, batch_size=size)


def _micro_batch(step: Step, limit: int) -> tuple[str, Step] | None:
    now = min(step.micro_batch or step.batch_size, step.batch_size)
    if now == 1:
        return None
    size = _largest(now - 1, limit, lambda n: replace(step, micro_batch=n))
    return f"micro-batches of {size} in place of {now}", replace(step, micro_batch=size)


def _recompute(step: Step, limit: int) -> tuple[str, Step] | None:
    """Blocks of some numbers of layers around the root of them all: those with the lowest peak. Between them stand the
    layers whose products wait for the end of the step, since they wait only if they stand outside."""
    if step.inference or not hasattr(step.model, "named"):
        return None
    named = step.model.named()
    apart = deferred(step.model, step.in_shape, step.batch_size)
    ways = []
    for size in range(2, min(len(named), 4 * math.isqrt(len(named))) + 1):
        blocks: list[list[Any]] = [[]]
        for name, layer in named:
            if name in apart or len(blocks[-1]) == size:
                blocks.append([])
            blocks[-1].append(layer)
            if name in apart:
                blocks.append([])
        try:
            model = Sequential(
                [block[0] if len(block) == 1 else L.Recompute(tuple(block)) for block in blocks if block]
            )
            way = replace(step, model=model)
            ways.append((way.bill().peak, f"Recompute around each {size} layers", way))
        except (TypeError, ValueError):  # a layer of the reader's that does not say its weights
            return None
    return min(ways, key=lambda way: way[0])[1:] if ways else None


def _slots(step: Step, limit: int) -> tuple[str, Step] | None:
    if step.inference or type(step.optimizer) not in (optim.Adam, optim.AdamW):
        return None
    words = f"8-bit slots (Adam8bit in place of {type(step.optimizer).__name__})"
    return words, replace(step, optimizer=optim.Adam8bit())


def _advice(found: list[Change], limit: int) -> list[str]:
    if not found:
        return []
    first = next((one for one in found if one.fits), None)
    if first is None:
        least = min(found, key=lambda one: one.bytes)
        head = f"no change of these fits; the least is {binary(least.bytes)}, {binary(least.bytes - limit)} over:"
    else:
        head = f"the smallest change that would fit: {first.change}. By the bill:"
    width = max(len(one.change) for one in found)
    lines = [f"  {one.change.ljust(width)}  {binary(one.bytes):>8}  {'fits' if one.fits else 'over'}" for one in found]
    return [head, *lines]
