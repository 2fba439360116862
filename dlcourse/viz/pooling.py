"""Pictures of pooling and dropout: which pixel won which window, and one image in several versions."""

from collections.abc import Mapping
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb
from matplotlib.patches import Rectangle

from dlcourse.viz.arrays import ARRAY, EDGE
from dlcourse.viz.style import INK, QUIET, Picture, picture, styled, title

PADDING = "#F1F1EE"  # a cell that is no pixel


@styled
def pooled(
    x: np.ndarray,
    y: np.ndarray,
    wins: np.ndarray,
    *,
    kernel: int,
    stride: int,
    padding: int = 0,
    finding: str,
    circumstances: str = "",
) -> Picture:
    """Left the image with its padding, a pixel the darker the more windows it won; right what pooling gives. The first
    window, and the number that it gives, have a thick edge.

    x (H, W), at most 8×8, and y (H', W'): numbers that are written into the cells. wins (H, W): how many windows each
    pixel won, which is its gradient where every dy is 1. Raises ValueError for a larger image.
    """
    if max(x.shape) > 8:
        raise ValueError(f"pooled writes each number into its cell, so the image has at most 8×8 pixels; got {x.shape}")
    height, width = (size + 2 * padding for size in x.shape)
    figure, (left, right) = picture(1, 2, width=8.5, height=4.6)
    reach = max(height, width)
    _grid(left, reach, height, "the pixels, and how many windows each won")
    for row, column in np.ndindex(height, width):
        r, c = row - padding, column - padding
        if 0 <= r < x.shape[0] and 0 <= c < x.shape[1]:
            won = int(wins[r, c])
            _cell(left, row, column, f"{x[r, c]:g}", _shade(won, int(wins.max())), f"{won}×" if won else "")
        else:
            _cell(left, row, column, "−∞", PADDING)
    _grid(right, reach, y.shape[0], "the largest of each window")
    for (row, column), number in np.ndenumerate(y):
        _cell(right, row, column, f"{number:g}", "white")
    left.add_patch(Rectangle((0, 0), kernel, kernel, fill=False, edgecolor=INK, linewidth=2.5, zorder=3))
    right.add_patch(Rectangle((0, 0), 1, 1, fill=False, edgecolor=INK, linewidth=2.5, zorder=3))
    title(left, finding, circumstances)
    winners = "; ".join(f"{x[place]:g} won {int(wins[place])}" for place in zip(*np.nonzero(wins), strict=True))
    sizes = f"{_by(x)} pixels, windows of {kernel} × {kernel}, stride {stride}, padding {padding}: {_by(y)} outputs"
    figure.alt = f"{finding}. {sizes}. Windows won: {winners}."
    return figure


def _by(array: np.ndarray) -> str:
    return f"{array.shape[0]} × {array.shape[1]}"


def _shade(won: int, most: int) -> Any:
    """White for a pixel that won nothing, the darkest for the one that won most."""
    part = 0.35 + 0.65 * won / most if won else 0.0
    return tuple(1 - part * (1 - light) for light in to_rgb(ARRAY))


def _grid(axes: Any, reach: int, rows: int, below: str) -> None:
    """Room for `reach` cells in each direction, and words under the last of `rows`."""
    axes.set_axis_off()
    axes.set_aspect("equal", anchor="NW")
    axes.set_xlim(-0.1, reach + 0.1)
    axes.set_ylim(reach + 0.7, -0.1)
    axes.text(0, rows + 0.4, below, size=9.5, color=QUIET, va="center")


def _cell(axes: Any, row: int, column: int, text: str, colour: Any, corner: str = "") -> None:
    axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor=EDGE, linewidth=1))
    ink = "white" if sum(to_rgb(colour)) < 1.6 else INK
    crowded = axes.get_xlim()[1] > 8.5
    axes.text(column + 0.5, row + 0.6, text, size=9 if crowded else 11, color=ink, ha="center", va="center")
    axes.text(column + 0.95, row + 0.06, corner, size=6 if crowded else 8, color=ink, ha="right", va="top")


@styled
def versions(images: Mapping[str, np.ndarray], finding: str, circumstances: str = "") -> Picture:
    """One image in several versions side by side, all in the same greys, each with its size and its mean.

    images: {what to write over it: (H, W)}; white is 0, black the largest number of the first one and above.
    """
    figure, row = picture(1, len(images), width=8.5, height=2.75, squeeze=False)
    darkest = max(float(next(iter(images.values())).max()), 1e-9)
    for axes, (name, image) in zip(row[0], images.items(), strict=True):
        axes.imshow(image, cmap="Greys", vmin=0, vmax=darkest)
        axes.set_xticks([])
        axes.set_yticks([])
        axes.grid(visible=False)
        axes.spines[:].set_visible(True)
        axes.set_title(name, size=10, weight="normal", pad=4)
        axes.set_xlabel(f"{_by(image)}, mean {image.mean():.2f}", size=9.5)
    figure.suptitle(finding, x=0.01, ha="left", size=13, weight="bold")
    if circumstances:
        figure.supxlabel(circumstances, x=0.01, ha="left", size=10, color=QUIET)
    said = "; ".join(f"{name}: {_by(image)}, mean {image.mean():.2f}" for name, image in images.items())
    figure.alt = f"{finding}. {said}."
    return figure
