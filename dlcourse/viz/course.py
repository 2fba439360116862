"""The course on one page: six parts, and where a notebook sits in them."""

from pathlib import Path
from typing import Any

from matplotlib.patches import Circle, FancyBboxPatch

from dlcourse.viz.style import INK, MAIN, Picture, canvas, styled

# (title, its first and last notebook, what is built in it)
PARTS = [
    ("See memory", 0, 2, ("arrays and their bytes,", "two rulers to measure them")),
    ("Layers", 3, 8, ("affine, convolution, pooling,", "normalization, a network")),
    ("Training", 9, 12, ("optimizers, the training loop,", "a network that sees, its bill")),
    ("Memory engineering", 13, 19, ("finding leaks, a live monitor,", "the same step in fewer bytes")),
    ("How frameworks do it", 20, 23, ("automatic gradients, graphs,", "sequences, attention")),
    ("Many processes", 24, 29, ("shared memory, training on", "many cores, a server")),
]
NUMERALS = ("I", "II", "III", "IV", "V", "VI")
WIDTH, HEIGHT, GAP = 2.55, 1.5, 0.14  # of a card; 1 is 100 pixels


@styled
def course_map(here: int, written: set[int] | None = None) -> Picture:
    """The six parts of the course as cards, a circle for each notebook, that of notebook `here` filled, and those not yet
    written dotted. written: the numbers of those that are there (None: of the files in the notebook's own folder)."""
    if written is None:
        written = {int(path.name[:2]) for path in Path().glob("[0-9][0-9]_*.ipynb")} or set(range(30))
    axes, _ = canvas(3 * WIDTH + 4 * GAP, 2 * HEIGHT + 3 * GAP - 0.1)
    for index in range(len(PARTS)):
        row, column = divmod(index, 3)
        _card(axes, GAP + column * (WIDTH + GAP), GAP + row * (HEIGHT + GAP), index, here, written)
    part = next(i for i, (_, first, last, _) in enumerate(PARTS) if first <= here <= last)
    listed = "; ".join(
        f"{NUMERALS[i]}, {title}, notebooks {first:02d} to {last:02d}: {' '.join(words)}"
        for i, (title, first, last, words) in enumerate(PARTS)
    )
    axes.figure.alt = (
        f"The course in six parts. {listed}. This is notebook {here:02d}, in part {NUMERALS[part]}. "
        "Notebooks with a dotted circle are not written yet."
    )
    return axes.figure


def _card(axes: Any, left: float, top: float, index: int, here: int, written: set[int]) -> None:
    title, first, last, words = PARTS[index]
    inside = first <= here <= last
    colour = MAIN if inside else INK
    box = FancyBboxPatch((left + 0.08, top + 0.08), WIDTH - 0.16, HEIGHT - 0.16, boxstyle="round,pad=0.08")
    box.set(facecolor="none", edgecolor=colour if inside else "#A5A5A5", linewidth=2 if inside else 1)
    axes.add_patch(box)
    axes.text(left + 0.12, top + 0.28, NUMERALS[index], size=12, weight="bold", color=colour, va="center")
    axes.text(left + 0.4, top + 0.28, title, size=11, weight="bold", color=colour, va="center")
    for line, text in enumerate(words):
        axes.text(left + 0.12, top + 0.62 + 0.22 * line, text, size=10, va="center")
    for place, number in enumerate(range(first, last + 1)):
        x, y = left + 0.26 + 0.34 * place, top + 1.22
        fill, tone = (MAIN, "white") if number == here else ("none", colour)
        dashes, alpha = ("-", 1) if number in written else (":", 0.7)
        circle = Circle((x, y), 0.15, facecolor=fill, edgecolor=colour, linestyle=dashes, alpha=alpha)
        axes.add_patch(circle)
        axes.text(x, y + 0.008, f"{number:02d}", size=9, color=tone, ha="center", va="center", alpha=alpha)
