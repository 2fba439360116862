"""What all optimizers share: checks, blocks, and clipping."""

import math
from collections.abc import Iterator
from dataclasses import fields
from operator import itemgetter, methodcaller
from typing import Any, ClassVar, NamedTuple

import numpy as np

from dlcourse import tree

BLOCK_NUMBERS = 16_384  # 64 KiB in float32, so that a block of everything stays in the cache

Array = np.ndarray
Slots = dict[str, Any]
SlotShapes = dict[str, tuple[tuple[int, ...], np.dtype]]
FLOATS = (np.float32, np.float64)
IN_PLACE = ", so it cannot be changed in place; use "


class OptimizerPlan(NamedTuple):
    slot_copies: int  # slots take so many times the bytes of the trainable parameters
    workspace: int  # the most bytes alive at one moment of `update` beyond parameters, gradients and slots


class Needs(NamedTuple):
    """What a rule needs beside parameters and gradients."""

    slots: tuple[str, ...] = ()  # their names
    scratch: int = 1  # blocks for intermediate values
    decoupled: bool = False  # weight decay shrinks the parameter and leaves the gradient alone


class Optimizer:
    """The base: a subclass is a frozen dataclass of settings, says what it `needs`, and has a `rule`."""

    lr: float
    weight_decay: float
    needs: ClassVar[Needs] = Needs()
    _scratch_blocks: ClassVar[int]  # no field: it follows from them

    def rule(self, p: Array, g: Array, slots: list[Array], scratch: Array, lr: float, step: int) -> None:
        """Change p and the slots in place by one step; only read g. All are flat blocks of one size, scratch has
        `needs.scratch` rows of it; step is 1, 2, …"""
        raise NotImplementedError

    def __post_init__(self) -> None:
        # Python floats: one np.float64 among the settings would make float32 blocks float64.
        for field in fields(self):  # type: ignore[arg-type]
            object.__setattr__(self, field.name, self._in_range(field.name, getattr(self, field.name)))
        decays = self.weight_decay > 0 and not self.needs.decoupled
        object.__setattr__(self, "_scratch_blocks", self.needs.scratch + decays)

    def init(self, params: tree.Tree) -> Slots:
        """-> {"step": 0, name of a slot: tree of zeros, …}: plain dicts, in the shapes and dtypes of the parameters.

        Allocates the slots. Raises, by the parameter's name, what `update` raises for parameters."""
        params = tree.trainable(params)
        for name, p in tree.items(params):
            self._check("parameter", name, p, p.shape, p.dtype)
        new = {slot: tree.map_leaves(lambda p, slot=slot: self._new_slot(slot, p), params) for slot in self.needs.slots}
        return {"step": 0} | new

    def slot_shapes(self, shape: tuple[int, ...], dtype: Any) -> SlotShapes:
        """The shape and dtype of each slot of a parameter: its own, unless the optimizer has smaller ones."""
        return dict.fromkeys(self.needs.slots, (shape, np.dtype(dtype)))

    def _new_slot(self, slot: str, p: Array) -> Array:
        return np.zeros(*self.slot_shapes(p.shape, p.dtype)[slot])

    def update(self, params: tree.Tree, grads: tree.Tree, slots: Slots, *, lr: float | None = None) -> None:
        """Change params and slots in place by one step; grads stay as they are, arrays or `Factors`.

        lr: the learning rate of this step, if it is not the optimizer's own (a schedule).

        Allocates the workspace that `plan` names, one block more for a gradient that is not contiguous, and for `Factors`
        what `factors.block_bytes` says: their product is never whole.
        Raises, before anything is changed: ValueError if grads or slots differ from params in names or shapes, or if
        a parameter is not C-contiguous (a flat view of it would be a copy) or is read-only; TypeError for a wrong dtype.
        """
        lr = self.lr if lr is None else self._in_range("lr", lr)
        leaves = self._leaves(params, grads, slots)
        step = slots["step"] = int(slots["step"]) + 1
        for p, g, own_slots in leaves:
            self._update_leaf(p, g, own_slots, lr, step)

    def plan(self, dtype: Any = np.float32) -> OptimizerPlan:
        """The copies of the parameters that the slots are, and the bytes of an update, for parameters of `dtype`."""
        return OptimizerPlan(len(self.needs.slots), self._scratch_blocks * BLOCK_NUMBERS * np.dtype(dtype).itemsize)

    def _update_leaf(self, p: Array, g: Array, slots: list[Array], lr: float, step: int) -> None:
        flat_slots = list(map(methodcaller("reshape", -1), slots))  # views
        for block, p_block, g_block, scratch in self._blocks(p, g, lr):
            self.rule(p_block, g_block, list(map(itemgetter(block), flat_slots)), scratch, lr, step)

    def _blocks(self, p: Array, g: Array, lr: float) -> Iterator[tuple[slice, Array, Array, Array]]:
        """(which numbers, those of p, those of the gradient, scratch), with weight decay done, a block at a time."""
        scratch = np.empty((self._scratch_blocks, BLOCK_NUMBERS), p.dtype)
        p = p.reshape(-1)
        flat = (
            g.reshape(-1) if isinstance(g, np.ndarray) and g.flags.c_contiguous else g.flat
        )  # slices of it are copies
        for start in range(0, p.size, BLOCK_NUMBERS):
            block = slice(start, min(start + BLOCK_NUMBERS, p.size))
            spare = scratch[:, : block.stop - start]
            p_block, g_block = p[block], flat[block]
            if self.weight_decay and self.needs.decoupled:
                p_block *= 1.0 - lr * self.weight_decay
            elif self.weight_decay:
                np.multiply(p_block, self.weight_decay, out=spare[-1])
                spare[-1] += g_block
                g_block = spare[-1]
            yield block, p_block, g_block, spare

    def _leaves(self, params: tree.Tree, grads: tree.Tree, slots: Slots) -> list[tuple[Array, Array, list[Array]]]:
        """-> (parameter, gradient, its slots) of every leaf, all of one shape and dtype."""
        who, expected = type(self).__name__, {"step", *self.needs.slots}
        if slots.keys() != expected:
            raise ValueError(f"{who}: slots are {sorted(slots)}; they must be {sorted(expected)}, as init makes them")
        flat = {"parameter": tree.flatten(params, buffers=False), "gradient": tree.flatten(grads, buffers=False)}
        names = flat["parameter"].keys()
        for slot in self.needs.slots:
            flat[slot] = tree.flatten(slots[slot])
        for what, arrays in flat.items():
            if missing := names - arrays.keys():
                raise ValueError(f"{who}: parameter {min(missing)!r} has no {_kind(what)}")
            if extra := arrays.keys() - names:
                raise ValueError(f"{who}: there is a {_kind(what)} of {min(extra)!r}, and no parameter of that name")
        leaves = []
        for name, p in flat["parameter"].items():
            own, found = (p.shape, p.dtype), []
            forms = self.slot_shapes(*own)
            for what, arrays in flat.items():
                array, form = arrays[name], forms.get(what, own)
                fits = (array.shape, array.dtype) == form and p.dtype in FLOATS
                if not (fits and (what == "gradient" or array.flags.carray)):
                    self._check(_kind(what), name, array, *form)
                found.append(array)
            leaves.append((p, found[1], found[2:]))
        return leaves

    def _check(self, what: str, name: str, array: Array, shape: tuple[int, ...], dtype: np.dtype) -> None:
        """Raise if the array cannot be the parameter, its gradient or its slot, of this shape and dtype."""
        who = f"parameter {name!r}" if what == "parameter" else f"the {what} of {name!r}"
        changed, owner = what != "gradient", "the parameter" if what == "gradient" else "as init makes it, it"
        for wrong, error, text in (
            (array.shape != shape, ValueError, f"has shape {array.shape}; {owner} has {shape}"),
            (array.dtype != dtype, TypeError, f"is {array.dtype}; {owner} is {dtype}"),
            (what == "parameter" and dtype not in FLOATS, TypeError, f"is {dtype}; it must be float32 or float64"),
            (
                changed and not array.flags.c_contiguous,
                ValueError,
                f"is not C-contiguous{IN_PLACE}np.ascontiguousarray",
            ),
            (changed and not array.flags.writeable, ValueError, f"is read-only{IN_PLACE}a copy"),
        ):
            if wrong:
                raise error(f"{type(self).__name__}: {who} {text}")

    def _in_range(self, name: str, value: Any) -> float:
        most = math.inf if name in ("lr", "weight_decay", "eps") else 1.0
        span = "above 0" if name == "eps" else "at least 0" if most == math.inf else "in [0, 1)"
        try:
            number = float(value)
        except (TypeError, ValueError):
            raise TypeError(f"{type(self).__name__}: {name} is {value!r}; it must be a number, {span}") from None
        if not 0 <= number < most or (name == "eps" and number == 0):
            raise ValueError(f"{type(self).__name__}: {name} is {value}; it must be {span}")
        return number


