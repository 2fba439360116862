"""The list of calls of a network: who takes what, makes what and keeps what; and from when to when each array is alive.

`Sequential.calls` gives such a list, and so does anything else that runs layers: a layer may take several inputs, and a
layer that is used twice stands in it twice, with one name and two numbers. The bill, a planner of buffers and a trace
read the list and nothing else.
"""

import math
from collections.abc import Collection, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dlcourse.plan import Plan

if TYPE_CHECKING:  # the layers import this module: those with layers inside have a list of calls of their own
    from dlcourse.layers.base import Layer

Shape = tuple[int, ...]


class Value(NamedTuple):
    """An array of a run, before there is one.

    number: of the call that makes it; -1, -2, … for the inputs of the whole. shape: with the batch axis.
    No reference leads from a value to a call: the list is the only way.
    """

    number: int
    shape: Shape
    dtype: np.dtype

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


class Call(NamedTuple):
    """One layer at work. number: 0, 1, … in the order of forward. name: the layer's key in params."""

    number: int
    name: str
    layer: "Layer"
    inputs: tuple[Value, ...]
    output: Value
    plan: Plan

    @property
    def in_shapes(self) -> tuple[Shape, ...]:
        """The shapes of the inputs without the batch axis."""
        return tuple(value.shape[1:] for value in self.inputs)

    @property
    def needs_dx(self) -> bool:
        """Whether another call made one of the inputs: the gradients of the inputs of the whole are not computed."""
        return any(value.number >= 0 for value in self.inputs)

    @property
    def saves(self) -> tuple[Value, ...]:
        """The inputs and the output that backward keeps; what it keeps besides is `plan.own` bytes."""
        output = (self.output,) if self.plan.saves_output else ()
        return (*(self.inputs[i] for i in self.plan.saves_inputs), *output)

    def backward_workspace(self, *, trains: bool) -> int:
        """Bytes. trains: whether the layer has parameters; a first layer without any has nothing to do."""
        first = self.plan.first_backward_workspace
        if self.needs_dx:
            return self.plan.backward_workspace
        return (self.plan.backward_workspace if first is None else first) if trains else 0


class Lifetime(NamedTuple):
    """Bytes that are alive in all moments from `first` to `last`, by their places in the list of moments. kind: a column of
    the bill. An array is "workspace" while it passes from one call to another, and "saved" while it waits for backward.
    value: the number of the array, if it is the input of the whole or a call's output."""

    kind: str
    nbytes: int
    first: int
    last: int
    value: int | None = None


def owners(calls: Sequence[Call]) -> dict[int, int]:
    """{number of a value: number of the array that it is (a view of)}."""
    own = {value.number: value.number for call in calls for value in call.inputs if value.number < 0}
    for call in calls:
        own[call.number] = own[call.inputs[0].number] if call.plan.output_is_input else call.number
    return own


def first_savers(calls: Sequence[Call]) -> dict[int, int]:
    """{number of an array: place of the first call that keeps it}: it is freed when that one's backward is done."""
    own = owners(calls)
    found: dict[int, int] = {}
    for i, call in enumerate(calls):
        for value in call.saves:
            found.setdefault(own[value.number], i)
    return found


def sizes(calls: Sequence[Call]) -> dict[int, int]:
    """{number of an array: its bytes}, the inputs of the whole too."""
    own = owners(calls)
    found = {value.number: value.nbytes for call in calls for value in call.inputs if value.number < 0}
    return found | {call.number: call.output.nbytes for call in calls if own[call.number] == call.number}


def lifetimes(
    calls: Sequence[Call], grads: Mapping[str, int], deferred: Mapping[str, int], loss_workspace: int | None
) -> tuple[list[str], list[Lifetime]]:
    """-> (the moments of one micro-batch in order, what is alive in them), parameters and slots left out.

    The last call's output goes to the loss. Backward runs the calls in reverse, frees what each saved, and lets dx be
    written over dy if the plan can and nobody else waits for dy. The second gradient of a value that is used twice is
    added to the first one in a moment of its own, "relu_1, sum": into a new array, and later ones into that array.

    grads: bytes of the gradients by a layer's name. deferred: bytes of dW that come as factors (`gradients.deferred`).
    loss_workspace: of the loss, beside dlogits; None: an inference, which ends after the last call.
    """
    own, saver, size = owners(calls), first_savers(calls), sizes(calls)
    moments = [f"{call.name}, forward" for call in calls]
    alive: list[Lifetime] = []
    last_use = {own[value.number]: i for i, call in enumerate(calls) for value in (*call.inputs, call.output)}
    made = {own[call.number]: i for i, call in reversed(list(enumerate(calls)))}
    for i, call in enumerate(calls):
        alive.append(Lifetime("workspace", call.plan.forward_workspace, i, i))
    backward_of: dict[int, int] = {}
    end = len(calls) - 1
    if loss_workspace is not None:
        last_use[own[calls[-1].number]] = len(moments)
        moments.append("loss")
        backward_of, end = _backward(calls, own, grads, deferred, loss_workspace, moments, alive)
    held = {own[call.inputs[0].number] for call in calls if call.name in deferred}  # x, as a factor
    for number, nbytes in size.items():
        saved_by = saver.get(number)
        released = backward_of.get(saved_by, end) if saved_by is not None else -1
        if number < 0:  # whoever runs the network holds its inputs while it goes forward
            last = max(len(calls) - 1, last_use[number], released)
            alive.append(Lifetime("data", nbytes, 0, end if number in held else last, number))
            continue
        last = last_use[number] if saved_by is None else min(last_use[number], saved_by)
        alive.append(Lifetime("workspace", nbytes, made[number], last, number))
        if saved_by is not None:
            alive.append(Lifetime("saved", nbytes, saved_by + 1, released, number))
        if number in held:
            alive.append(Lifetime("grads", nbytes, released + 1, end))
    for i, call in enumerate(calls):
        if call.plan.own:
            alive.append(Lifetime("saved", call.plan.own, i, backward_of.get(i, end)))
    return moments, alive


