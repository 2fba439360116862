"""The training of the story, small: what it holds with its state in objects, and with each of the fixes.

Notebook 13 runs it in processes of its own. Pictures of 16 × 16; four workers with four pictures each, one after the
other; what they keep they keep together, until their gradients are added. The arithmetic is the same in every way.
"""

import contextlib
import copy
import tracemalloc
import zlib
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from dlcourse import datasets
from dlcourse.inputs import as_input
from dlcourse.losses import softmax_cross_entropy
from dlcourse.memory import isolated, resident_now, traced_peak
from dlcourse.workers import one_blas_thread

KINDS = ("conv", "relu", "pool", "conv", "relu", "pool", "affine", "relu", "affine")
SIZES = {0: (27, 8), 3: (72, 8), 6: (128, 96), 8: (96, 10)}  # place of a layer -> shape of its W
WORKERS, BATCH, LR = 4, 4, 0.05


@dataclass(frozen=True)
class Way:
    """What a program keeps. The default is the story's, each change of it a fix."""

    objects: bool = True  # a layer is a record of all its state, and each loss holds the records that made it
    process: bool = False  # each step in a process of its own ...
    numbers: bool = False  # ... that hands back parameters and losses alone, not its state
    columns: bool = True  # a convolution keeps its columns for backward; if not, its input
    copies: bool = True  # floats of the whole set, shuffled floats, a copy of the parameters for each worker
    dtype: str = "float64"


@dataclass(frozen=True)
class Layer:
    """The record: its configuration, parameters, what forward made, what backward made."""

    kind: str
    W: Any = None
    b: Any = None
    x: Any = None
    y: Any = None
    kept: Any = None
    dx: Any = None
    dW: Any = None
    db: Any = None


@dataclass(frozen=True)
class Loss:
    value: float
    right: int  # pictures
    network: tuple[Layer, ...] = ()  # the graph: the records that made this loss


def columns(x: np.ndarray) -> np.ndarray:
    """x (N, H, W, C) -> what a convolution of 3 × 3 with a padding of 1 multiplies by its W (9 C, F)."""
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1), (0, 0)))
    windows = np.lib.stride_tricks.sliding_window_view(padded, (3, 3), axis=(1, 2))
    return windows.reshape(-1, 9 * x.shape[3])  # a copy, 9 × x


