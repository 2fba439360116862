"""Pictures of convolutions: small arrays with their numbers, the places of a window, bytes against seconds."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from dlcourse.kernels import out_size
from dlcourse.units import binary
from dlcourse.viz.style import INK, QUIET, Picture, picture, styled, title

MARK, BORDER, EDGE = "#0B6E75", "#E4E4E0", "#999999"  # none of them a colour of a kind
CELL, HEAD, LARGEST = 0.4, 0.95, 24  # size of a cell, room for the title (1 is 100 pixels); most cells side by side
SHAPES = "os^Dvph*"


@styled
def grids(
    arrays: Mapping[str, np.ndarray],
    finding: str,
    circumstances: str = "",
    *,
    marked: Mapping[str, np.ndarray] | None = None,
    pale: Mapping[str, np.ndarray] | None = None,
) -> Picture:
    """Small arrays (rows, columns) side by side, a cell for each number, under their names. `finding` is the title.

    marked: {name: bool, of the array's shape}, cells that are filled. pale: the same for cells of second rank, such as
    padding. Raises ValueError for an array that is not two-dimensional or has more than 24 rows or columns.
    """
    wrong = {name: a.shape for name, a in arrays.items() if a.ndim != 2 or max(a.shape) > LARGEST}
    if wrong:
        raise ValueError(f"grids draws arrays of two axes, with at most {LARGEST} rows and columns; got {wrong}")
    widths = [max(CELL * a.shape[1], 0.09 * len(name) + 0.3) for name, a in arrays.items()]
    width = max(sum(widths) + 0.5 * len(widths), 0.11 * len(finding), 0.075 * len(circumstances)) + 0.2
    head = HEAD if circumstances else HEAD - 0.3
    height = CELL * max(a.shape[0] for a in arrays.values()) + 0.45 + head
    axes = _canvas(width, height)
    _head(axes, finding, circumstances)
    left = 0.15
    for (name, array), taken in zip(arrays.items(), widths, strict=True):
        axes.text(left, head + 0.15, name, size=10.5, weight="bold", va="center")
        _cells(axes, left, head + 0.35, array, (marked or {}).get(name), (pale or {}).get(name))
        left += taken + 0.5
    listed = "; ".join(f"{name} {array.tolist()}" for name, array in arrays.items())
    axes.figure.alt = f"{finding}. Arrays as rows of cells: {listed}."
    return axes.figure


def _canvas(width: float, height: float) -> Any:
    """Axes over a whole picture, in units of 100 pixels from its upper left corner."""
    figure, axes = picture(width=width, height=height)
    figure.set_layout_engine("none")
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    return axes


def _head(axes: Any, finding: str, circumstances: str) -> None:
    axes.text(0.15, 0.3, finding, size=13, weight="bold", va="center")
    axes.text(0.15, 0.62, circumstances, size=10, color=QUIET, va="center")


def _cells(
    axes: Any, left: float, top: float, array: np.ndarray, marked: np.ndarray | None, pale: np.ndarray | None
) -> None:
    for (row, column), value in np.ndenumerate(array):
        filled = marked is not None and marked[row, column]
        behind = pale is not None and pale[row, column]
        place = left + CELL * column, top + CELL * row
        colour = MARK if filled else BORDER if behind else "white"
        axes.add_patch(Rectangle(place, CELL, CELL, facecolor=colour, edgecolor=EDGE, linewidth=1))
        ink = "white" if filled else QUIET if behind else INK
        axes.text(place[0] + CELL / 2, place[1] + CELL / 2, f"{value:g}", size=9.5, color=ink, ha="center", va="center")


@styled
def window_places(size: int, kernel: int, stride: int = 1, padding: int = 0) -> Picture:
    """An axis of `size` pixels with its padding, and under it a bar for each place of a window of `kernel` pixels.

    The pixels that no window meets are left white. Raises ValueError for more than 24 cells, or a window without a place.
    """
    cells, count = size + 2 * padding, out_size(size, kernel, stride, padding)
    if not 1 <= size <= cells <= LARGEST or count < 1:
        raise ValueError(f"window_places draws 1 to {LARGEST} cells and a window that fits; got {cells}, {kernel}")
    reached = (count - 1) * stride + kernel
    unmet = max(0, min(size, size + padding - reached))
    end = (
        "" if not unmet else ", the last pixel is met by none" if unmet == 1 else f", the last {unmet} are met by none"
    )
    finding = f"{count} place{'s' * (count > 1)}{end}"
    said = f"{size} pixels, kernel {kernel}, stride {stride}, padding {padding}"
    wide, top = 1.3, HEAD + 0.1
    axes = _canvas(max(wide + CELL * cells + 0.2, 6.0), top + 0.65 + 0.3 * count)
    _head(axes, finding, said)
    axes.text(0.15, top + CELL / 2, "pixels", size=10, va="center")
    for cell in range(cells):
        outside = not padding <= cell < padding + size
        colour = BORDER if outside else MARK if cell < reached else "white"
        box = Rectangle((wide + CELL * cell, top), CELL, CELL, facecolor=colour, edgecolor=EDGE, linewidth=1)
        axes.add_patch(box)
        text = "0" if outside else str(cell - padding)
        ink = QUIET if outside else "white" if cell < reached else INK
        axes.text(wide + CELL * (cell + 0.5), top + CELL / 2, text, size=9, color=ink, ha="center", va="center")
    for place in range(count):
        y = top + CELL + 0.12 + 0.3 * place
        axes.text(0.15, y + 0.09, f"place {place}", size=9, color=QUIET, va="center")
        axes.add_patch(Rectangle((wide + CELL * stride * place, y), CELL * kernel, 0.18, facecolor=QUIET))
    axes.figure.alt = f"{said}: {finding}. A row of cells, grey where it is padding, and a bar under it for each place."
    return axes.figure


@styled
def bytes_and_seconds(
    points: Mapping[str, tuple[float, float]], finding: str, circumstances: str = "", *, joined: bool = False
) -> Picture:
    """A point for each of `points`, {name: (bytes beside input and output, seconds)}, on logarithmic axes. Nearer to the
    lower left corner is better. joined: draw a line from each point to the next."""
    figure, axes = picture(width=8.5, height=4.6)
    seconds = [took for _, took in points.values()]
    sizes = [size for size, _ in points.values()]
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    if joined:
        axes.plot(seconds, sizes, color=EDGE, linewidth=1.5, zorder=1)
    for number, (name, (size, took)) in enumerate(points.items()):
        shape = "o" if joined else SHAPES[number % len(SHAPES)]
        axes.plot(took, size, shape, color=MARK, markersize=9)
        label = f"{name}: {binary(size)}, {duration(took)}"
        words = axes.annotate(label, (took, size), (9, 0), textcoords="offset points", size=10, va="center")
        words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.8})
    spread = max(seconds) / min(seconds)
    axes.set_xlim(min(seconds) / 1.3, max(seconds) * max(1.5, spread**0.6))
    axes.set_ylim(min(sizes) / 1.6, max(sizes) * 1.6)
    powers = range(int(np.floor(np.log2(min(sizes)))), int(np.ceil(np.log2(max(sizes)))) + 1)
    step = max(1, len(powers) // 6)
    axes.set_yticks([2.0**p for p in powers[::step]], [binary(2.0**p).replace(".00", "") for p in powers[::step]])
    axes.set_ylim(min(sizes) / 1.6, max(sizes) * 1.6)
    ticks = _ticks(*axes.get_xlim())
    axes.set_xticks(ticks, [duration(tick) for tick in ticks])
    axes.minorticks_off()
    axes.set_xlabel("time of the processor")
    axes.set_ylabel("bytes beside input and output")
    title(axes, finding, circumstances)
    listed = "; ".join(f"{name} {binary(size)} and {duration(took)}" for name, (size, took) in points.items())
    figure.alt = f"{finding}. A point for each: {listed}."
    return figure


def _ticks(low: float, high: float) -> list[float]:
    """Round numbers between the two: as few as are at least three."""
    found: list[float] = []
    for steps in ((1.0,), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0)):
        found = [step * 10.0**power for power in range(-7, 5) for step in steps if low < step * 10.0**power < high]
        if len(found) >= 3:
            break
    return found


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them, with two digits: 0.0164 -> "16 ms"."""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    size, name = next((unit for unit in units if seconds >= 0.995 * unit[0]), units[-1])
    count = seconds / size
    return f"{count:.0f} {name}" if count >= 9.95 or abs(count - round(count)) < 1e-9 else f"{count:.1f} {name}"
