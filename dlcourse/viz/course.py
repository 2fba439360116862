"""The course on one page: six parts, and where a notebook sits in them."""

from typing import Any

from matplotlib.patches import Circle, FancyBboxPatch

from dlcourse.viz.style import INK, QUIET, Picture, picture, styled

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
HERE, CARD, EDGE = "#0B6E75", "#F6F6F3", "#CFCFCA"  # none of them a colour of a kind
WIDTH, HEIGHT, GAP = 2.7, 1.5, 0.2  # of a card; the figure's unit is 100 pixels


@styled
def course_map(here: int) -> Picture:
    """The six parts of the course as cards, a dot for each notebook, the dot of notebook `here` filled."""
    figure, axes = picture(width=3 * WIDTH + 4 * GAP, height=2 * HEIGHT + 3 * GAP)
    figure.set_layout_engine("none")
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, 3 * WIDTH + 4 * GAP)
    axes.set_ylim(2 * HEIGHT + 3 * GAP, 0)
    for index in range(len(PARTS)):
        row, column = divmod(index, 3)
        _card(axes, GAP + column * (WIDTH + GAP), GAP + row * (HEIGHT + GAP), index, here)
    part = next(i for i, (_, first, last, _) in enumerate(PARTS) if first <= here <= last)
    listed = "; ".join(
        f"{NUMERALS[i]}, {title}, notebooks {first:02d} to {last:02d}: {' '.join(words)}"
        for i, (title, first, last, words) in enumerate(PARTS)
    )
    figure.alt = f"The course in six parts. {listed}. This is notebook {here:02d}, in part {NUMERALS[part]}."
    return figure


def _card(axes: Any, left: float, top: float, index: int, here: int) -> None:
    title, first, last, words = PARTS[index]
    inside = first <= here <= last
    axes.add_patch(
        FancyBboxPatch(
            (left + 0.08, top + 0.08),
            WIDTH - 0.16,
            HEIGHT - 0.16,
            boxstyle="round,pad=0.08",
            facecolor="white" if inside else CARD,
            edgecolor=HERE if inside else EDGE,
            linewidth=2 if inside else 1,
        )
    )
    colour = HERE if inside else INK
    axes.text(left + 0.16, top + 0.3, NUMERALS[index], size=13, weight="bold", color=colour, va="center")
    axes.text(left + 0.52, top + 0.3, title, size=12, weight="bold", color=colour, va="center")
    for line, text in enumerate(words):
        axes.text(left + 0.16, top + 0.62 + 0.21 * line, text, size=9.5, color=INK, va="center")
    for place, number in enumerate(range(first, last + 1)):
        x, y = left + 0.31 + 0.345 * place, top + 1.2
        now = number == here
        axes.add_patch(Circle((x, y), 0.145, facecolor=HERE if now else "white", edgecolor=colour if inside else QUIET))
        tone = "white" if now else (colour if inside else QUIET)
        axes.text(x, y + 0.008, f"{number:02d}", size=8.5, color=tone, ha="center", va="center")
