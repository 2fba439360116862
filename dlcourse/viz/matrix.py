"""A matrix: rows against columns, a cell the fuller the larger its number."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.colors import to_rgb

from dlcourse.viz.style import INK, MAIN, Picture, picture, styled, title


@styled
def matrix(
    values: np.ndarray,
    finding: str = "",
    circumstances: str = "",
    *,
    rows: Sequence[str] = (),
    columns: Sequence[str] = (),
    ylabel: str = "",
    xlabel: str = "",
    numbers: bool = True,
    colour: str = MAIN,
    on: Any = None,
) -> Picture:
    """A field for each of `values` (R, C), not negative, filled by its share of the largest in its row. numbers: write those
    that are not 0. rows, columns: names. on: axes to draw in. Raises ValueError for an array of other than two axes."""
    values = np.asarray(values)
    if values.ndim != 2:
        raise ValueError(f"a matrix has rows and columns; got shape {values.shape}")
    height, width = 1.5 + 0.4 * values.shape[0] + 0.05 * max(map(len, columns), default=0), 1.7 + 0.5 * values.shape[1]
    figure, axes = (on.figure, on) if on is not None else picture(width=width, height=height)
    share = values / np.maximum(values.max(axis=1, keepdims=True, initial=0), 1e-300)
    tint = np.broadcast_to(to_rgb(colour), (*values.shape, 3))
    axes.imshow(np.concatenate([tint, share[..., None]], axis=2), aspect="auto")
    for row, column in np.argwhere(values > 0) if numbers else ():
        ink = "white" if share[row, column] > 0.6 else INK
        axes.text(column, row, f"{values[row, column]:g}", ha="center", va="center", size=10, color=ink)
    turned: Any = {"rotation": 45, "ha": "right", "rotation_mode": "anchor"}
    axes.set_xticks(range(len(columns)), columns, **turned)
    axes.set_yticks(range(len(rows)), rows)
    axes.set_xticks(np.arange(0.5, values.shape[1]), minor=True)
    axes.set_yticks(np.arange(0.5, values.shape[0]), minor=True)
    axes.tick_params(which="both", length=0)
    axes.grid(visible=False)
    axes.grid(visible=True, which="minor")
    axes.set(xlabel=xlabel, ylabel=ylabel)
    title(axes if on is not None else figure, finding, circumstances)
    size = f"{values.shape[0]} rows and {values.shape[1]} columns"
    figure.alt = f"{figure.alt} {finding}. {size}, {circumstances}.".strip()
    return figure
