"""Pictures of ten shapes, drawn here: a data set of any size that needs no network."""

from functools import cache

import numpy as np

from .split import Dataset, Split

CLASS_NAMES = ("circle", "ring", "moon", "square", "triangle", "star", "cross", "heart", "arrow", "flower")
SIDE = 32  # pixels of a picture's side
BLOCK = 100  # pictures that are drawn at once, from one generator of their own
TABLE = 80  # cells of a shape's table of distances, which spans -SPAN to SPAN
SPAN = 1.5

_CELLS = np.arange(TABLE) * (2 * SPAN / (TABLE - 1)) - SPAN
_PIXELS = (np.arange(SIDE) - (SIDE - 1) / 2).astype(np.float32)


def shapes(samples: int = 10_000, test_samples: int = 2_000, *, seed: int = 0) -> Dataset:
    """Ten classes of shapes, 32x32 pixels in colour, in any number."""
    return Dataset(_split(samples, seed, 0), _split(test_samples, seed, 1))


def _split(samples: int, seed: int, part: int) -> Split:
    x = np.empty((samples, SIDE, SIDE, 3), np.uint8)
    y = np.empty(samples, np.int64)
    for start in range(0, samples, BLOCK):
        rng = np.random.default_rng((seed, part, start // BLOCK))
        labels = _labels(rng)
        stop = min(start + BLOCK, samples)
        y[start:stop] = labels[: stop - start]
        x[start:stop] = _draw(rng, labels)[: stop - start]
    return Split(x, y, CLASS_NAMES)


def _labels(rng: np.random.Generator) -> np.ndarray:
    """BLOCK labels: each ten neighbours hold each class once, so that every number of pictures is balanced."""
    return rng.random((BLOCK // 10, 10)).argsort(axis=1).ravel()


def _draw(rng: np.random.Generator, labels: np.ndarray) -> np.ndarray:
    """-> uint8 (BLOCK, 32, 32, 3).  Only sums, products, quotients and roots, which every machine rounds alike."""
    n = len(labels)

    def between(low: float, high: float, *shape: int) -> np.ndarray:
        return (low + (high - low) * rng.random((n, *shape))).astype(np.float32)

    # Back to front, one plane a colour: (n, 3, 1024).
    paper = between(0, 1, 3, 1)
    ink = _apart(paper, between(0, 1, 3, 1))
    shade = _ramp(between(-1, 1), between(-1, 1))
    picture = paper + shade * between(-0.2, 0.2, 3, 1)
    for _ in range(2):
        _paint(
            picture, _bar(between(-16, 16), between(-16, 16), between(0, 6.2832), between(0.5, 2)), between(0, 1, 3, 1)
        )
    radius = between(7, 12)
    room = (SIDE / 2 - radius) * 1.1
    x, y = between(-1, 1) * room, between(-1, 1) * room
    _paint(picture, _stamp(labels, x, y, between(-0.5, 0.5), radius), ink)
    picture += (between(0, 1, 3, 1024) - 0.5) * between(0, 0.4, 1, 1)
    np.clip(picture, 0, 1, out=picture)
    picture *= 255
    picture += 0.5
    return picture.astype(np.uint8).reshape(n, 3, SIDE, SIDE).transpose(0, 2, 3, 1)


def _apart(paper: np.ndarray, ink: np.ndarray) -> np.ndarray:
    """Move the ink's colour away from the paper's, so that at least one channel differs by 0.3."""
    step = ink - paper
    size = np.abs(step).max(axis=1, keepdims=True)
    return paper + step * (np.maximum(size, 0.35) / np.maximum(size, 1e-3))


def _paint(picture: np.ndarray, cover: np.ndarray, colour: np.ndarray) -> None:
    """Lay a colour (n, 3, 1) over the picture (n, 3, 1024) where cover (n, 1, 1024) is 1, in place."""
    layer = colour - picture
    layer *= cover
    picture += layer


def _ramp(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """A plane that rises by a pixel's step: (n, 1, 1024), within -1 to 1 for a, b in that range."""
    rows, columns = (b[:, None] * (_PIXELS / SIDE))[:, :, None], (a[:, None] * (_PIXELS / SIDE))[:, None, :]
    return (rows + columns).reshape(len(a), 1, SIDE * SIDE)


def _turn(angle: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cosine and sine, rounded so that the last bit, where machines differ, does not count."""
    return np.round(np.cos(angle), 4), np.round(np.sin(angle), 4)


def _bar(x: np.ndarray, y: np.ndarray, angle: np.ndarray, half_width: np.ndarray) -> np.ndarray:
    c, s = _turn(angle)
    rows = (_PIXELS - y[:, None]) * c[:, None]
    columns = (_PIXELS - x[:, None]) * s[:, None]
    distance = np.abs(columns[:, None, :] + rows[:, :, None])
    distance -= half_width[:, None, None]
    return _cover(distance)


def _stamp(labels: np.ndarray, x: np.ndarray, y: np.ndarray, angle: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """How much of each pixel the shape of each label covers: (n, 1, 1024), 0 to 1."""
    c, s = _turn(angle)
    cells = (TABLE - 1) / (2 * SPAN) / radius  # cells of the table to a pixel
    dx, dy = _PIXELS - x[:, None], _PIXELS - y[:, None]
    c, s = (c * cells)[:, None], (s * cells)[:, None]
    middle = np.float32(TABLE / 2)
    u = (dx * c)[:, None, :] + (dy * s + middle)[:, :, None]
    v = (dx * -s)[:, None, :] + (dy * c + middle)[:, :, None]
    for w in (u, v):
        np.clip(w, 0, TABLE - 1, out=w)
    index = v.astype(np.int32)
    index *= TABLE
    index += u.astype(np.int32)
    index += (labels * TABLE * TABLE).astype(np.int32)[:, None, None]
    distance = _tables().take(index)
    distance *= radius[:, None, None]
    return _cover(distance)


def _cover(distance: np.ndarray) -> np.ndarray:
    """Pixels of distance outside an edge (n, 32, 32) -> the part of each pixel that is inside (n, 1, 1024), in place."""
    np.subtract(0.5, distance, out=distance)
    np.clip(distance, 0, 1, out=distance)
    return distance.reshape(len(distance), 1, SIDE * SIDE)


@cache
def _tables() -> np.ndarray:
    """For each class the distance of every cell to the edge of a shape of radius 1, negative inside. 250 KiB."""
    x, y = np.meshgrid(_CELLS, _CELLS)

    def disc(cx: float, cy: float, radius: float) -> np.ndarray:
        return np.sqrt((x - cx) ** 2 + (y - cy) ** 2) - radius

    def box(cx: float, cy: float, half_width: float, half_height: float) -> np.ndarray:
        return np.maximum(np.abs(x - cx) - half_width, np.abs(y - cy) - half_height)

    def sides(count: int, inner: float) -> np.ndarray:
        """Signed distance to each side of a regular polygon, one side below; y points down."""
        c, s = _turn(np.arange(count) * (2 * np.pi / count) + np.pi / 2)
        return c[:, None, None] * x + s[:, None, None] * y - inner

    around = _turn(np.arange(5) * (2 * np.pi / 5) - np.pi / 2)
    diagonal = (np.abs(x) + np.abs(y + 0.1)) / np.sqrt(2) - 0.53
    drawn = {
        "circle": disc(0, 0, 0.95),
        "ring": np.abs(disc(0, 0, 0.72)) - 0.24,
        "moon": np.maximum(disc(0, 0, 1), -disc(0.5, -0.1, 0.75)),
        "square": box(0, 0, 0.8, 0.8),
        "triangle": sides(3, 0.55).max(axis=0),
        "star": np.sort(sides(5, 0.42), axis=0)[-2],
        "cross": np.minimum(box(0, 0, 1, 0.3), box(0, 0, 0.3, 1)),
        "heart": np.minimum.reduce([diagonal, disc(-0.4, -0.45, 0.52), disc(0.4, -0.45, 0.52)]),
        "arrow": np.minimum(box(-0.4, 0, 0.6, 0.22), np.maximum(-x, (x + np.abs(y) - 1) / np.sqrt(2))),
        "flower": np.minimum.reduce([disc(0.6 * c, 0.6 * s, 0.36) for c, s in zip(*around, strict=True)]),
    }
    return np.stack([drawn[name] for name in CLASS_NAMES]).astype(np.float32)
