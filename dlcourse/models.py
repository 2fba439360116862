"""The named networks of the course. Each function returns configuration; `model.init(in_shape, rng)` makes parameters."""

from collections.abc import Callable

from dlcourse import layers as L
from dlcourse.initializers import normal
from dlcourse.model import Sequential


def _classifier(classes: int) -> L.Affine:
    """The last layer, with small weights: all classes begin about equally likely, and the loss at log(classes)."""
    return L.Affine(classes, init_W=normal)


def mlp(hidden: tuple[int, ...] = (128,), classes: int = 10) -> Sequential:
    """Affine and ReLU for each of `hidden`, then Affine `classes`. On digits, (8, 8, 1): 9,610 parameters."""
    inner = [layer for units in hidden for layer in (L.Affine(units), L.ReLU())]
    return Sequential([L.Flatten(), *inner, _classifier(classes)])


def small_cnn(classes: int = 10) -> Sequential:
    """Two convolutions and two affine layers, enough for digits and quick on two cores. At (8, 8, 1): 22,602
    parameters."""
    return Sequential(
        [
            *(L.Conv2D(16, 3, padding=1), L.ReLU(), L.MaxPool2D(2)),
            *(L.Conv2D(32, 3, padding=1), L.ReLU(), L.MaxPool2D(2)),
            *(L.Flatten(), L.Affine(128), L.ReLU(), _classifier(classes)),
        ]
    )


def cifar_cnn(classes: int = 10) -> Sequential:
    """The network of the story. At (32, 32, 3): 2,168,362 parameters, 2,097,664 of them in its first affine layer."""
    return Sequential(
        [
            *(L.Conv2D(32, 3, padding=1), L.ReLU(), L.Conv2D(32, 3, padding=1), L.ReLU()),
            *(L.MaxPool2D(2), L.Dropout(0.25)),
            *(L.Conv2D(64, 3, padding=1), L.ReLU(), L.Conv2D(64, 3, padding=1), L.ReLU()),
            *(L.MaxPool2D(2), L.Dropout(0.25)),
            *(L.Flatten(), L.Affine(512), L.ReLU(), L.Dropout(0.5), _classifier(classes)),
        ]
    )


MODELS: dict[str, Callable[..., Sequential]] = {"mlp": mlp, "small_cnn": small_cnn, "cifar_cnn": cifar_cnn}
