"""Pictures of ten shapes, drawn here: a data set of any size that needs no network."""

import operator
import os
import shutil
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import numpy as np

from dlcourse.units import binary

from .split import Dataset, Split
from .store import data_folder, new_npy, open_npy

CLASS_NAMES = ("circle", "ring", "moon", "square", "triangle", "star", "cross", "heart", "arrow", "flower")
VERSION = 2  # stands in the names of stored files: raise it when a picture changes
SIDE = 32  # pixels of a picture's side
PICTURE_BYTES = SIDE * SIDE * 3
LABEL_BYTES = 16  # bytes of a label, int64, at once: in its block and in the array of all
PICTURES_AT_ONCE = 50  # drawn together, from a generator of their own: 1.5 MiB of working memory
TABLE = 80  # cells of a side of the table of distances of a shape ...
SPAN = 1.5  # ... which reaches from -SPAN to SPAN, for a shape of radius 1

_CELLS = np.arange(TABLE) * (2 * SPAN / (TABLE - 1)) - SPAN
_PIXELS = (np.arange(SIDE) - (SIDE - 1) / 2).astype(np.float32)  # middles of pixels, 0 is the picture's centre


def shapes(
    samples: int = 10_000,
    test_samples: int = 2_000,
    *,
    seed: int = 0,
    on_disk: bool = False,
    folder: str | os.PathLike[str] | None = None,
) -> Dataset:
    """Draw pictures of ten shapes: x uint8 (N, 32, 32, 3), y int64 (N,), class_names "circle" to "flower".

    Place, size, angle, colours, light, noise, what lies behind and what lies across the shape are drawn from `seed`.
    The shape is brighter than most of what is behind it. The same arguments give the same bytes on every machine; the
    first pictures do not depend on how many are asked for; every ten neighbours hold each class once.

    With `on_disk`, or with a `folder`, x is a read-only memory map of a file in that folder (by default the data
    folder of the course), drawn and written a block at a time, and used again when it is there and whole.
    Allocates 3 KiB a picture, on disk nothing, and 1.5 MiB while drawing.
    Raises ValueError for a number of pictures under 1 or a seed that is not from 0 to 2**32 - 1; before anything is
    drawn, MemoryError where the memory that is free does not suffice, and OSError where the disk does not.
    """
    seed, samples, test_samples = map(operator.index, (seed, samples, test_samples))
    if not 0 <= seed < 2**32:
        raise ValueError(f"seed is {seed}; give an integer from 0 to {2**32 - 1}")
    for name, count in (("samples", samples), ("test_samples", test_samples)):
        if count < 1:
            raise ValueError(f"{name} is {count}; give 1 or more")
    where = data_folder(folder) / "shapes" if on_disk or folder is not None else None
    counts = {"train": samples, "test": test_samples}
    files = {name: where / f"v{VERSION}-seed{seed}-{name}-{n}.npy" if where else None for name, n in counts.items()}
    _see_that_it_fits(counts, where, files)
    return Dataset(*(_split(counts[name], seed, part, files[name]) for part, name in enumerate(counts)))


def _see_that_it_fits(counts: dict[str, int], folder: Path | None, files: dict[str, Path | None]) -> None:
    import psutil

    asked = " and ".join(f"{count:,} {name}" for name, count in counts.items())
    memory = sum(counts.values()) * (LABEL_BYTES + (0 if folder else PICTURE_BYTES))
    free = psutil.virtual_memory().available
    if memory > free:
        less = "ask for fewer" if folder else "ask for fewer, or give on_disk=True"
        raise MemoryError(f"{asked} pictures need {binary(memory)} of memory, and {binary(free)} is free; {less}")
    if folder is None:
        return
    sizes = {file: PICTURE_BYTES * counts[name] for name, file in files.items() if file}
    # A file that is there is used again, or replaced by its like.
    disk = sum(size for file, size in sizes.items() if not file.exists() or file.stat().st_size < size)
    free = shutil.disk_usage(next(above for above in (folder, *folder.absolute().parents) if above.is_dir())).free
    if disk > free:
        raise OSError(
            f"{asked} pictures need {binary(disk)} on the disk of {folder}, and {binary(free)} is free; "
            "ask for fewer, or choose another disk with folder=... or the environment variable DLCOURSE_DATA"
        )


