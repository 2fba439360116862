"""Pictures of arrays: which bytes of a strip of memory a view sees, and sizes beside one another."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from dlcourse.units import binary
from dlcourse.viz.style import INK, QUIET, Picture, picture, styled, title, unit

ARRAY, REST, EDGE = "#0B6E75", "#CFCFCA", "#999999"  # none of them a colour of a kind
LABEL, CELL, ROW = 3.3, 0.42, 0.62  # width of the words, width of a cell, height of a row; the unit is 100 pixels


@styled
def strip(memory: np.ndarray, views: Mapping[str, np.ndarray]) -> Picture:
    """A row for each of `views`: the elements of `memory` side by side, filled where the view sees them, each with its
    place in the view, counted row by row from 0. An array that shares no memory with it is said to be a copy.

    memory: contiguous, at most 24 elements, since each one is drawn. views: {what to write beside it: array of the same
    itemsize}. Raises ValueError for another memory.
    """
    if not memory.flags.c_contiguous or not 0 < memory.size <= 24:
        found = f"shape {memory.shape}, strides {memory.strides}"
        raise ValueError(f"strip draws a contiguous array of 1 to 24 elements; got {found}")
    width, height = LABEL + CELL * memory.size + 0.2, ROW * len(views) + 0.5
    figure, axes = picture(width=width, height=height)
    figure.set_layout_engine("none")
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    said = []
    for row, (name, view) in enumerate(views.items()):
        top = 0.12 + ROW * row
        axes.text(0.15, top + 0.15, name, size=10.5, weight="bold", va="center")
        axes.text(0.15, top + 0.36, f"shape {view.shape}, strides {view.strides}", size=9, color=QUIET, va="center")
        said.append(f"{name}: {_row(axes, top, memory, view)}")
    axes.text(LABEL, height - 0.2, f"one cell: {memory.itemsize} bytes", size=9, color=QUIET, va="center")
    figure.alt = f"A strip of {memory.size} cells in memory, and what each array sees of it. {'; '.join(said)}."
    return figure


def _row(axes: Any, top: float, memory: np.ndarray, view: np.ndarray) -> str:
    """Draw the strip as `view` sees it -> the same in words."""
    if not np.shares_memory(memory, view):
        axes.text(LABEL, top + 0.25, "a copy: it has memory of its own", size=10.5, color=INK, va="center")
        return "a copy"
    visited = places(memory, view)
    for cell in range(memory.size):
        seen = np.flatnonzero(visited == cell)
        box = (LABEL + CELL * cell, top + 0.05)
        colour = ARRAY if seen.size else "white"
        axes.add_patch(Rectangle(box, CELL, 0.4, facecolor=colour, edgecolor=EDGE, linewidth=1))
        text = "" if not seen.size else f"{seen[0]}" if seen.size == 1 else f"{seen.size}×"
        axes.text(box[0] + CELL / 2, box[1] + 0.2, text, size=9.5, color="white", ha="center", va="center")
    return f"cells {', '.join(map(str, visited))}"


def places(memory: np.ndarray, view: np.ndarray) -> np.ndarray:
    """For each element of `view`, row by row: the number of the element of `memory` that it is. -> int64 (view.size,)."""
    start = view.__array_interface__["data"][0] - memory.__array_interface__["data"][0]
    steps = np.indices(view.shape).reshape(view.ndim, -1)  # (ndim, size)
    return (start + np.array(view.strides, np.int64) @ steps) // memory.itemsize


@styled
def sizes(
    rows: Mapping[str, int],
    finding: str,
    circumstances: str = "",
    *,
    chosen: str | None = None,
    before: Mapping[str, int] | None = None,
    marks: Mapping[str, int] | None = None,
    up_to: int | None = None,
) -> Picture:
    """A bar for each of `rows`, {name: bytes}, with its bytes beside it. `finding`: the title, what is to be seen.

    chosen: the row that is drawn in colour (None: all of them). before: {name of a row: bytes that it needs too, but that
    were made before}, a pale bar behind its own. up_to: bytes at the right end of the axis, the same for pictures that
    are to be compared (None: as wide as the longest bar needs). With `marks`, {name: bytes}, the axis is logarithmic
    from 1 KiB on, and each mark is a line across it.
    """
    older = {row: (before or {}).get(row, 0) for row in rows}
    ends = {row: count + older[row] for row, count in rows.items()}
    labels = {
        row: binary(count) + (f", and {binary(older[row])} made before" if older[row] else "")
        for row, count in rows.items()
    }
    end = up_to or 1.15 * max(ends.values())
    size, name = (1, "") if marks else unit(end / 1.15)
    figure, axes = picture(width=8.5, height=(1.75 if marks else 1.25) + 0.36 * len(rows))
    colours = [ARRAY if chosen in (None, row) else REST for row in rows]
    axes.barh(range(len(rows)), [count / size for count in rows.values()], height=0.7, color=colours)
    for place, row in enumerate(rows):
        if older[row]:
            axes.barh(place, older[row] / size, left=rows[row] / size, height=0.7, color=REST)
        words = axes.annotate(
            labels[row], (ends[row] / size, place), (5, 0), textcoords="offset points", va="center", size=10
        )
        words.set_bbox({"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85})
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set_ylim(len(rows) - 0.4, -1.15 if marks else -0.6)
    axes.set_xlim(2**10 if marks else 0, end / size)
    axes.set_xlabel(name)
    if marks:
        _logarithmic(axes, end, marks)
    title(axes, finding, circumstances)
    figure.alt = f"{finding}. A bar for each: {'; '.join(f'{row} {label}' for row, label in labels.items())}."
    return figure


def _logarithmic(axes: Any, end: float, marks: Mapping[str, int]) -> None:
    ticks = [2**power for power in range(10, 60, 5) if 2**power < end]
    axes.set_xscale("log", base=2)
    axes.set_xlim(2**10, end)
    axes.set_xticks(ticks, [binary(tick).replace(".00", "").replace(".0", "") for tick in ticks])
    axes.set_xlabel("bytes; each line of the grid is 32 times the one before it")
    for name, count in marks.items():
        axes.axvline(count, color=INK, linewidth=1.2, linestyle="--")
        axes.text(count, -0.75, f"{name} ", size=9.5, color=INK, ha="right", va="center")
