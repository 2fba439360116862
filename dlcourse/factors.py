"""The gradient of a matrix, kept as the arrays that it is the product of: "sufficient factors" (Xie et al., "Distributed
Machine Learning via Sufficient Factor Broadcasting", 2014; 2016), which send the two over the network in place of dW."""

import math
from dataclasses import dataclass
from typing import Any, Self

import numpy as np


@dataclass(frozen=True)
class Factors:
    """Σ xᵀ dy over `parts`, each x (M, D_in) and dy (M, D_out): a sum of micro-batches' gradients, not multiplied out.

    With few rows and a large matrix that is less: 100 rows of 4096 and 512 numbers are 1.8 MiB, their product is 8 MiB.
    And one product of all rows is quicker than one for each micro-batch and the sums. A leaf of a tree of gradients.
    """

    parts: tuple[tuple[np.ndarray, np.ndarray], ...]

    def __add__(self, other: "Factors") -> "Factors":
        return Factors(self.parts + other.parts)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        """The x and dy of all parts."""
        return tuple(array for part in self.parts for array in part)

    @property
    def shape(self) -> tuple[int, int]:
        """That of the product."""
        return self.parts[0][0].shape[1], self.parts[0][1].shape[1]

    @property
    def dtype(self) -> np.dtype:
        return self.parts[0][1].dtype

    @property
    def size(self) -> int:
        return math.prod(self.shape)

    @property
    def flat(self) -> "FactorBlocks":
        """As of an array: what gives slices of the product laid flat."""
        return FactorBlocks(self)

    def __imul__(self, factor: float) -> Self:
        """The product times `factor`: written over dy."""
        for _, dy in self.parts:
            dy *= factor
        return self

    def is_finite(self) -> bool:
        """Whether the product is. Its numbers are at most |x| |dy| (Cauchy and Schwarz), so it is seldom made, in blocks."""
        squares = [sum(float(np.vdot(part[side], part[side])) for part in self.parts) for side in (0, 1)]
        if math.sqrt(squares[0]) * math.sqrt(squares[1]) < np.finfo(self.dtype).max / 2:
            return True
        blocks, step = self.flat, self.shape[1]
        return all(np.isfinite(blocks[start : start + step]).all() for start in range(0, self.size, step))

    def product(self) -> np.ndarray:
        """-> (D_in, D_out).  Allocates it, and all rows of x and of dy side by side."""
        x, dy = (np.concatenate([part[side] for part in self.parts]) for side in (0, 1))
        return x.T @ dy


class FactorBlocks:
    """The product as one flat array of which a slice is made when it is asked for, in a buffer that the next slice overwrites.

    A slice is cut from whole rows of dW, x[:, rows]ᵀ dy: within rounding those of `product`. Allocates what `block_bytes` says,
    if no slice is larger than the first.
    """

    def __init__(self, factors: Factors) -> None:
        self._xs = [x for x, _ in factors.parts]
        dys = [dy for _, dy in factors.parts]
        self._dy = dys[0] if len(dys) == 1 else np.concatenate(dys)
        (_, self._width), self._size = factors.shape, factors.size
        self._shape, self._room = factors.shape, np.empty((0, self._width), factors.dtype)

    def __getitem__(self, block: slice) -> np.ndarray:
        start, stop, _ = block.indices(self._size)
        rows = slice(start // self._width, -(-stop // self._width))
        cut = [x[:, rows] for x in self._xs]
        x = cut[0] if len(cut) == 1 else np.concatenate(cut)
        if rows.stop - rows.start > len(self._room):
            self._room = np.empty((_rows_of_block(self._shape, stop - start), self._width), self._room.dtype)
        product = np.matmul(x.T, self._dy, out=self._room[: rows.stop - rows.start]).reshape(-1)
        return product[start - rows.start * self._width :][: stop - start]


def _rows_of_block(shape: tuple[int, int], numbers: int) -> int:
    """So many rows of dW hold any slice of so many numbers."""
    return min(shape[0], -(-numbers // shape[1]) + (numbers % shape[1] > 0))


def block_bytes(shape: tuple[int, int], samples: int, parts: int, numbers: int, itemsize: int) -> int:
    """What `FactorBlocks` holds for a dW of `shape`, of so many rows of x and dy in so many parts: rows of the product; and of
    several parts dy side by side, with the columns of x for these rows."""
    rows = _rows_of_block(shape, numbers)
    return (rows * shape[1] + (samples * (shape[1] + rows) if parts > 1 else 0)) * itemsize


def multiply_out(grads: dict[str, Any]) -> None:
    """Put the product in the place of each `Factors` in a tree of dicts, one after the other, so that each one's rows go
    before the next product is made. Allocates each product, and its rows side by side."""
    for key, child in grads.items():
        if isinstance(child, Factors):
            del child
            grads[key] = grads[key].product()
        elif isinstance(child, dict):
            multiply_out(child)
