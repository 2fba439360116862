"""Layers that have layers inside."""

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlcourse import tree
from dlcourse.calls import Call, Value, lifetimes, owners, totals
from dlcourse.layers.base import Array, Layer, Params, Shape
from dlcourse.layers.chain import Named, named_layers, plainly
from dlcourse.plan import Plan

STATE = 6  # numbers of 64 bits in the state of a generator


@dataclass(frozen=True)
class Recompute(Layer):
    """Inner layers in a chain, of which only the input is kept: backward first runs them forward once more.

    What they would save is alive only during this layer's backward, for the time of one more forward pass (Chen et al.
    2016, "Training deep nets with sublinear memory cost": n layers in blocks of √n). Dropout draws the same masks again,
    from the state of the generator; running statistics move once, by those of the first pass.

    layers: of `dlcourse.layers`, or derived from Layer. params: {name of an inner layer: {"W": …}}, as in a Sequential.
    Keeps its input, and 48 bytes of state if an inner layer draws. Raises TypeError for what is no such layer.
    """

    layers: tuple[Any, ...]
    keeps = "x"
    overwrites_dy = True

    def __post_init__(self) -> None:
        given = getattr(self.layers, "layers", self.layers)  # a Sequential
        if isinstance(given, Layer) or not given:
            raise TypeError(f"Recompute: expected layers, such as [Affine(10), ReLU()], got {given!r}")
        named = named_layers(given, "Recompute")
        for name, layer in named:
            if not isinstance(layer, Layer):
                raise TypeError(f"Recompute: '{name}' must be derived from Layer: its bytes are known by its weights")
        object.__setattr__(self, "layers", tuple(given))
        object.__setattr__(self, "_inner", tuple((name.replace("/", "."), layer) for name, layer in named))

    @property
    def inner(self) -> Named:
        """(name, layer) of each inner layer, in order."""
        return self._inner  # type: ignore[attr-defined]

    @property
    def draws(self) -> bool:
        """Whether an inner layer draws random numbers in training."""
        return any(layer.draws for _, layer in self.inner)

    def out_shape(self, in_shape: Shape) -> Shape:
        """The last inner layer's."""
        for name, layer in self.inner:
            in_shape = plainly(f"{name}, out_shape", layer.out_shape, in_shape)
        return in_shape

    def weights(self, in_shape: Shape) -> dict[str, Any]:
        """Those of the inner layers, by their names."""
        found = {}
        for name, layer in self.inner:
            found[name] = layer.weights(in_shape)
            in_shape = layer.out_shape(in_shape)
        return {name: weights for name, weights in found.items() if weights}

    def apply(
        self, params: Params, x: Array, *, train: bool, rng: Any, out: Array | None = None
    ) -> tuple[Array, Params]:
        state = generator_state(rng) if train and self.draws and rng is not None else None
        statistics = {}
        for name, layer in self.inner:
            x, kept = plainly(f"{name}, forward", layer.forward, params.get(name, {}), x, train=train, rng=rng)
            if train and hasattr(layer, "statistics") and (found := layer.statistics(kept)):
                statistics[name] = found
            del kept  # before the next layer makes its own
        if out is not None:
            np.copyto(out, x)
        own = {} if state is None else {"state": state}
        return x if out is None else out, own | ({"statistics": statistics} if statistics else {})

    def gradient(
        self, params: Params, saved: Any, dy: Array, *, need_dx: bool, out: Array | None = None
    ) -> tuple[Array | None, Params]:
        x, state = (saved["x"], saved.get("state")) if isinstance(saved, dict) else (saved, None)
        rng = None if state is None else generator_of(state)
        again = {}
        for name, layer in self.inner:
            x, again[name] = layer.forward(params.get(name, {}), x, train=True, rng=rng)
        del x
        overwrite_dy, grads = out is not None, {}
        for name, layer in reversed(self.inner):
            how = {"need_dx": need_dx or name != self.inner[0][0], "overwrite_dy": overwrite_dy}
            dx, own_grads = layer.backward(params.get(name, {}), again.pop(name), dy, **how)
            overwrite_dy = overwrite_dy or (dx is not None and not np.may_share_memory(dx, dy))
            dy = dx
            if own_grads:
                grads[name] = own_grads
        return dy, dict(reversed(grads.items()))

    def statistics(self, saved: Any) -> Any:
        return saved.get("statistics", {}) if isinstance(saved, dict) else {}

    def update_buffers(self, params: Params, saved: Any) -> None:
        """Move the inner layers' running statistics. saved: that of forward, or its `statistics`."""
        found = saved if isinstance(saved, dict) and "x" not in saved else self.statistics(saved)
        inner: dict[str, Any] = dict(self.inner)
        for name, statistics in found.items():
            inner[name].update_buffers(params[name], statistics)

    def plan(self, *in_shapes: Shape, batch: int | None, dtype: Any, train: bool = True) -> Plan:
        return replace(super().plan(*in_shapes, batch=batch, dtype=dtype, train=train), dx_is_dy=False)

    def workspace(self, in_shape: Shape, *, batch: int | None, dtype: Any, train: bool) -> Plan:
        """By the lifetimes of what the inner layers make: once without saving, and once with it and their backward."""
        x = Value(-1, in_shape if batch is None else (batch, *in_shape), np.dtype(dtype))
        calls = self._calls(x, train)
        y = calls[-1].output
        passing = [call._replace(plan=_unsaved(call.plan)) for call in calls]
        shared = owners(calls)[y.number] < 0
        forward = max(0, _highest(passing) - (0 if shared else y.nbytes))
        if not train:
            return Plan(forward_workspace=forward, output_is_input=shared)
        weights = self.weights(x.shape[1:])
        grads = {name: _nbytes(tree.leaves(tree.trainable(own)), x.dtype) for name, own in weights.items()}
        outside = y.nbytes + sum(grads.values())  # dy and the gradients, which are counted with this layer
        return Plan(
            own=(8 * STATE if self.draws else 0) + _nbytes(tree.buffers(weights), x.dtype),
            forward_workspace=forward,
            backward_workspace=max(0, _highest(self._calls(x, train, asks_dx=True), grads) - outside - x.nbytes),
            first_backward_workspace=max(0, _highest(calls, grads) - outside),
            output_is_input=shared,
        )

    def _calls(self, x: Value, train: bool, *, asks_dx: bool = False) -> list[Call]:
        """The inner calls. asks_dx: behind an identity, since no dx of the inputs of the whole is made."""
        calls: list[Call] = []
        if asks_dx:
            calls.append(Call(0, "", Layer(), (x,), x._replace(number=0), Plan(output_is_input=True, dx_is_dy=True)))
        for name, layer in self.inner:
            x = calls[-1].output if calls else x
            shape = x.shape[1:]
            y = x._replace(number=len(calls), shape=(x.shape[0], *layer.out_shape(shape)))
            plan = layer.plan(shape, batch=x.shape[0], dtype=x.dtype, train=train)
            calls.append(Call(len(calls), name, layer, (x,), y, plan))
        return calls


