"""The gradient of a matrix, kept as the arrays that it is the product of: "sufficient factors" (Xie et al., "Distributed
Machine Learning via Sufficient Factor Broadcasting", 2014; 2016), which send the two over the network in place of dW."""

from dataclasses import dataclass
from typing import Any

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

    def product(self) -> np.ndarray:
        """-> (D_in, D_out).  Allocates it, and all rows of x and of dy side by side."""
        x, dy = (np.concatenate([part[side] for part in self.parts]) for side in (0, 1))
        return x.T @ dy


def multiply_out(grads: dict[str, Any]) -> None:
    """Put the product in the place of each `Factors` in a tree of dicts, one after the other, so that each one's rows go
    before the next product is made. Allocates each product, and its rows side by side."""
    for key, child in grads.items():
        if isinstance(child, Factors):
            del child
            grads[key] = grads[key].product()
        elif isinstance(child, dict):
            multiply_out(child)
