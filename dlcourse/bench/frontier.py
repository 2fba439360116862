"""The frontier: what a training step of cifar_cnn costs in bytes and in seconds under each technique that saves bytes, and
what each does to the accuracy of a small network. `dlcourse bench frontier --accuracy --json` made `frontier.json`."""

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field, replace
from statistics import fmean
from typing import Any

import numpy as np

from dlcourse import datasets, losses, memory, models, optim, tree
from dlcourse import layers as L
from dlcourse.gradients import Batch
from dlcourse.memory.tables import Table
from dlcourse.model import Sequential
from dlcourse.train import evaluate, fit, train_step
from dlcourse.units import binary

BATCH, IN_SHAPE = 100, (32, 32, 3)
STRIP = 72 * 1024  # columns of two rows of the widest convolution
EPOCHS, SEEDS = 20, 5


@dataclass(frozen=True)
class Technique:
    """A way to run the same step: how the batch is cut, the optimizer, whether large gradients stay factors, and what each
    layer becomes."""

    name: str
    micro_batch: int = BATCH
    optimizer: Any = field(default_factory=optim.Adam)
    factored: bool = False
    bits: bool = False  # ReLU and Dropout keep a bit an element
    halves: bool = False  # convolutions keep half of each float
    strip: int | None = None
    recompute: int = 0  # so many layers of the convolutional part in one block
    trained: bool = False  # its accuracy is measured; the others' numbers are those of one of these but for rounding

    def of(self, model: Sequential) -> Sequential:
        """The model with its layers changed."""
        layers = [self._changed(layer) for layer in model.layers]
        if not self.recompute:
            return Sequential(layers)
        images = next(i for i, layer in enumerate(layers) if isinstance(layer, L.Flatten))
        starts = range(0, images, self.recompute)
        blocks = [L.Recompute(tuple(layers[start : min(start + self.recompute, images)])) for start in starts]
        return Sequential([*blocks, *layers[images:]])

    def _changed(self, layer: Any) -> Any:
        if isinstance(layer, L.Conv2D) and self.strip:
            layer = replace(layer, strip=self.strip)
        packed = isinstance(layer, L.ReLU | L.Dropout) if self.bits else False
        return L.Packed(layer) if packed or (self.halves and isinstance(layer, L.Conv2D)) else layer

    @property
    def how(self) -> dict[str, Any]:
        return {"micro_batch": self.micro_batch, "factored": self.factored}


SMALL: dict[str, Any] = {"optimizer": optim.Adam8bit(), "factored": True}
LEAST: dict[str, Any] = {"micro_batch": 2, "factored": True, "bits": True, "strip": STRIP}
TECHNIQUES = (
    Technique("plain Adam", trained=True),
    Technique("micro-batches of 25", 25),
    Technique("micro-batches of 4", 4),
    Technique("recompute, blocks of 6 layers", recompute=6),
    Technique("bits", bits=True),
    Technique("bits and halves", bits=True, halves=True, trained=True),
    Technique("columns in strips", strip=STRIP),
    Technique("large gradients as factors", factored=True),
    Technique("8-bit slots", optimizer=optim.Adam8bit(), trained=True),
    Technique("Adafactor", optimizer=optim.Adafactor(), trained=True),
    Technique("8-bit slots, factors, micro-batches of 25", 25, **SMALL),
    Technique("8-bit slots, factors, micro-batches of 4", 4, trained=True, **SMALL),
    Technique("8-bit slots, factors, bits, strips, micro-batches of 2", optimizer=optim.Adam8bit(), **LEAST),
    Technique("Adafactor, factors, bits, strips, micro-batches of 2", optimizer=optim.Adafactor(), **LEAST),
)


@dataclass
class Point:
    """One technique, measured. Bytes are those of a step, parameters and slots included; seconds are the least of the rounds:
    what other programs do at the time only adds.
    accuracy: {data: the mean over the seeds}, empty for one that is not `trained`, or if it was not asked for."""

    name: str
    predicted: int
    measured: int
    seconds: float
    accuracy: dict[str, float]


def floor(model: Sequential, in_shape: tuple[int, ...], batch: int, optimizer: Any) -> int:
    """The bytes that no way to cut the batch goes below, if gradients are added up and then used: parameters, slots, the
    gradients of a whole batch, the large ones as their factors; and of one picture the largest input of a layer beside its
    output.

    cifar_cnn, batch 100, 8-bit slots: parameters 4 P = 8.27 MiB for P = 2,168,362; slots 2 P and 8 bytes for each 256 = 4.20;
    factors of affine_1 4 · 100 (4096 + 512) = 1.76, all other gradients 0.27; two maps of 32 · 32 · 32 = 0.25. In all 14.8 MiB.
    """
    step = memory.bill(model, in_shape, batch_size=batch, micro_batch=1, optimizer=optimizer, factored=True).moments[-1]
    calls = model.calls(in_shape, 1, np.float32)
    widest = max(sum(value.nbytes for value in call.inputs) + call.output.nbytes for call in calls)
    return step.params + step.slots + step.grads + widest