def _split(samples: int, seed: int, part: int, file: os.PathLike[str] | None) -> Split:
    starts = range(0, samples, PICTURES_AT_ONCE)
    y = np.concatenate([_labels(_generator(seed, part, start)) for start in starts])[:samples]
    shape = (samples, SIDE, SIDE, 3)
    if file is None:
        x = np.empty(shape, np.uint8)
        for start, pictures in _blocks(samples, seed, part):
            x[start : start + len(pictures)] = pictures
        return Split(x, y, CLASS_NAMES)
    if open_npy(file, shape, np.uint8) is None:
        with new_npy(file, shape, np.uint8) as write:
            for start, pictures in _blocks(samples, seed, part):
                write(start, pictures)
    return Split(np.load(file, mmap_mode="r"), y, CLASS_NAMES)


def _blocks(samples: int, seed: int, part: int) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, samples, PICTURES_AT_ONCE):
        rng = _generator(seed, part, start)
        yield start, _draw(rng, _labels(rng))[: samples - start]


def _generator(seed: int, part: int, start: int) -> np.random.Generator:
    return np.random.Generator(np.random.PCG64([seed, part, start // PICTURES_AT_ONCE]))


def _labels(rng: np.random.Generator) -> np.ndarray:
    """The classes of a block, int64 (PICTURES_AT_ONCE,): each ten neighbours hold each class once."""
    return rng.random((PICTURES_AT_ONCE // 10, 10)).argsort(axis=1).ravel().astype(np.int64)


def _draw(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """Draw one picture for each label -> uint8 (n, 32, 32, 3).

    One plane for each colour, int16 (n, 3, 1024), painted from back to front: integers need half of float32's bytes.
    """
    n = len(labels)

    def between(low: float, high: float, *shape: int) -> np.ndarray:
        return (low + (high - low) * rng.random((n, *shape))).astype(np.float32)

    def colour(low: float, high: float) -> np.ndarray:
        return between(low, high, 3, 1).astype(np.int16)

    def anywhere() -> tuple[np.ndarray, np.ndarray]:
        return between(-16, 16), between(-16, 16)

    radius = between(8, 12)
    room = (SIDE / 2 - radius) * 1.1  # a tenth further than the edge: some are cut a little
    x, y = between(-1, 1) * room, between(-1, 1) * room

    picture = np.empty((n, 3, SIDE * SIDE), np.int16)
    picture[:] = colour(0, 90)
    for _ in range(2):
        _paint(picture, _bar(*anywhere(), between(0, 2 * np.pi), between(0.5, 1.5)), colour(0, 130))
    _paint(picture, _disc(*anywhere(), between(1.5, 4)), colour(0, 130))
    _paint(picture, _shape(labels, x, y, between(-0.35, 0.35), radius), colour(130, 255))
    # A bar across the shape, in two pictures of three: below -0.5 a half width covers nothing.
    across = _bar(x + between(-5, 5), y + between(-5, 5), between(0, 2 * np.pi), between(-1.5, 1.5))
    _paint(picture, across, colour(0, 130))

    picture += _light(between(-50, 50), between(-50, 50))
    raw = rng.bit_generator.random_raw(picture.size // 8).astype("<u8", copy=False)  # eight bytes of noise in each
    noise = raw.view(np.uint8).reshape(picture.shape).astype(np.int16)
    noise -= 128
    noise *= between(0, 60, 1, 1).astype(np.int16)
    noise >>= 8
    picture += noise
    np.clip(picture, 0, 255, out=picture)
    out = np.empty((n, SIDE, SIDE, 3), np.uint8)
    for channel in range(3):  # seven times as fast as one assignment of the transposed planes
        out[..., channel] = picture[:, channel].reshape(n, SIDE, SIDE)
    return out


def _paint(picture: np.ndarray, cover: np.ndarray, colour: np.ndarray) -> None:
    """Lay a colour (n, 3, 1) over the picture (n, 3, 1024), in place; cover (n, 1, 1024) goes from 0 to 128."""
    layer = colour - picture  # at most 255, and 255 * 128 still fits into int16
    layer *= cover
    layer >>= 7
    picture += layer


def _cover(distance: np.ndarray) -> np.ndarray:
    """How far each pixel's middle is outside an edge, in pixels (n, 32, 32) -> how much of it is inside, 0 to 128."""
    np.subtract(0.5, distance, out=distance)
    np.clip(distance, 0, 1, out=distance)
    distance *= 128
    return distance.astype(np.int16).reshape(len(distance), 1, SIDE * SIDE)


def _sum(columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
    """A value for each column and one for each row (n, 32) -> their sums (n, 32, 32)."""
    return rows[:, :, None] + columns[:, None, :]


def _turn(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine (n, 1), rounded: their last bits differ between machines, those of sums and products do not."""
    c, s = (np.round(f(angle.astype(np.float64)), 4).astype(np.float32) for f in (np.cos, np.sin))
    return c[:, None], s[:, None]


def _light(right: np.ndarray, down: np.ndarray) -> np.ndarray:
    """Light that changes evenly across the picture, by `right` and `down` in all: int16 (n, 1, 1024)."""
    ramp = _sum(right[:, None] * (_PIXELS / SIDE), down[:, None] * (_PIXELS / SIDE))
    return ramp.astype(np.int16).reshape(-1, 1, SIDE * SIDE)


def _bar(x: np.ndarray, y: np.ndarray, angle: np.ndarray, half_width: np.ndarray) -> np.ndarray:
    """The cover of an endless bar through (x, y)."""
    c, s = _turn(angle)
    distance = _sum((_PIXELS - x[:, None]) * s, (_PIXELS - y[:, None]) * c)
    np.abs(distance, out=distance)
    distance -= half_width[:, None, None]
    return _cover(distance)


def _disc(x: np.ndarray, y: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The cover of a disc around (x, y)."""
    distance = _sum((_PIXELS - x[:, None]) ** 2, (_PIXELS - y[:, None]) ** 2)
    np.sqrt(distance, out=distance)
    distance -= radius[:, None, None]
    return _cover(distance)


def _shape(labels: np.ndarray, x: np.ndarray, y: np.ndarray, angle: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """The cover of the shape of each label around (x, y): its table of distances, turned, is looked up at each pixel."""
    c, s = _turn(angle)
    cells = ((TABLE - 1) / (2 * SPAN) / radius)[:, None]  # cells of the table to a pixel
    dx, dy = (_PIXELS - x[:, None]) * cells, (_PIXELS - y[:, None]) * cells
    column = _sum(dx * c, dy * s + np.float32(TABLE / 2))
    row = _sum(dx * -s, dy * c + np.float32(TABLE / 2))
    for cell in (column, row):
        np.clip(cell, 0, TABLE - 1, out=cell)
    index = row.astype(np.int32)
    index *= TABLE
    index += column.astype(np.int32)
    index += (labels * TABLE**2).astype(np.int32)[:, None, None]
    distance = _distances().take(index)
    distance *= radius[:, None, None]
    return _cover(distance)


@cache
def _distances() -> np.ndarray:
    """For each class, how far each cell is outside a shape of radius 1: float32 (10, TABLE, TABLE), y points down.

    Inside it is negative. Two shapes together are the minimum, what they have in common is the maximum.
    """
    x, y = np.meshgrid(_CELLS, _CELLS)

    def disc(cx: float, cy: float, radius: float) -> np.ndarray:
        return np.sqrt((x - cx) ** 2 + (y - cy) ** 2) - radius

    def box(half_width: float, half_height: float, cx: float = 0) -> np.ndarray:
        return np.maximum(np.abs(x - cx) - half_width, np.abs(y) - half_height)

    def sides(count: int, inner: float) -> np.ndarray:
        """The distance to each side of a regular polygon that stands on a side: (count, TABLE, TABLE)."""
        c, s = _turn(np.arange(count) * (2 * np.pi / count) + np.pi / 2)
        return c[:, :, None] * x + s[:, :, None] * y - inner

    def lowest(distances: list[np.ndarray]) -> np.ndarray:
        return np.stack(distances).min(axis=0)

    petals = zip(*_turn(np.arange(5) * (2 * np.pi / 5) - np.pi / 2), strict=True)
    drawn = {
        "circle": disc(0, 0, 0.95),
        "ring": np.abs(disc(0, 0, 0.72)) - 0.24,
        "moon": np.maximum(disc(0, 0, 1), -disc(0.5, -0.1, 0.75)),
        "square": box(0.8, 0.8),
        "triangle": sides(3, 0.55).max(axis=0),
        "star": np.sort(sides(5, 0.42), axis=0)[-2],  # the points inside at least 4 of 5 half planes
        "cross": np.minimum(box(1, 0.3), box(0.3, 1)),
        "heart": lowest(
            [(np.abs(x) + np.abs(y + 0.1)) / np.sqrt(2) - 0.53, *(disc(c, -0.45, 0.52) for c in (-0.4, 0.4))]
        ),
        "arrow": np.minimum(box(0.6, 0.22, -0.4), np.maximum(-x, (x + np.abs(y) - 1) / np.sqrt(2))),
        "flower": lowest([disc(0.6 * c, 0.6 * s, 0.36) for c, s in petals]),
    }
    return np.stack([drawn[name] for name in CLASS_NAMES]).astype(np.float32)
