"""What is measured: the same work for every side."""

from dataclasses import dataclass
from typing import Any

from dlcourse import layers as L

SIDES = ("dlcourse", "textbook", "torch", "torch channels last")

# The layers of cifar_cnn, each alone: (layer, the shape of one input). PyTorch's side has the same names.
LAYERS: dict[str, tuple[Any, tuple[int, ...]]] = {
    "conv2d 3 to 32": (L.Conv2D(32, 3, padding=1), (32, 32, 3)),
    "conv2d 32 to 32": (L.Conv2D(32, 3, padding=1), (32, 32, 32)),
    "conv2d 32 to 64": (L.Conv2D(64, 3, padding=1), (16, 16, 32)),
    "conv2d 64 to 64": (L.Conv2D(64, 3, padding=1), (16, 16, 64)),
    "relu": (L.ReLU(), (32, 32, 32)),
    "max pooling": (L.MaxPool2D(2), (32, 32, 32)),
    "dropout": (L.Dropout(0.25), (16, 16, 32)),
    "batch norm": (L.BatchNorm(), (32, 32, 32)),
    "affine 4096 to 512": (L.Affine(512), (4096,)),
}


@dataclass(frozen=True)
class Case:
    """One row of the table. `work` is "step" (forward, backward, update with Adam), "inference", "layer" (forward and
    backward of one layer alone) or "epoch" (50,000 images in batches of `batch`). `network` is a network or a layer."""

    work: str
    network: str
    batch: int

    @property
    def in_shape(self) -> tuple[int, ...]:
        if self.work == "layer":
            return LAYERS[self.network][1]
        return (32, 32, 3) if self.network == "cifar_cnn" else (8, 8, 1)

    @property
    def sides(self) -> tuple[str, ...]:
        """Who can do it: the textbook way differs in its convolution, so of other layers alone it has none."""
        plain = self.work == "layer" and not isinstance(LAYERS[self.network][0], L.Conv2D)
        return tuple(side for side in SIDES if not (plain and side == "textbook"))

    def __str__(self) -> str:
        return f"{self.work} {self.network} {self.batch}"


EPOCH_IMAGES = 50_000

CASES = (
    *(
        Case(work, network, batch)
        for work in ("step", "inference")
        for network, batches in (("cifar_cnn", (1, 10, 100, 500)), ("mlp", (100,)))
        for batch in batches
    ),
    *(Case("layer", name, 100) for name in LAYERS),
    Case("epoch", "cifar_cnn", 100),
)