def _backward(
    calls: Sequence[Call],
    own: Mapping[int, int],
    grads: Mapping[str, int],
    deferred: Mapping[str, int],
    loss_workspace: int,
    moments: list[str],
    alive: list[Lifetime],
) -> tuple[dict[int, int], int]:
    """The moments from the loss on. -> {place of a call: the moment of its backward}, the last moment."""
    loss, logits = len(moments) - 1, calls[-1].output
    alive.append(Lifetime("workspace", loss_workspace, loss, loss))
    arrays = [_Gradient(logits.nbytes, loss)]  # whoever calls backward holds dlogits to the end
    dlogits = arrays[0]
    waiting = {logits.number: dlogits}  # the gradient of each value that has one, by the value's number
    backward_of: dict[int, int] = {}
    grads_of: dict[str, tuple[int, int]] = {}  # bytes, and the moment from which on they are there
    by_number = {call.number: call for call in calls}
    for i, call in reversed(list(enumerate(calls))):
        if call.number not in waiting:  # its output leads to no loss
            continue
        now = backward_of[i] = len(moments)
        moments.append(f"{call.name}, backward")
        trained = grads.get(call.name, 0)
        alive.append(Lifetime("workspace", call.backward_workspace(trains=trained > 0), now, now))
        if call.name in grads_of:  # added to those of the layer's other use
            alive.append(Lifetime("grads", trained, now, now))
        grads_of.setdefault(call.name, (trained - deferred.get(call.name, 0), now))
        dy = waiting.pop(call.number)
        dy.shared = dy.shared or dy in waiting.values()
        handed = [dy]
        handed_on = call.plan.output_is_input or len(call.inputs) > 1
        for value in call.inputs if call.needs_dx else ():
            if call.plan.dx_is_dy and (handed_on or not dy.shared):
                dx = dy
            else:
                arrays.append(dx := _Gradient(value.nbytes, now))
            handed.append(dx)
            if value.number < 0:
                continue
            other = waiting.get(value.number)
            if other is not None:
                moments.append(f"{by_number[value.number].name}, sum")
                other.last, dx = len(moments) - 1, other
                if not other.is_sum:
                    arrays.append(dx := _Gradient(value.nbytes, len(moments) - 1))
                    dx.is_sum = True
            waiting[value.number] = dx
        for array in handed:  # dy and every dx stand until all are handed on
            array.last = len(moments) - 1
        dy.factor = call.name in deferred
    end = len(moments) - 1
    dlogits.last = end
    for array in arrays:
        alive.append(Lifetime("workspace", array.nbytes, array.first, array.last))
        if array.factor and array is not dlogits:
            alive.append(Lifetime("grads", array.nbytes, array.last + 1, end))
    alive += [Lifetime("grads", nbytes, first, end) for nbytes, first in grads_of.values()]
    return backward_of, end


class _Gradient:
    """An array that passes from one backward to another."""

    def __init__(self, nbytes: int, first: int) -> None:
        self.nbytes, self.first, self.last = nbytes, first, first
        self.shared = False  # several wait for it, so none may write over it
        self.is_sum = False  # made by adding, so further gradients are added into it
        self.factor = False  # it lives on as a factor of dW


def totals(kinds: Collection[str], moments: int, alive: Sequence[Lifetime]) -> list[dict[str, int]]:
    """The bytes of each kind in each moment."""
    changes = [dict.fromkeys(kinds, 0) for _ in range(moments + 1)]
    for kind, nbytes, first, last, _ in alive:
        if first <= last:
            changes[first][kind] += nbytes
            changes[last + 1][kind] -= nbytes
    for before, now in pairwise(changes):
        for kind in kinds:
            now[kind] += before[kind]
    return changes[:moments]