class _Run:
    """A technique at work on cifar_cnn."""

    def __init__(self, technique: Technique) -> None:
        self.technique, rng = technique, np.random.default_rng(0)
        self.model = technique.of(models.cifar_cnn())
        self.params = self.model.init(IN_SHAPE, rng)
        self.slots = technique.optimizer.init(self.params)
        x = rng.integers(0, 256, (BATCH, *IN_SHAPE), dtype=np.uint8)
        self.batch = Batch(x, rng.integers(0, 10, BATCH), np.arange(BATCH), technique.micro_batch)

    def step(self) -> float:
        """-> seconds."""
        how = {"optimizer": self.technique.optimizer, "loss": losses.softmax_cross_entropy}
        started = time.perf_counter()
        train_step(self.model, self.params, self.slots, self.batch, factored=self.technique.factored, **how)
        return time.perf_counter() - started

    def measured(self) -> int:
        """Traced bytes of a step, and those of parameters and slots."""
        self.step()
        with memory.traced_peak() as traced:
            self.step()
        slots = [slot for slot in self.slots.values() if not isinstance(slot, int)]
        return traced.peak + tree.nbytes([self.params, slots])

    def predicted(self) -> int:
        how = {"optimizer": self.technique.optimizer, **self.technique.how}
        return memory.bill(self.model, IN_SHAPE, batch_size=BATCH, **how).peak


def _for_shapes() -> Sequential:
    """A network that learns shapes in seconds an epoch, with one affine layer large enough to stay factors."""
    first = [L.Conv2D(16, 3, stride=2, padding=1), L.ReLU(), L.MaxPool2D(2), L.Conv2D(32, 3, padding=1), L.ReLU()]
    return Sequential([*first, L.MaxPool2D(2), L.Flatten(), L.Affine(512), L.ReLU(), L.Affine(10)])


DATA: dict[str, tuple[Callable[[], Any], Callable[[], Sequential]]] = {
    "digits": (datasets.digits, models.small_cnn),
    "shapes": (lambda: datasets.shapes(2_000, 1_000), _for_shapes),
}


def accuracy(technique: Technique, name: str, *, seeds: int = SEEDS, epochs: int = EPOCHS) -> float:
    """The mean over the seeds of a small network's accuracy on the test pictures of digits (360) or shapes (1,000), after so
    many epochs in batches of 100."""
    (load, network), found = DATA[name], []
    data = load()
    for seed in range(seeds):
        model = technique.of(network())
        params = model.init(data.train.x.shape[1:], np.random.default_rng(seed))
        options = {"optimizer": technique.optimizer, "epochs": epochs, "seed": seed, **technique.how}
        fit(model, params, data.train, batch_size=BATCH, progress=False, **options)
        found.append(evaluate(model, params, data.test).accuracy or 0.0)
    return fmean(found)


def measure(
    techniques: Sequence[Technique] = TECHNIQUES, *, rounds: int, with_accuracy: bool = False
) -> Iterator[Point]:
    """Yield a point for each technique. Seconds are measured in turn, round by round, on one thread."""
    runs = [_Run(technique) for technique in techniques]
    points = [Point(one.technique.name, one.predicted(), one.measured(), 0.0, {}) for one in runs]
    seconds = [[one.step() for one in runs] for _ in range(rounds)]
    for i, point in enumerate(points):
        point.seconds = min((row[i] for row in seconds), default=0.0)
        if with_accuracy and techniques[i].trained:
            point.accuracy = {name: accuracy(techniques[i], name) for name in DATA}
        yield point


def table(points: Sequence[Point]) -> Table:
    """The points as text, seconds as multiples of the first one's too."""
    lines = [["technique", "predicted", "measured", "seconds", "ratio", *points[0].accuracy]]
    for one in points:
        times = [f"{one.seconds:.3f}", f"{one.seconds / points[0].seconds:.2f}"]
        shares = [f"{one.accuracy[name]:.2%}" if one.accuracy else "" for name in points[0].accuracy]
        lines.append([one.name, binary(one.predicted), binary(one.measured), *times, *shares])
    least = floor(models.cifar_cnn(), IN_SHAPE, BATCH, optim.Adam8bit())
    return Table(lines, [f"a step of cifar_cnn, batch {BATCH}; with 8-bit slots no cut goes below {binary(least)}"])


def as_plain(points: Sequence[Point]) -> dict[str, Any]:
    """For JSON."""
    return {"batch": BATCH, "epochs": EPOCHS, "seeds": SEEDS, "points": [asdict(one) for one in points]}
