"""Optimizers whose slots are small: Adam with slots in bytes, and Adafactor, whose second moment is rows and columns."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from dlcourse.optim.base import BLOCK_NUMBERS, Array, Needs, Optimizer, OptimizerPlan, SlotShapes
from dlcourse.optim.rules import Adam

SCALED = 256  # numbers that share one scale
BYTE, FLOAT32 = np.dtype(np.uint8), np.dtype(np.float32)
LEAST = 2.0**-30  # of the scale: what stands below it is a code's smallest number, and not 0, since Adam divides by v
LEAST_BITS = np.float32(LEAST).view(np.int32)
LOW = 2.0**-96  # times it, numbers from LEAST to 1 have the exponents 1 to 31 of float32: 5 bits, and none is subnormal


class ByteFloat:
    """A number as a byte: 5 bits of its float32's exponent, and as many of the mantissa as are left, after a division by the
    largest of its 256 neighbours; 0 is 0.

    So the relative step is about the same for large numbers and small ones: a logarithmic code, in whole steps of
    1 / 2**mantissa between two powers of two. A linear code would make 0 of most second moments, and Adam divides by their
    roots (Dettmers et al. 2022, "8-bit optimizers via block-wise quantization", have another code that keeps small numbers
    apart). A signed code has the sign in the byte's highest bit, as a float has it.
    """

    def __init__(self, mantissa: int, *, signed: bool) -> None:
        self.signed, self.top = signed, 31 << mantissa  # the code of 1.0
        self.shift = 23 - mantissa  # float32 has 23 bits of mantissa

    def decode(self, codes: Array, scales: Array, x: Array) -> None:
        """codes (n,), scales (rows,) -> x (rows, 256): n numbers, and zeros behind them."""
        bits = x.view(np.int32).reshape(-1)
        bits[codes.size :] = 0
        bits = bits[: codes.size]
        bits[...] = codes.view(np.int8) if self.signed else codes
        bits <<= self.shift
        if self.signed:
            bits &= ~0x70000000  # a negative byte has its sign in all bits above it
        x *= 1 / LOW
        x *= scales[:, None]

    def encode(self, x: Array, codes: Array, scales: Array, dither: Array, masks: Array) -> None:
        """x (rows, 256), which is overwritten -> codes (n,), scales (rows,).

        The bits below the last kept one round up with the chance that they are a part of it, if `dither` (int32) is
        spread over [0, 2**23), which is overwritten: so an average that moves by less than a step of the code in each update
        still moves. masks: room for (2, rows, 256) booleans.
        """
        negative, some = masks
        np.not_equal(x, 0, out=some)
        if self.signed:
            np.less(x, 0, out=negative)
            np.abs(x, out=x)
        np.max(x, axis=1, out=scales)
        x /= np.maximum(scales, np.finfo(np.float32).tiny)[:, None]
        bits = x.view(np.int32)
        np.maximum(bits, LEAST_BITS, out=bits)  # as of the floats, which are not negative, and four times as fast
        x *= LOW
        dither >>= 23 - self.shift
        bits += dither
        bits >>= self.shift
        codes[...] = bits.reshape(-1)[: codes.size]
        # Arithmetic on bytes is many times as fast as a masked operation on floats.
        codes *= some.view(np.uint8).reshape(-1)[: codes.size]
        if self.signed:
            sign = negative.view(np.uint8).reshape(-1)[: codes.size]
            sign <<= 7
            codes |= sign


M_CODE, V_CODE = ByteFloat(2, signed=True), ByteFloat(3, signed=False)


def spread_evenly(size: int) -> Array:
    """Multiples of the golden ratio modulo 1, as int32 in [0, 2**23): any run of them fills the range evenly."""
    multiples = np.arange(size, dtype=np.uint32)
    multiples *= np.uint32(0x9E3779B1)
    multiples >>= 9
    return multiples.view(np.int32).reshape(-1, SCALED)


@dataclass(frozen=True)
class Adam8bit(Adam):
    """Adam, each moment as one byte a number and one float32 for each 256: 2.03 bytes a parameter, where Adam has 8.

    The moments of a block become float32 for its update, and bytes again after it.
    """

    needs = Needs(("m", "m_scale", "v", "v_scale"))

    def slot_shapes(self, shape: tuple[int, ...], dtype: Any) -> SlotShapes:
        scales = (-(-math.prod(shape) // SCALED),), FLOAT32
        return {"m": (shape, BYTE), "m_scale": scales, "v": (shape, BYTE), "v_scale": scales}

    def plan(self, dtype: Any = np.float32) -> OptimizerPlan:
        own = BLOCK_NUMBERS * (4 * FLOAT32.itemsize + 2)  # m, v; the spread, the dither; masks
        own += 8192 * FLOAT32.itemsize  # NumPy's own buffer, if rows are divided by their scales
        return OptimizerPlan(0, super().plan(dtype).workspace + own)

    def _update_leaf(self, p: Array, g: Array, slots: list[Array], lr: float, step: int) -> None:
        m, m_scale, v, v_scale = (slot.reshape(-1) for slot in slots)
        moments = np.empty((2, BLOCK_NUMBERS // SCALED, SCALED), np.float32)
        masks = np.empty(moments.shape, bool)
        spread = spread_evenly(BLOCK_NUMBERS)
        dither = np.empty_like(spread)
        for block, p_block, g_block, scratch in self._blocks(p, g, lr):
            rows = slice(block.start // SCALED, -(-block.stop // SCALED))
            size = rows.stop - rows.start
            packed = [
                (M_CODE, m[block], m_scale[rows], moments[0, :size]),
                (V_CODE, v[block], v_scale[rows], moments[1, :size]),
            ]
            for code, codes, scales, x in packed:
                code.decode(codes, scales, x)
            flat = [x.reshape(-1)[: p_block.size] for *_, x in packed]
            self.rule(p_block, g_block, flat, scratch, lr, step)
            for code, codes, scales, x in packed:
                np.add(spread, (step + rows.start) * 0x61C88647 % 2**23, out=dither)
                dither &= 2**23 - 1
                code.encode(x, codes, scales, dither[:size], masks[:, :size])


@dataclass(frozen=True)
class Adafactor(Optimizer):
    """Adam's second moment as the product of its rows' means and its columns', no first moment  (Shazeer and Stern 2018).

    rows <- decay rows + (1 - decay) mean(g², last axis), columns the same over the axis before; squares = rows columns /
    mean(rows); u = g / sqrt(squares);  p <- p - scale u / max(1, rms(u) / clip),  scale = max(1e-3, rms(p)) min(lr, 1 /
    sqrt(step)), decay = 1 - step**-0.8. A vector has one square for each number, in `rows`. With weight decay p shrinks
    as in AdamW. Of an array with more than two axes the last two are the matrix.
    """

    lr: float = 1e-2
    weight_decay: float = 0.0
    needs = Needs(("rows", "columns"), scratch=2, decoupled=True)
    clip = 1.0
    least = float(np.finfo(np.float32).eps)

    def slot_shapes(self, shape: tuple[int, ...], dtype: Any) -> SlotShapes:
        columns = (*shape[:-2], shape[-1]) if len(shape) > 1 else (0,)
        return {
            "rows": (shape[:-1] if len(shape) > 1 else shape, np.dtype(dtype)),
            "columns": (columns, np.dtype(dtype)),
        }

    def _update_leaf(self, p: Array, g: Array, slots: list[Array], lr: float, step: int) -> None:
        height, width = p.shape[-2:] if p.ndim > 1 else (p.size, 1)  # a vector is a matrix of one column
        matrices = p.reshape(-1, height, width)
        rows, columns = slots[0].reshape(-1, height), slots[1].reshape(-1, width)
        scratch = np.empty((max(1, BLOCK_NUMBERS // width), width), p.dtype)
        gradients = g.reshape(-1) if isinstance(g, np.ndarray) and g.flags.c_contiguous else g.flat
        decay, p_square, u_square = 1 - step**-0.8, 0.0, 0.0
        if self.weight_decay:
            matrices *= 1 - lr * self.weight_decay

        def blocks() -> Iterator[tuple[int, slice, Array]]:
            for i in range(len(matrices)):
                for start in range(0, height, len(scratch)):
                    part = slice(start, min(start + len(scratch), height))
                    yield i, part, scratch[: part.stop - start]

        def gradient(i: int, part: slice) -> Array:
            first = i * height
            return gradients[(first + part.start) * width : (first + part.stop) * width].reshape(-1, width)

        def change(i: int, part: slice, s: Array) -> Array:
            """g / sqrt(squares), in s."""
            s[...] = rows[i, part, None]
            if columns.size:
                s *= columns[i] / max(float(rows[i].mean()), self.least)
            np.sqrt(np.maximum(s, self.least**2, out=s), out=s)
            return np.divide(gradient(i, part), s, out=s)

        columns *= decay
        for i, part, s in blocks():
            np.square(gradient(i, part), out=s)
            rows[i, part] = decay * rows[i, part] + (1 - decay) * s.mean(axis=1)
            if columns.size:
                columns[i] += (1 - decay) / height * s.sum(axis=0)
            p_square += float(np.vdot(matrices[i, part], matrices[i, part]))
        for block in blocks():
            u = change(*block)
            u_square += float(np.vdot(u, u))
        scale = max(1e-3, math.sqrt(p_square / p.size)) * min(lr, step**-0.5)
        scale /= max(1.0, math.sqrt(u_square / p.size) / self.clip)
        for i, part, s in blocks():
            u = change(i, part, s)
            u *= scale
            matrices[i, part] -= u
