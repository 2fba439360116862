"""Cells: small arrays, a cell for each number."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from dlcourse.viz.style import INK, MAIN, Picture, canvas, styled

CELL, LARGEST = 0.37, 24  # width of a cell (1 is 100 pixels), and how many stand side by side at most
GROUPS = ("#0F7F87", "#E0A98C", "#8561B5", "#A3C191", "#B0603F", "#93B5D8", "#66814F", "#D9C66B")  # dark, pale by turns


@styled
def cells(
    arrays: Mapping[str, np.ndarray],
    finding: str = "",
    circumstances: str = "",
    *,
    marked: Mapping[str, np.ndarray] | None = None,
    pale: Mapping[str, np.ndarray] | None = None,
    tones: bool = False,
    signs: str = "",
    down: bool = False,
) -> Picture:
    """Small arrays (rows, columns) side by side, a cell for each number or word, under their names. NaN leaves a gap.

    marked: {name: bool, of the array's shape}, cells that are filled, or shares 0…1 of a full colour. pale: {name: bool},
    cells of second rank, such as padding. tones: a colour of its own for each number from 1 on, eight by turns. signs: a
    letter between each array and the next, such as "@=". down: one under the other. A name's second line is written
    smaller. Raises ValueError for an array that is not two-dimensional or has more than 24 rows or columns.
    """
    wrong = {name: a.shape for name, a in arrays.items() if a.ndim != 2 or max(a.shape, default=0) > LARGEST}
    if wrong:
        raise ValueError(f"cells draws arrays of two axes, with at most {LARGEST} rows and columns; got {wrong}")
    aside = max(0.085 * len(line) for name in arrays for line in name.split("\n")) + 0.3
    words = [0.0 if down else 0.085 * len(name.split("\n")[0]) for name in arrays]
    wide = [max(CELL * a.shape[1], word) for a, word in zip(arrays.values(), words, strict=True)]
    high = [CELL * a.shape[0] for a in arrays.values()]
    under = 0.3 + 0.2 * any("\n" in name for name in arrays)
    width = aside + max(wide) + 0.2 if down else sum(wide) + 0.4 * len(wide) + 0.1
    height = sum(high) + 0.22 * len(high) if down else max(high) + under + 0.15
    axes, top = canvas(max(width, 5.0), height, finding, circumstances)
    left = 0.15
    for number, (name, array) in enumerate(arrays.items()):
        first, _, second = name.partition("\n")
        middle = top + high[number] / 2 - 0.1 * bool(second) if down else top + 0.12
        axes.text(left, middle, first, size=10.5, weight="bold", va="center")
        axes.text(left, middle + 0.2, second, size=9.5, va="center")
        corner = (aside if down else left, top if down else top + under)
        _cells(axes, *corner, array, (marked or {}).get(name), (pale or {}).get(name), tones)
        if down:
            top += high[number] + 0.22
        else:
            left += wide[number] + 0.4
            sign = signs[number : number + 1]
            axes.text(left - 0.2, top + under + 1.5 * CELL, sign, size=14, ha="center", va="center")
    listed = "; ".join(f"{' '.join(name.split())} {array.tolist()}" for name, array in arrays.items())
    axes.figure.alt = f"{finding}. {circumstances}{'. ' * bool(circumstances)}Arrays as rows of cells: {listed}."
    return axes.figure


def _cells(axes: Any, left: float, top: float, array: np.ndarray, marked: Any, pale: Any, tones: bool) -> None:
    for (row, column), value in np.ndenumerate(array):
        if not isinstance(value, str) and np.isnan(value):
            continue
        behind = pale is not None and pale[row, column]
        share = 0.0 if marked is None else float(marked[row, column])
        fill: Any = (*to_rgb(MAIN), share) if share else (0.5, 0.5, 0.5, 0.2 * behind)
        if tones:
            share, fill = 1.0, GROUPS[(int(value) - 1) % len(GROUPS)]
        words = value if isinstance(value, str) else f"{value:g}".replace("-inf", "−∞").replace("-", "−")
        ink = INK if share < 0.5 else "white" if sum(to_rgb(fill)) < 1.7 else "#222222"
        place = left + CELL * column, top + CELL * row
        axes.add_patch(Rectangle(place, CELL, CELL, facecolor=fill, edgecolor="#999999", linewidth=1))
        size = 10 if len(words) < 4 else 8.5
        axes.text(place[0] + CELL / 2, place[1] + CELL / 2, words, size=size, color=ink, ha="center", va="center")


@styled
def strip(memory: np.ndarray, views: Mapping[str, np.ndarray]) -> Picture:
    """A row for each of `views`: the elements of `memory` side by side, filled where the view sees them, each with its
    place in the view, counted row by row from 0. An array that shares no memory with it is said to be a copy.

    memory: contiguous, 1 to 24 elements. views: {name: array of the same itemsize}. Raises ValueError for another memory.
    """
    if not memory.flags.c_contiguous or not 0 < memory.size <= LARGEST:
        found = f"shape {memory.shape}, strides {memory.strides}"
        raise ValueError(f"strip draws a contiguous array of 1 to {LARGEST} elements; got {found}")
    rows, said = {}, []
    for name, view in views.items():
        visited = places(memory, view) if np.shares_memory(memory, view) else np.array([], int)
        counts = np.bincount(visited, minlength=memory.size)
        firsts = {int(cell): place for place, cell in reversed(list(enumerate(visited)))}
        words = ["" if not n else f"{firsts[cell]}" if n == 1 else f"{n}×" for cell, n in enumerate(counts)]
        note = f"shape {view.shape}, strides {view.strides}" if visited.size else "a copy: it has memory of its own"
        rows[f"{name}\n{note}"] = np.array([words])
        said.append(f"{name}: {'cells ' + ', '.join(map(str, visited)) if visited.size else 'a copy'}")
    drawn = cells(rows, "", "", marked={name: row != "" for name, row in rows.items()}, down=True)
    drawn.alt = f"A strip of {memory.size} cells in memory, and what each array sees of it. {'; '.join(said)}."
    return drawn


def places(memory: np.ndarray, view: np.ndarray) -> np.ndarray:
    """For each element of `view`, row by row: the number of the element of `memory` that it is. -> int64 (view.size,)."""
    start = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    steps = np.indices(view.shape).reshape(view.ndim, -1)  # (ndim, size)
    return (start + np.array(view.strides, np.int64) @ steps) // memory.itemsize
