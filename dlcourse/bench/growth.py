"""How a step grows: seconds and bytes against batch, image size, channels, depth and workers, one at a time.

The network is a stack of 3×3 convolutions with ReLU and an affine layer; the step is forward, backward and Adam.
"""

import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse import layers as L
from dlcourse import memory, optim, train
from dlcourse.memory.tables import Table
from dlcourse.model import Sequential
from dlcourse.units import binary

SIDE, CHANNELS, DEPTH, BATCH = 32, 16, 2, 50  # what stays while one of them grows


@dataclass(frozen=True)
class Axis:
    """What grows, and in which quantity seconds and bytes should be a straight line."""

    name: str
    values: tuple[int, ...]
    against: str
    quantity: Callable[[int], float]


AXES = (
    Axis("batch", (25, 50, 100, 200), "samples", float),
    Axis("side", (16, 32, 48, 64), "pixels of an image", lambda side: side * side),
    Axis("channels", (8, 16, 32, 64), "channels", float),
    Axis("depth", (1, 2, 4, 8), "layers", float),
    Axis("workers", (1, 2), "workers", float),
)


@dataclass(frozen=True)
class Grown:
    """One size: median seconds of a step, and its traced peak beside the bill's prediction (bytes)."""

    axis: str
    value: int
    seconds: float
    traced: int
    predicted: int


def grow(rounds: int = 5) -> Iterator[tuple[Axis, list[Grown]]]:
    """Yield each axis with its sizes measured. Sizes run in turn, so that a machine that slows down slows all of them."""
    for axis in AXES:
        steps, bills = zip(*[_step(**{axis.name: value}) for value in axis.values], strict=True)
        peaks = [_traced(step) for step in steps]  # warms up, too
        seconds: list[list[float]] = [[] for _ in steps]
        for _ in range(rounds):
            for step, times in zip(steps, seconds, strict=True):
                started = time.perf_counter()
                step()
                times.append(time.perf_counter() - started)
        sizes = zip(axis.values, map(statistics.median, seconds), peaks, bills, strict=True)
        yield axis, [Grown(axis.name, *size) for size in sizes]


def _step(
    batch: int = BATCH, side: int = SIDE, channels: int = CHANNELS, depth: int = DEPTH, workers: int = 0
) -> tuple[Callable[[], None], int]:
    """-> a step as a function, and the bill's peak without what was there before (parameters and slots). Whole batches
    on one thread; with `workers`, micro-batches of 25 of a batch of 100."""
    convolutions = [layer for _ in range(depth) for layer in (L.Conv2D(channels, 3, padding=1), L.ReLU())]
    model = Sequential([*convolutions, L.MaxPool2D(4), L.Flatten(), L.Affine(10)])
    cut: dict[str, Any] = {"micro_batch": 25, "workers": workers} if workers else {"micro_batch": None, "workers": 1}
    batch = 100 if workers else batch
    rng = np.random.default_rng(0)
    x, labels = rng.standard_normal((batch, side, side, 3), dtype=np.float32), rng.integers(0, 10, batch)
    params, optimizer = model.init(x.shape[1:], rng), optim.Adam()
    slots = optimizer.init(params)
    bill = memory.bill(model, x.shape[1:], batch_size=batch, optimizer=optimizer, **cut)

    def step() -> None:
        optimizer.update(params, train.gradients(model, params, x, labels, **cut)[1], slots)

    # A slice of the batch is a view here: the input was there before the step.
    before = bill.total("params") + bill.total("slots") + bill.total("data") * cut["workers"]
    return step, bill.peak - before


def _traced(step: Callable[[], None]) -> int:
    step()
    with memory.traced_peak() as traced:
        step()
    return traced.peak


def line(x: list[float], y: list[float]) -> tuple[float, float, float]:
    """The line through the points by least squares: -> value at 0, slope, and R², the share of y's variance on it."""
    slope, at_zero = np.polyfit(x, y, 1)
    rest = np.asarray(y) - (at_zero + slope * np.asarray(x))
    spread = np.asarray(y) - np.mean(y)
    return float(at_zero), float(slope), 1 - float(rest @ rest) / float(spread @ spread)


def growth_table(axis: Axis, sizes: list[Grown]) -> str:
    """One axis as text, with the lines through bytes and seconds."""
    lines = [[axis.name, "ms", "traced", "predicted"]]
    for one in sizes:
        lines.append([str(one.value), f"{1e3 * one.seconds:.1f}", binary(one.traced), binary(one.predicted)])
    notes = []
    if len(sizes) > 2:
        x = [axis.quantity(one.value) for one in sizes]
        for what, y, written in (
            ("bytes", [float(one.traced) for one in sizes], binary),
            ("seconds", [one.seconds for one in sizes], lambda seconds: f"{1e3 * seconds:.3g} ms"),
        ):
            at_zero, slope, share = line(x, y)
            notes.append(f"{what} against {axis.against}: {written(at_zero)} + {written(slope)} each, R2 = {share:.5f}")
    return str(Table(lines, notes, rule=False))