def apply(kind: str, x: np.ndarray, W: Any, b: Any) -> tuple[np.ndarray, np.ndarray]:
    """-> the output, and what backward needs."""
    if kind == "conv":
        made = columns(x)
        return (made @ W + b).reshape(*x.shape[:3], -1), made
    if kind == "affine":
        return x.reshape(len(x), -1) @ W + b, x
    if kind == "relu":
        return np.maximum(x, 0), x
    return x.reshape(len(x), x.shape[1] // 2, 2, -1, 2, x.shape[3]).max((2, 4)), x


def gradient(kind: str, kept: np.ndarray, W: Any, dy: np.ndarray) -> tuple[np.ndarray, Any, Any]:
    """-> dx, dW, db; 0 for both in a layer without parameters."""
    if kind == "relu":
        return dy * (kept > 0), 0, 0
    if kind == "pool":
        squares = kept.reshape(*dy.shape[:2], 2, -1, 2, dy.shape[3])
        largest = squares == squares.max((2, 4), keepdims=True)
        return (largest * dy[:, :, None, :, None]).reshape(kept.shape), 0, 0
    flat = dy.reshape(-1, W.shape[1])
    if kind == "affine":
        return (flat @ W.T).reshape(kept.shape), kept.reshape(len(kept), -1).T @ flat, flat.sum(0)
    made = kept if kept.ndim == 2 else columns(kept)  # kept, or made again
    n, h, w, _ = dy.shape
    windows = (flat @ W.T).reshape(n, h, w, -1, 3, 3)
    dx = np.zeros((n, h + 2, w + 2, windows.shape[3]), dy.dtype)
    for i, j in np.ndindex(3, 3):
        dx[:, i : i + h, j : j + w] += windows[..., i, j]
    return dx[:, 1:-1, 1:-1], made.T @ flat, flat.sum(0)


def objects_step(network: tuple[Layer, ...], parts: list, way: Way) -> tuple[tuple[Layer, ...], list[Loss]]:
    """The network, four parts -> the new network, four losses. Records that are replaced whole, layer by layer, and losses that hold them."""
    losses = []
    for x, labels in parts:
        layers = list(copy.deepcopy(network))  # the worker's own
        for at, layer in enumerate(layers):
            y, kept = apply(layer.kind, x, layer.W, layer.b)
            layers[at], x = replace(layer, x=x, y=y, kept=kept), y
        loss, dy = softmax_cross_entropy(x, labels, total=WORKERS * BATCH)
        for at, layer in reversed(list(enumerate(layers))):
            dx, dW, db = gradient(layer.kind, layer.kept, layer.W, dy)
            layers[at], dy = replace(layer, dx=dx, dW=dW, db=db), dx
        losses.append(Loss(loss, int((x.argmax(1) == labels).sum()), tuple(layers)))
    sums = {at: [sum(getattr(loss.network[at], d) for loss in losses) for d in ("dW", "db")] for at in SIZES}
    return downhill(network, sums), [loss if not way.numbers else replace(loss, network=()) for loss in losses]


def apart_step(network: tuple[Layer, ...], parts: list, way: Way) -> tuple[tuple[Layer, ...], list[Loss]]:
    """State taken apart: what forward saves is a list that empties in backward, and a loss is two numbers."""
    losses, sums = [], {at: [0, 0] for at in SIZES}
    copies = [copy.deepcopy(network) if way.copies else network for _ in parts]
    for layers, (x, labels) in zip(copies, parts, strict=True):
        saved: list[Any] = []
        for layer in layers:
            y, kept = apply(layer.kind, x, layer.W, layer.b)
            saved.append(kept if way.columns or layer.kind != "conv" else x)
            x = kept = y
        loss, dy = softmax_cross_entropy(x, labels, total=WORKERS * BATCH)
        for at, layer in reversed(list(enumerate(layers))):
            dy, dW, db = gradient(layer.kind, saved.pop(), layer.W, dy)
            if at in SIZES:
                sums[at] = [sums[at][0] + dW, sums[at][1] + db]
        losses.append(Loss(loss, int((x.argmax(1) == labels).sum())))
    return downhill(network, sums), losses


def downhill(network: tuple[Layer, ...], sums: dict[int, list]) -> tuple[Layer, ...]:
    new = list(network)
    for at, (dW, db) in sums.items():
        new[at] = replace(new[at], W=new[at].W - LR * dW, b=new[at].b - LR * db)
    return tuple(new)


def train(way: Way, moments: list, steps: int = 48, samples: int = 640) -> None:
    """Appends to `moments` after each step. samples: a multiple of 16. Raises MemoryError where there is none left."""
    start, rng = resident_now().total, np.random.default_rng(0)
    drawn: Any = datasets.shapes(samples, 1).train
    data, labels, drawn = drawn.x[:, ::2, ::2].copy(), drawn.y, None
    layers = [Layer(kind) for kind in KINDS]
    for at, (into, out) in SIZES.items():
        W = (rng.standard_normal((into, out)) * (2 / into) ** 0.5).astype(way.dtype)
        layers[at] = replace(layers[at], W=W, b=np.zeros(out, way.dtype))
    history: list[Loss] = []
    network, step = tuple(layers), objects_step if way.objects else apart_step
    data = as_input(data, way.dtype) if way.copies else data
    batches = (parts for _ in range(steps) for parts in epoch(way, data, labels, rng.permutation(samples)))
    now = held()
    for _ in range(steps):
        np.empty(2**23, np.uint8)  # more than a step takes: the wall is met here, not by a request of some bytes
        with traced_peak(collect=False) as traced, one_blas_thread():
            arguments = network, next(batches), way
            network, losses = isolated(step, *arguments).value if way.process else step(*arguments)
            del arguments
        history += losses
        seen = {"loss": sum(one.value for one in losses), "right": sum(one.right for one in losses)}
        bits = zlib.crc32(b"".join(layer.W.tobytes() + layer.b.tobytes() for layer in network if layer.W is not None))
        moments.append(
            seen
            | {
                "bits": bits,
                "peak": now + traced.peak,
                "held": (now := held()),
                "resident": resident_now().total - start,
            }
        )


def watched(way: Way, steps: int = 48, samples: int = 640) -> list[dict]:
    """-> what was seen after each step, fewer than `steps` if memory ran out."""
    moments: list = []
    with contextlib.suppress(MemoryError):
        train(way, moments, steps, samples)
    return moments


def epoch(way: Way, data: np.ndarray, labels: np.ndarray, order: np.ndarray) -> Iterator[list]:
    """-> for each step the pictures and labels of the four workers."""
    shuffled = data[order] if way.copies else None
    for first in range(0, len(data), WORKERS * BATCH):
        rows = [slice(first + BATCH * worker, first + BATCH * (worker + 1)) for worker in range(WORKERS)]
        xs = (as_input(data[order[part]], way.dtype) if shuffled is None else shuffled[part] for part in rows)
        yield list(zip(xs, (labels[order[part]] for part in rows), strict=True))


def held() -> int:
    """Bytes of arrays that are alive. One out of another process lies in a buffer of Python's, of a page or more."""
    traces = tracemalloc.take_snapshot().traces
    return sum(t.size for t in traces if t.domain == np.lib.tracemalloc_domain or t.size >= 4096)
