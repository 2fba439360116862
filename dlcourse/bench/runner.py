"""Start the sides of a case, let them run in turn, and put what they say in a table."""

import json
import math
import statistics
import subprocess
import sys
from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import IO, Any, cast

from dlcourse import models
from dlcourse.bench.cases import EPOCH_IMAGES, LAYERS, Case
from dlcourse.layers import Affine, Conv2D
from dlcourse.memory.tables import Table
from dlcourse.model import Sequential
from dlcourse.units import binary


@dataclass
class Result:
    """One side of one case. Bytes are of its process: at the peak, and beyond what it had before the first run."""

    side: str
    case: Case
    seconds: list[float] = field(default_factory=list)
    resident: int = 0
    grown: int = 0
    traced: int | None = None
    versions: str = ""
    rate: float | None = None  # floating-point operations a second of a matrix product

    def to_dict(self) -> dict[str, Any]:
        """Plain numbers, for JSON."""
        return asdict(self) | {"median": self.median, "quartiles": self.quartiles}

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def quartiles(self) -> tuple[float, float]:
        low, _, high = statistics.quantiles(self.seconds, n=4) if len(self.seconds) > 1 else (self.median,) * 3
        return low, high


def run(
    cases: Iterable[Case], *, rounds: int = 7, threads: int = 2, torch_python: str | None = None, textbook: bool = True
) -> Iterator[list[Result]]:
    """Yield the results of each case, a `Result` a side, dlcourse first. Each side warms up once, then all run in turn
    `rounds` times; an epoch runs once. `torch_python`: an interpreter that has PyTorch."""

    def takes_part(side: str) -> bool:
        return textbook if side == "textbook" else torch_python is not None or not side.startswith("torch")

    for case in cases:
        with ExitStack() as stack:
            sides = filter(takes_part, case.sides)
            running = [stack.enter_context(_side(side, case, threads, torch_python)) for side in sides]
            once = case.work == "epoch"
            for ask, _ in [] if once else running:
                ask("go")
            for _ in range(1 if once else rounds):
                for ask, result in running:
                    result.seconds.append(ask("go")["seconds"])
            for ask, result in running:
                end = ask("end")
                result.grown, result.resident = end["resident"] - result.resident, end["resident"]
                result.traced = end["traced"]
        yield [result for _, result in running]


@contextmanager
def _side(side: str, case: Case, threads: int, torch_python: str | None) -> Iterator[tuple[Any, Result]]:
    """A process that runs one side: -> (ask, its result so far)."""
    arguments = [side, json.dumps(asdict(case)), str(threads)]
    if side.startswith("torch"):
        command = [str(torch_python), str(Path(__file__).with_name("torch_worker.py")), *arguments]
    else:
        command = [sys.executable, "-m", "dlcourse.bench.worker", *arguments]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        lines = cast(IO[str], process.stdout)

        def answer() -> dict[str, Any]:
            if not (line := lines.readline()):
                raise OSError(f"benchmark: {side} ended in {case} with code {process.wait()}; its message stands above")
            return json.loads(line)

        def ask(what: str) -> dict[str, Any]:
            print(what, file=process.stdin, flush=True)
            return answer()

        try:
            yield ask, Result(side, case, **answer())
        finally:
            process.kill()


def operations(case: Case) -> int:
    """Floating-point operations of the matrix products of a case: 2 for each weight and place it is used at, three times
    as many in a step (forward, dx, dW), but no dx in the first layer that has weights."""
    total, first = 0, case.work != "layer"
    for _, layer, shape in network(case).flat(case.in_shape):
        if not isinstance(layer, Conv2D | Affine):
            continue
        places = layer.out_shape(shape)[:-1]
        products = 2 * math.prod(places) * math.prod(layer.weights(shape)["W"].shape)
        total += products * (1 if case.work == "inference" else 2 if first else 3)
        first = False
    return total * (EPOCH_IMAGES if case.work == "epoch" else case.batch)


def network(case: Case) -> Sequential:
    """The network that a case runs; a layer alone is one of one layer."""
    return Sequential([LAYERS[case.network][0]]) if case.work == "layer" else models.MODELS[case.network]()


def _ms(seconds: float) -> str:
    """In milliseconds, with two digits behind the point where there are few before it."""
    return f"{1e3 * seconds:.2f}" if seconds < 1 else f"{1e3 * seconds:,.0f}"


def table(results: list[Result]) -> str:
    """The sides of one case as text: seconds, ratio to ours, resident peak and growth, traced peak; and the floor."""
    ours = results[0]
    products = operations(ours.case)
    floor = f", floor for its arithmetic {1e3 * products / ours.rate:.1f} ms" if ours.rate and products else ""
    lines = [["", "median ms", "quartiles", "ratio", "peak", "grown", "traced"]]
    for one in results:
        spread, ratio = " to ".join(map(_ms, one.quartiles)), f"{one.median / ours.median:.2f}"
        sizes = [binary(one.resident), binary(one.grown), binary(one.traced) if one.traced else "-"]
        lines.append([one.side, _ms(one.median), spread, ratio, *sizes])
    return f"{ours.case}{floor}\n{Table(lines, rule=False)}"
