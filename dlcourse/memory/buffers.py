"""The buffer plan: a place in one arena for each array of a run, so that no two that live at the same time overlap."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse.calls import Call, Lifetime, lifetimes, owners, totals
from dlcourse.layers.base import Layer
from dlcourse.model import plainly

ALIGNED = 64  # bytes: an array begins with a line of the cache


@dataclass(frozen=True)
class BufferPlan:
    """offsets: where each lifetime stands. nbytes: of the arena. bound: the most bytes that are alive at one moment, below which
    no plan goes."""

    offsets: dict[Lifetime, int]
    nbytes: int
    bound: int


def plan_buffers(alive: Sequence[Lifetime]) -> BufferPlan:
    """The largest first, each at the lowest place that is free in all its moments ("greedy by size", Pisarchyk and Lee 2020).
    alive: such as `calls.lifetimes` gives; those of one `value` are one array. Offsets are multiples of 64 bytes."""
    whole: dict[Any, Lifetime] = {}
    for i, one in enumerate(alive):
        if one.nbytes and one.first <= one.last:
            key = ("line", i) if one.value is None else one.value
            first, last = (whole[key].first, whole[key].last) if key in whole else (one.first, one.last)
            whole[key] = one._replace(
                first=min(first, one.first), last=max(last, one.last), nbytes=_aligned(one.nbytes)
            )
    placed: list[tuple[int, Lifetime]] = []
    for one in sorted(whole.values(), key=lambda one: -one.nbytes):
        at = 0
        for offset, other in sorted(placed, key=lambda pair: pair[0]):
            if other.first <= one.last and one.first <= other.last:
                if at + one.nbytes <= offset:
                    break
                at = max(at, offset + other.nbytes)
        placed.append((at, one))
    moments = max((one.last for one in whole.values()), default=-1) + 1
    kinds = {one.kind for one in whole.values()}
    sums = [sum(moment.values()) for moment in totals(kinds, moments, list(whole.values()))]
    return BufferPlan(
        {one: at for at, one in placed}, max((at + one.nbytes for at, one in placed), default=0), max(sums, default=0)
    )


def _aligned(nbytes: int) -> int:
    return -(-nbytes // ALIGNED) * ALIGNED


class Arena:
    """One array for all outputs of a forward pass: `model.forward(params, x, call=arena.call)` writes them into it, pass after
    pass, with the same bits; what a layer needs besides (columns, masks) it still allocates.

    calls: of `model.calls(in_shape, batch, dtype, train=…)`; a batch may be smaller. With train=True what waits for backward has
    its place until it is done, for one pass at a time: not with micro-batches of which factors wait.
    The outputs stand in the arena, the last one too: the next pass overwrites them. Allocates `plan.nbytes`.
    """

    def __init__(self, calls: Sequence[Call], *, train: bool = False) -> None:
        alive = lifetimes(calls, {}, {}, 0 if train else None)[1]
        self.plan = plan_buffers([one for one in alive if one.value is not None and one.value >= 0])
        memory = np.empty(self.plan.nbytes + ALIGNED, np.uint8)
        start = -memory.ctypes.data % ALIGNED
        offsets = {one.value: start + at for one, at in self.plan.offsets.items()}
        own = owners(calls)
        self._outs = {
            call.name: memory[offsets[call.number] :][: call.output.nbytes]
            .view(call.output.dtype)
            .reshape(call.output.shape)
            for call in calls
            if own[call.number] == call.number and type(call.layer).forward is Layer.forward
        }

    def call(self, moment: str, function: Callable[..., Any], x_params: Any, *arguments: Any, **options: Any) -> Any:
        """A network's `call` (see `model.plainly`) that hands each layer its place as `out`."""
        name, _, way = moment.rpartition(", ")
        if way == "forward" and name in self._outs:
            options["out"] = self._outs[name][: len(arguments[0])]
        return plainly(moment, function, x_params, *arguments, **options)


def step_bytes(calls: Sequence[Call], grads: Mapping[str, int], loss_workspace: int) -> BufferPlan:
    """The plan of a whole training step without the update: outputs, what is saved, every dx, gradients and workspaces; inputs
    left out. grads: bytes of the gradients by a layer's name."""
    return plan_buffers([one for one in lifetimes(calls, grads, {}, loss_workspace)[1] if one.kind != "data"])
