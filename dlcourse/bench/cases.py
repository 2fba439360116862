"""What is measured: the same work for every side."""

from dataclasses import dataclass

SIDES = ("dlcourse", "textbook", "torch", "torch channels last")


@dataclass(frozen=True)
class Case:
    """One row of the table. `work` is "step" (forward, backward, update with Adam) or "inference"."""

    work: str
    network: str
    batch: int

    @property
    def in_shape(self) -> tuple[int, int, int]:
        return (32, 32, 3) if self.network == "cifar_cnn" else (8, 8, 1)

    def __str__(self) -> str:
        return f"{self.work} {self.network} {self.batch}"


CASES = tuple(
    Case(work, network, batch)
    for work in ("step", "inference")
    for network, batches in (("cifar_cnn", (1, 10, 100, 500)), ("mlp", (100,)))
    for batch in batches
)
