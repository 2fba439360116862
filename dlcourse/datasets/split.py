"""What every data set of the course is: a part to train on and a part to test on."""

from dataclasses import dataclass

import numpy as np

from ..units import binary


@dataclass(frozen=True, eq=False, repr=False)
class Split:
    """Samples and their labels.

    x           (N, ...) array, images uint8 (N, H, W, C); it may be a memory map of a file
    y           (N,) int64, each from 0 to len(class_names) - 1
    class_names what label 0, 1, ... is called; empty where the labels are not classes

    Raises TypeError if x or y is no array, if y is no numbers, or no integers although they have names; ValueError if
    x and y differ in length, or a label has no name. Copies nothing.
    """

    x: np.ndarray
    y: np.ndarray
    class_names: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name, array in (("x", self.x), ("y", self.y)):
            if not isinstance(array, np.ndarray):
                raise TypeError(f"{name} must be a NumPy array, got {type(array).__name__}; np.array({name}) makes one")
        if self.y.dtype.kind not in ("iu" if self.class_names else "biuf"):
            raise TypeError(
                f"y is {self.y.dtype}; labels must be numbers, those of classes integers: "
                "class_names, y = np.unique(labels, return_inverse=True)"
            )
        if self.x.ndim == 0 or self.y.ndim == 0 or len(self.x) != len(self.y):
            raise ValueError(f"x {self.x.shape} and y {self.y.shape} must have the same number of samples")
        if self.class_names and len(self.y):
            low, high = self.y.min(), self.y.max()
            if low < 0 or high >= len(self.class_names):
                wrong = low if low < 0 else high
                raise ValueError(f"label {wrong} has no class: labels go from 0 to {len(self.class_names) - 1}")

    def __len__(self) -> int:
        return len(self.y)

    def __repr__(self) -> str:
        where = "on disk" if getattr(self.x, "filename", None) else "in memory"
        return (
            f"Split(x {self.x.dtype} {self.x.shape} {binary(self.x.nbytes)} {where}, "
            f"y {self.y.dtype} {self.y.shape}, {len(self.class_names)} classes)"
        )


@dataclass(frozen=True, eq=False)
class Dataset:
    """A split to learn from and one that is only looked at to measure."""

    train: Split
    test: Split
