"""Schedules: how the learning rate changes over a run.

A schedule is a frozen dataclass that is called with a step, counted from 0, and returns a factor as a float. The
learning rate of that step is the optimizer's own times the factor:

    schedule = WarmUp(100, then=Cosine(900))
    opt.update(params, grads, slots, lr=opt.lr * schedule(step))

A schedule holds no state: resumed at step 700 it gives what it would have given without a stop.
"""

import math
import operator
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

Schedule = Callable[[int], float]


@dataclass(frozen=True)
class Constant:
    """1 at every step."""

    def __call__(self, step: int) -> float:
        _count(self, "step", step, least=0)
        return 1.0


@dataclass(frozen=True)
class StepDecay:
    """factor to the power of (step // every): after each `every` steps the rate is multiplied by `factor`, in (0, 1]."""

    every: int
    factor: float = 0.1

    def __post_init__(self) -> None:
        _count(self, "every", self.every, least=1)
        if not 0 < self.factor <= 1:
            raise ValueError(f"StepDecay: factor is {self.factor}; it must be in (0, 1]")

    def __call__(self, step: int) -> float:
        return float(self.factor) ** (_count(self, "step", step, least=0) // int(self.every))


@dataclass(frozen=True)
class Cosine:
    """From 1 at step 0 down to `floor`, in [0, 1], at step `steps`, along half a cosine; then `floor`.

    floor + (1 - floor) (1 + cos(pi step / steps)) / 2  (Loshchilov and Hutter 2017, without restarts).
    """

    steps: int
    floor: float = 0.0

    def __post_init__(self) -> None:
        _count(self, "steps", self.steps, least=1)
        if not 0 <= self.floor <= 1:
            raise ValueError(f"Cosine: floor is {self.floor}; it must be in [0, 1]")

    def __call__(self, step: int) -> float:
        done = min(_count(self, "step", step, least=0), self.steps) / self.steps
        floor = float(self.floor)
        return floor + (1.0 - floor) * (1.0 + math.cos(math.pi * done)) / 2.0


@dataclass(frozen=True)
class WarmUp:
    """Up in equal parts during `steps` steps, to the first factor of `then`; from there `then`, counted from 0.

    Step 0 has 1/steps of it, so no step is lost at a rate of 0 (Goyal et al. 2017).
    """

    steps: int
    then: Schedule = field(default_factory=Constant)

    def __post_init__(self) -> None:
        _count(self, "steps", self.steps, least=0)
        if not callable(self.then) or isinstance(self.then, type):
            raise TypeError(f"WarmUp: then is {self.then!r}; it must be a schedule, such as Cosine(1000)")

    def __call__(self, step: int) -> float:
        if _count(self, "step", step, least=0) < self.steps:
            return float(self.then(0) * (step + 1) / self.steps)
        return float(self.then(step - self.steps))


def _count(schedule: Any, name: str, value: Any, *, least: int) -> int:
    who = type(schedule).__name__
    try:
        count = operator.index(value)
    except TypeError:
        raise TypeError(f"{who}: {name} is {value!r}; it must be a whole number, at least {least}") from None
    if count < least:
        raise ValueError(f"{who}: {name} is {value}; it must be at least {least}")
    return count
