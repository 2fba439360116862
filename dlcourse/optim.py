"""Optimizers: each changes the parameters in place, given their gradients and its slots.

    opt = Adam(lr=1e-3)
    slots = opt.init(params)                # {"step": 0, "m": zeros like params, "v": zeros like params}
    opt.update(params, grads, slots)        # changes params and slots, leaves grads as they are

An optimizer is configuration (a frozen dataclass) and a rule: how one block of a parameter and of its slots changes.
`update` walks through every array in blocks of `BLOCK` numbers and hands them to the rule, so its only temporaries are a
few blocks, however large the parameters are. Definitions and defaults are those of PyTorch.

`weight_decay` adds weight_decay · p to the gradient (L2); in AdamW it shrinks p directly.
What stands under a "buffers" key in params is passed over.
"""

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar, dataclass_transform

import numpy as np

from dlcourse import tree

BLOCK = 16_384  # numbers in a block: 64 KiB in float32, so that a block of everything stays in the cache

Array = np.ndarray
Slots = dict[str, Any]
T = TypeVar("T")


@dataclass(frozen=True)
class OptimizerPlan:
    """What an optimizer will allocate.

    slot_copies: how many times the bytes of the trainable parameters it keeps as slots.
    workspace: the most bytes alive at one moment of `update` beyond parameters, gradients and slots.
    """

    slot_copies: int
    workspace: int


class Optimizer(Protocol):
    """What training needs of an optimizer."""

    @property
    def lr(self) -> float: ...
    def init(self, params: tree.Tree) -> Slots: ...
    def update(self, params: tree.Tree, grads: tree.Tree, slots: Slots, *, lr: float | None = None) -> None: ...
    def plan(self, dtype: Any = np.float32) -> OptimizerPlan: ...


class State(NamedTuple):
    """What an optimizer needs beside parameters and gradients.

    slots: the names of its slots.
    scratch: the number of blocks that its rule needs for what is between.
    decoupled: weight decay shrinks the parameter and leaves the gradient alone.
    """

    slots: tuple[str, ...] = ()
    scratch: int = 1
    decoupled: bool = False


# The three methods of every optimizer, written once. They rest on its fields, its `state` and its rule:
# rule(p, g, slots, scratch, lr, step) changes blocks of p and of the slots in place and only reads g; step is 1, 2, ….


def _init(self: Any, params: tree.Tree) -> Slots:
    """-> {"step": 0, name of a slot: tree of zeros, …}: plain dicts, in the shapes and dtypes of the parameters."""
    params = tree.trainable(params)
    _check_arrays(self, "parameter", tree.flatten(params))
    return {"step": 0} | {slot: tree.map(lambda p: np.zeros(p.shape, p.dtype), params) for slot in self.state.slots}


def _update(self: Any, params: tree.Tree, grads: tree.Tree, slots: Slots, *, lr: float | None = None) -> None:
    """Change params and slots in place by one step; grads stay as they are.

    lr: the learning rate of this step, where it is not the optimizer's own (a schedule).

    Allocates the workspace that `plan` names, and one block more for a gradient that is not contiguous.
    Raises, before anything is changed: ValueError where grads or slots differ from params in names or shapes, or where
    a parameter is not C-contiguous (a flat view of it would be a copy) or is read-only; TypeError for a wrong dtype.
    """
    lr = self.lr if lr is None else _in_range(self, "lr", lr)
    arrays = _arrays(self, params, grads, slots)
    step = slots["step"] = int(slots["step"]) + 1
    for p, g, kept in arrays:
        _walk(self, p, g, kept, lr, step)


def _walk(self: Any, p: Array, g: Array, slots: list[Array], lr: float, step: int) -> None:
    scratch = np.empty((_scratch_blocks(self), BLOCK), p.dtype)
    p, slots = p.reshape(-1), [slot.reshape(-1) for slot in slots]
    flat = g.reshape(-1) if g.flags.c_contiguous else g.flat  # slices of the latter are copies, a block each
    for start in range(0, p.size, BLOCK):
        block = slice(start, min(start + BLOCK, p.size))
        spare = scratch[:, : block.stop - start]
        p_block, g_block = p[block], flat[block]
        if self.weight_decay and self.state.decoupled:
            p_block *= 1.0 - lr * self.weight_decay
        elif self.weight_decay:
            np.multiply(p_block, self.weight_decay, out=spare[-1])
            spare[-1] += g_block
            g_block = spare[-1]
        self.rule(p_block, g_block, [slot[block] for slot in slots], spare, lr, step)


def _plan(self: Any, dtype: Any = np.float32) -> OptimizerPlan:
    """The copies of the parameters that the slots are, and the bytes of an update, for parameters of `dtype`."""
    return OptimizerPlan(len(self.state.slots), _scratch_blocks(self) * BLOCK * np.dtype(dtype).itemsize)


def _scratch_blocks(self: Any) -> int:
    return self.state.scratch + (self.weight_decay > 0 and not self.state.decoupled)