def _unsaved(plan: Plan) -> Plan:
    """That of a layer whose `saved` is let go at once."""
    return Plan(forward_workspace=plan.forward_workspace + plan.own, output_is_input=plan.output_is_input)


def _highest(calls: list[Call], grads: dict[str, int] | None = None) -> int:
    """The most bytes alive at one moment beside the input; with `grads`, of forward and backward, while dy waits."""
    moments, alive = lifetimes(calls, grads or {}, {}, None if grads is None else 0)
    kinds = {one.kind for one in alive} | {"data"}
    sums = [sum(one.values()) - one["data"] for one in totals(kinds, len(moments), alive)]
    dy = 0 if grads is None else calls[-1].output.nbytes
    return max(total + (dy if i < len(calls) else 0) for i, total in enumerate(sums))


def _nbytes(weights: list[Any], dtype: np.dtype) -> int:
    return sum(math.prod(weight.shape) for weight in weights) * dtype.itemsize


def generator_state(rng: np.random.Generator) -> Array:
    """The state of a generator as 6 numbers, (6,) uint64. Raises TypeError for another kind than default_rng makes."""
    state = rng.bit_generator.state
    if state["bit_generator"] != "PCG64":
        raise TypeError(f"needs rng=numpy.random.default_rng(seed), got one of {state['bit_generator']}")
    halves = [half for key in ("state", "inc") for half in divmod(state["state"][key], 2**64)]
    return np.array([*halves, state["has_uint32"], state["uinteger"]], np.uint64)


def generator_of(state: Array) -> np.random.Generator:
    """A generator that draws what the one with this state drew next."""
    numbers = [int(number) for number in state]
    bits = np.random.PCG64()
    bits.state = {
        "bit_generator": "PCG64",
        "state": {"state": numbers[0] << 64 | numbers[1], "inc": numbers[2] << 64 | numbers[3]},
        "has_uint32": numbers[4],
        "uinteger": numbers[5],
    }
    return np.random.Generator(bits)
