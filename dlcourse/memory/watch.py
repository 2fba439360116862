"""Watch a network at work: the traced peak in each layer's forward and backward."""

import functools
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from dlcourse.layers.base import Params
from dlcourse.memory.rulers import reset_traced_peak
from dlcourse.model import Sequential

BUFFER = 256  # numbers


@contextmanager
def small_buffers() -> Iterator[None]:
    """NumPy works through a cast or a broadcast in a buffer of 8,192 numbers, 32 KiB in float32, which is nobody's array.
    In the block it has 256, on this thread."""
    before = np.setbufsize(BUFFER)
    try:
        yield
    finally:
        np.setbufsize(before)


@dataclass(eq=False)
class Watch:
    """By the name of a call, such as "conv2d_1, forward", the largest of its calls: `peaks`, the most bytes that were
    traced while it ran; `workspace`, what of these was gone when it returned. For one thread, while tracemalloc traces.
    """

    peaks: dict[str, int] = field(default_factory=dict)
    workspace: dict[str, int] = field(default_factory=dict)

    def call(self, name: str, function: Callable[..., Any], *arguments: Any, **options: Any) -> Any:
        """-> what `function` returns."""
        reset_traced_peak()
        result = function(*arguments, **options)
        now, peak = tracemalloc.get_traced_memory()
        self.peaks[name] = max(self.peaks.get(name, 0), peak)
        self.workspace[name] = max(self.workspace.get(name, 0), peak - now)
        return result

    def of(self, name: str, function: Callable[..., Any]) -> Callable[..., Any]:
        """The same function, each call of which is watched under `name`."""
        return functools.partial(self.call, name, function)

    def reset(self) -> dict[str, int]:
        """Begin anew. The names stay, so that what is watched next makes no new entries. -> workspace until now."""
        before = dict(self.workspace)
        for seen in (self.peaks, self.workspace):
            seen.update(dict.fromkeys(seen, 0))
        return before


class Watched(Sequential):
    """The same network, whose layers are called through a watch: it runs the code that training runs."""

    watch: Watch

    def __init__(self, model: Sequential, watch: Watch) -> None:
        super().__init__(model.layers)
        object.__setattr__(self, "watch", watch)

    def finish(self, grads: Params) -> None:
        self.watch.call("products", super().finish, grads)

    def _walk(self, params: Params, saved: Any, prefix: str = "") -> Iterator[Any]:
        for name, layer, own, place, key in super()._walk(params, saved, prefix):
            yield name, _WatchedLayer(name, layer, self.watch), own, place, key


@dataclass(frozen=True)
class _WatchedLayer:
    name: str
    layer: Any
    watch: Watch

    def forward(self, *arguments: Any, **options: Any) -> Any:
        return self.watch.call(f"{self.name}, forward", self.layer.forward, *arguments, **options)

    def __getattr__(self, name: str) -> Any:  # what else the layer has, such as `factors_pay`
        return getattr(self.layer, name)

    def backward(self, *arguments: Any, **options: Any) -> Any:
        return self.watch.call(f"{self.name}, backward", self.layer.backward, *arguments, **options)