def clip_by_norm(grads: tree.Tree, max_norm: float) -> float:
    """Scale all gradients, in place and by one factor, so that their norm is at most max_norm.  -> the norm before.

    The norm is that of all gradients as one vector, summed in float64 (Pascanu et al. 2013). One that is NaN or infinite
    is returned and changes nothing. Allocates one block in float64. Raises ValueError where max_norm is not above 0.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm is {max_norm}; it must be above 0")
    leaves = tree.leaves(tree.trainable(grads))
    norm = math.sqrt(sum(_sum_of_squares(g) for g in leaves))
    if max_norm < norm < math.inf:
        for g in leaves:
            g *= float(max_norm) / norm
    return norm


def _sum_of_squares(g: Array) -> float:
    flat = g.reshape(-1) if g.flags.c_contiguous else g.flat
    block, total = np.empty(min(BLOCK, g.size)), 0.0
    with np.errstate(over="ignore"):
        for start in range(0, g.size, BLOCK):
            part = block[: min(BLOCK, g.size - start)]
            part[...] = flat[start : start + BLOCK]
            part *= part
            total += float(part.sum())
    return total


RANGES = {
    "lr": ("at least 0", lambda x: 0 <= x < math.inf),
    "weight_decay": ("at least 0", lambda x: 0 <= x < math.inf),
    "eps": ("above 0", lambda x: 0 < x < math.inf),
    **dict.fromkeys(("momentum", "alpha", "rho", "beta1", "beta2"), ("in [0, 1)", lambda x: 0 <= x < 1)),
}


@dataclass_transform(frozen_default=True)
def _config(cls: type[T]) -> type[T]:
    """A frozen dataclass whose fields are held to RANGES."""

    def check(self: Any) -> None:
        # Python floats: one np.float64 among the fields would make float32 blocks float64.
        for field in fields(self):
            object.__setattr__(self, field.name, _in_range(self, field.name, getattr(self, field.name)))

    cls.__post_init__ = check  # type: ignore[attr-defined]
    return dataclass(frozen=True)(cls)


def _in_range(self: Any, name: str, value: Any) -> float:
    span, inside = RANGES[name]
    try:
        number = float(value)
    except (TypeError, ValueError):
        raise TypeError(f"{type(self).__name__}: {name} is {value!r}; it must be a number, {span}") from None
    if not inside(number):
        raise ValueError(f"{type(self).__name__}: {name} is {value}; it must be {span}")
    return number


def _check_arrays(self: Any, what: str, arrays: dict[str, Array]) -> None:
    for name, array in arrays.items():
        who = f"{type(self).__name__}: {what} {name!r}"
        if array.dtype not in (np.float32, np.float64):
            raise TypeError(f"{who} is {array.dtype}; it must be float32 or float64")
        if not array.flags.c_contiguous:
            raise ValueError(f"{who} is not C-contiguous, so it cannot be changed in place; use np.ascontiguousarray")
        if not array.flags.writeable:
            raise ValueError(f"{who} is read-only, so it cannot be changed in place; use a copy")


def _arrays(self: Any, params: tree.Tree, grads: tree.Tree, slots: Slots) -> list[tuple[Array, Array, list[Array]]]:
    """-> (parameter, gradient, its slots) of every leaf, after every check."""
    who, expected = type(self).__name__, {"step", *self.state.slots}
    if set(slots) != expected:
        raise ValueError(f"{who}: slots are {sorted(slots)}; they must be {sorted(expected)}, as init makes them")
    flat = tree.flatten(tree.trainable(params))
    gradients = tree.flatten(tree.trainable(grads))
    kept = {slot: tree.flatten(slots[slot]) for slot in self.state.slots}
    _check_arrays(self, "parameter", flat)
    _check_same(who, "gradient", gradients, flat)
    for slot, arrays in kept.items():
        _check_same(who, f"slot {slot!r}", arrays, flat)
        _check_arrays(self, f"slot {slot!r} of", arrays)
    return [(p, gradients[name], [arrays[name] for arrays in kept.values()]) for name, p in flat.items()]


def _check_same(who: str, what: str, arrays: dict[str, Array], params: dict[str, Array]) -> None:
    for name in [*params, *arrays]:
        if name not in arrays:
            raise ValueError(f"{who}: parameter {name!r} has no {what}")
        if name not in params:
            raise ValueError(f"{who}: there is a {what} of {name!r}, and no parameter of that name")
        p, array = params[name], arrays[name]
        if array.shape != p.shape:
            raise ValueError(f"{who}: the {what} of {name!r} has shape {array.shape}; the parameter has {p.shape}")
        if array.dtype != p.dtype:
            raise TypeError(f"{who}: the {what} of {name!r} is {array.dtype}; the parameter is {p.dtype}")


def _average_square(average: Array, x: Array, s: Array, decay: float) -> None:
    """average <- decay average + (1 - decay) x²."""
    average *= decay
    np.multiply(x, x, out=s)
    s *= 1 - decay
    average += s


def _subtract_scaled(p: Array, x: Array, squares: Array, s: Array, lr: float, eps: float) -> None:
    """p <- p - lr x / (sqrt(squares) + eps)."""
    np.sqrt(squares, out=s)
    s += eps
    np.divide(x, s, out=s)
    s *= lr
    p -= s


@_config
class SGD:
    """p <- p - lr g  (stochastic gradient descent)."""

    lr: float = 1e-3
    weight_decay: float = 0.0

    state: ClassVar = State()
    init, update, plan = _init, _update, _plan

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        p -= np.multiply(g, lr, out=scratch[0])


@_config
class Momentum:
    """velocity <- momentum velocity + g;  p <- p - lr velocity  (Polyak 1964)."""

    lr: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.0

    state: ClassVar = State(("velocity",))
    init, update, plan = _init, _update, _plan

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (velocity,) = slots
        velocity *= self.momentum
        velocity += g
        p -= np.multiply(velocity, lr, out=scratch[0])


@_config
class Nesterov:
    """velocity <- momentum velocity + g;  p <- p - lr (g + momentum velocity)  (Sutskever et al. 2013)."""

    lr: float = 1e-3
    momentum: float = 0.9
    weight_decay: float = 0.0

    state: ClassVar = State(("velocity",))
    init, update, plan = _init, _update, _plan

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (velocity,), s = slots, scratch[0]
        velocity *= self.momentum
        velocity += g
        np.multiply(velocity, self.momentum, out=s)
        s += g
        s *= lr
        p -= s


@_config
class AdaGrad:
    """squares <- squares + g²;  p <- p - lr g / (sqrt(squares) + eps)  (Duchi et al. 2011)."""

    lr: float = 1e-2
    eps: float = 1e-10
    weight_decay: float = 0.0

    state: ClassVar = State(("squares",))
    init, update, plan = _init, _update, _plan

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (squares,), s = slots, scratch[0]
        squares += np.multiply(g, g, out=s)
        _subtract_scaled(p, g, squares, s, lr, self.eps)


@_config
class RMSprop:
    """squares <- alpha squares + (1 - alpha) g²;  p <- p - lr g / (sqrt(squares) + eps)  (Tieleman and Hinton 2012)."""

    lr: float = 1e-2
    alpha: float = 0.99
    eps: float = 1e-8
    weight_decay: float = 0.0

    state: ClassVar = State(("squares",))
    init, update, plan = _init, _update, _plan

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (squares,), s = slots, scratch[0]
        _average_square(squares, g, s, self.alpha)
        _subtract_scaled(p, g, squares, s, lr, self.eps)


@_config
class AdaDelta:
    """d = g sqrt(changes + eps) / sqrt(squares + eps);  p <- p - lr d  (Zeiler 2012).

    squares <- rho squares + (1 - rho) g² before d, changes <- rho changes + (1 - rho) d² after it.
    """

    lr: float = 1.0
    rho: float = 0.9
    eps: float = 1e-6
    weight_decay: float = 0.0

    state: ClassVar = State(("squares", "changes"), scratch=2)
    init, update, plan = _init, _update, _plan

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        squares, changes = slots
        d, s = scratch[:2]
        _average_square(squares, g, s, self.rho)
        np.add(changes, self.eps, out=d)
        d /= np.add(squares, self.eps, out=s)
        np.sqrt(d, out=d)
        d *= g
        _average_square(changes, d, s, self.rho)
        d *= lr
        p -= d


@_config
class Adam:
    """p <- p - lr (m / c1) / (sqrt(v / c2) + eps)  (Kingma and Ba 2015).

    m <- beta1 m + (1 - beta1) g;  v <- beta2 v + (1 - beta2) g²;  c1 = 1 - beta1^step and c2 = 1 - beta2^step take away
    what the zeros at the start pull m and v towards. With weight_decay, this is Adam with L2, and not AdamW.
    """

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 0.0

    state: ClassVar = State(("m", "v"))
    init, update, plan = _init, _update, _plan

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        (m, v), s = slots, scratch[0]
        m *= self.beta1
        m += np.multiply(g, 1 - self.beta1, out=s)
        _average_square(v, g, s, self.beta2)
        # With c = sqrt(c2): lr (m / c1) / (sqrt(v) / c + eps) = (lr c / c1) m / (sqrt(v) + c eps), one pass less.
        c = math.sqrt(1 - self.beta2**step)
        _subtract_scaled(p, m, v, s, lr * c / (1 - self.beta1**step), c * self.eps)


@_config
class AdamW:
    """p <- (1 - lr weight_decay) p, then as Adam  (Loshchilov and Hutter 2019)."""

    lr: float = 1e-3
    beta1: float = 0.9
    beta2: float = 0.999
    eps: float = 1e-8
    weight_decay: float = 1e-2

    state: ClassVar = State(("m", "v"), decoupled=True)
    init, update, plan = _init, _update, _plan
    rule = Adam.rule