def _kind(what: str) -> str:
    return what if what in ("parameter", "gradient") else f"slot {what!r}"


def clip_by_norm(grads: tree.Tree, max_norm: float) -> float:
    """Scale all gradients, in place and by one factor, so that their norm is at most max_norm.  -> the norm before.

    The norm is that of all gradients as one vector, summed in float64 (Pascanu et al. 2013). One that is NaN or infinite
    is returned and changes nothing. Allocates one block in float64. Raises ValueError if max_norm is not above 0.
    """
    if not max_norm > 0:
        raise ValueError(f"max_norm is {max_norm}; it must be above 0")
    leaves, squares = tree.leaves(tree.trainable(grads)), 0.0
    block = np.empty(min(BLOCK_NUMBERS, max((g.size for g in leaves), default=0)))
    with np.errstate(over="ignore"):
        for g in leaves:
            flat, total = g.reshape(-1) if isinstance(g, np.ndarray) and g.flags.c_contiguous else g.flat, 0.0
            for start in range(0, g.size, BLOCK_NUMBERS):
                part = block[: g.size - start]
                part[...] = flat[start : start + BLOCK_NUMBERS]
                part *= part
                total += float(part.sum())
            squares += total
    norm = math.sqrt(squares)
    if max_norm < norm < math.inf:
        for g in leaves:
            g *= float(max_norm) / norm
    return norm
