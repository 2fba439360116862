"""Pictures of a network: whose saved arrays are alive when, how long each kind of state lives, and how the size of the
numbers goes from layer to layer."""

import math
from collections.abc import Collection, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from dlcourse.units import binary
from dlcourse.viz.style import COLOURS, INK, QUIET, Picture, picture, styled, title, unit

BARS = "#0B6E75"  # not the colour of a kind
LINES = (("#B5401A", ":"), ("#7A5AA6", "-."), ("#3C7D3C", "--"), ("#0B6E75", "-"))  # colour and dashes, by turns
PHASES = ("forward", "loss", "backward", "update")
# kind -> the corners of its share alive through a step: (borders of phases passed, share). Between them it goes straight.
LIVES = {
    "params": ((0, 1), (4, 1)),
    "slots": ((0, 1), (4, 1)),
    "grads": ((0, 0), (2, 0), (3, 1), (4, 1), (4, 0)),
    "saved": ((0, 0), (1, 1), (2, 1), (3, 0), (4, 0)),
}


@styled
def stairs(runs: Mapping[str, Sequence[tuple[str, Collection[str]]]], layers: Sequence[str]) -> Picture:
    """A panel for each of `runs`, {what is done: [(moment, the layers whose saved arrays are alive after it), …]}: a row
    for each of `layers`, a column for each moment, filled where the layer's arrays are alive."""
    figure, panels = picture(1, len(runs), width=5 * len(runs), height=1.9 + 0.24 * len(layers), squeeze=False)
    said = []
    for axes, (what, moments) in zip(panels[0], runs.items(), strict=True):
        for column, (_, alive) in enumerate(moments):
            for row, layer in enumerate(layers):
                colour = COLOURS["saved"] if layer in alive else "white"
                axes.add_patch(Rectangle((column, row), 1, 1, facecolor=colour, edgecolor="#DDDDDD", linewidth=0.8))
        axes.set_xlim(0, len(moments))
        axes.set_ylim(len(layers), 0)
        axes.set_yticks([row + 0.5 for row in range(len(layers))], layers if axes is panels[0, 0] else [])
        axes.set_xticks([])
        axes.tick_params(length=0)
        axes.grid(visible=False)
        _phases(axes, [moment for moment, _ in moments])
        left = len(moments[-1][1])
        title(axes, f"At the end {left} of {len(layers)} are held", what)
        said.append(f"{what}: at the end {left} of {len(layers)} layers hold saved arrays")
    figure.alt = (
        "A row for each layer, a column for each moment of forward and backward, yellow where what the layer saved is "
        f"alive. {'; '.join(said)}."
    )
    return figure


def _phases(axes: Any, moments: Sequence[str]) -> None:
    """The name of each phase under its columns, and a line where a new one begins."""
    for phase in dict.fromkeys(moments):
        places = [place for place, moment in enumerate(moments) if moment == phase]
        if places[0]:
            axes.axvline(places[0], color=INK, linewidth=1.4)
        axes.text(np.mean(places) + 0.5, axes.get_ylim()[0] + 0.25, phase, ha="center", va="top", size=10)


@styled
def lifetimes(sizes: Mapping[str, int], circumstances: str = "", *, steps: int = 2) -> Picture:
    """A lane for each kind of state in `sizes`, {"params": bytes, …}: how many of its bytes are alive through `steps`
    training steps, all lanes on one scale. Raises KeyError for a kind that has no lifetime here (see LIVES)."""
    size, name = unit(max(sizes.values()))
    figure, lanes = picture(len(sizes), 1, width=8.5, height=1.4 + 1.0 * len(sizes), sharex=True, sharey=True)
    borders = len(PHASES) * steps
    for axes, (kind, count) in zip(np.atleast_1d(lanes), sizes.items(), strict=True):
        corners = [(step * len(PHASES) + place, share) for step in range(steps) for place, share in LIVES[kind]]
        places, shares_alive = zip(*corners, strict=True)
        axes.fill_between(places, [count * share / size for share in shares_alive], color=COLOURS[kind])
        axes.annotate(
            f"{kind}, {binary(count)}", (0, 1), (6, -4), xycoords="axes fraction", textcoords="offset points", va="top",
            bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.8, "pad": 1.5},
        )  # fmt: skip
        axes.set_xticks(range(borders + 1), [])
        axes.set_xlim(0, borders)
        axes.set_ylim(0, 1.6 * max(sizes.values()) / size)  # with room for the words
        axes.tick_params(axis="x", length=0)
        axes.axvline(len(PHASES), color=INK, linewidth=1.4)
    last = np.atleast_1d(lanes)[-1]
    for place in range(borders):
        last.text(place + 0.5, -0.22, PHASES[place % len(PHASES)], ha="center", va="top", size=10,
                  transform=last.get_xaxis_transform())  # fmt: skip
    figure.supylabel(f"{name} alive", size=11)
    stay = sum(count for kind, count in sizes.items() if _stays(kind))
    finding = f"Between two steps {binary(stay)} of {binary(sum(sizes.values()))} are alive"
    title(np.atleast_1d(lanes)[0], finding, circumstances)
    figure.alt = (
        f"{finding}. A lane for each kind, through {steps} steps: "
        + "; ".join(f"{kind} {binary(count)}, {_life(kind)}" for kind, count in sizes.items())
        + "."
    )
    return figure


def _life(kind: str) -> str:
    if _stays(kind):
        return "always there"
    phases = [PHASES[min(place, len(PHASES) - 1)] for place, _ in LIVES[kind]]
    shares_alive = [share for _, share in LIVES[kind]]
    last = len(shares_alive) - 1 - shares_alive[::-1].index(1)
    return f"grows in {phases[shares_alive.index(1) - 1]} and goes in {phases[last]}"


def _stays(kind: str) -> bool:
    return all(share == 1 for _, share in LIVES[kind])


@styled
def through_layers(
    curves: Mapping[str, Sequence[float]],
    finding: str,
    circumstances: str = "",
    *,
    what: str = "size of the numbers",
    limits: tuple[float, float] = (0.0, math.inf),
) -> Picture:
    """A line for each of `curves`, {name: one positive number for each layer}, on a logarithmic axis. The pale line is 1.
    A number that is 0 or not finite is left out. limits: ends of the axis (0 and inf: as wide as the lines need); a line
    that leaves it has its name where it was seen last."""
    figure, axes = picture(width=8.5, height=4.2)
    longest = max(map(len, curves.values()))
    axes.plot([0.5, longest + 0.3], [1, 1], color="#BBBBBB", linewidth=6, alpha=0.5, solid_capstyle="butt")
    lines = (LINES * len(curves))[
        -len(curves) :
    ]  # from the back, so that the last curve of each picture has one colour
    said, ends = [], []
    for (name, values), (colour, dashes) in zip(curves.items(), lines, strict=True):
        shown = [value if math.isfinite(value) and value > 0 else math.nan for value in values]
        axes.plot(range(1, len(shown) + 1), shown, color=colour, linestyle=dashes, marker="o", markersize=3.5)
        there = [(place, value) for place, value in enumerate(shown, 1) if limits[0] <= value <= limits[1]]
        if there:
            ends.append((there[-1], name, colour))
        said.append(f"{name}: {_few(values[0])} in the first layer, {_few(values[-1])} in the last")
    axes.set_yscale("log")
    axes.set_ylim(limits[0] or None, limits[1] if math.isfinite(limits[1]) else None)
    for (place, height), (_, name, colour) in zip(_apart([end[0] for end in ends], axes), ends, strict=True):
        axes.annotate(name, (place, height), (8, 0), textcoords="offset points", color=colour, va="center", size=10)
    axes.set_xlim(0.5, 1.22 * longest + 1)
    axes.set_xticks([layer for layer in range(1, longest + 1) if layer % max(1, longest // 8) == 0])
    axes.set(xlabel="layer", ylabel=what)
    title(axes, finding, circumstances)
    figure.alt = f"{finding}. A line through the layers for each start, on a logarithmic axis. {'; '.join(said)}."
    return figure


def _apart(ends: Sequence[tuple[int, float]], axes: Any) -> list[tuple[int, float]]:
    """The ends of lines, moved up where two labels would lie on each other, or one on the axis."""
    low, high = np.log10(axes.get_ylim())
    gap = 0.07 * (high - low)
    order = sorted(range(len(ends)), key=lambda i: ends[i][1])
    moved, before = list(ends), low - gap / 2  # not on the axis
    for i in order:
        height = max(math.log10(ends[i][1]), before + gap)
        moved[i], before = (ends[i][0], 10**height), height
    return moved


@styled
def shares(
    values: Mapping[str, Mapping[int, np.ndarray]],
    finding: str,
    circumstances: str = "",
    *,
    limits: tuple[float, float],
) -> Picture:
    """Histograms: a row for each start in `values`, {name: {layer: its numbers}}, a column for each layer, between
    `limits`. Each is as high as its own tallest bar."""
    layers = list(next(iter(values.values())))
    figure, grid = picture(
        len(values), len(layers), width=8.5, height=1.2 + 1.05 * len(values), squeeze=False, sharex=True
    )
    said = []
    for row, (name, of_layers) in zip(grid, values.items(), strict=True):
        for axes, layer in zip(row, layers, strict=True):
            counts, edges = np.histogram(np.clip(of_layers[layer], *limits), bins=31, range=limits)
            axes.bar(edges[:-1], counts / counts.max(), width=np.diff(edges), align="edge", color=BARS)
            axes.set_yticks([])
            axes.grid(visible=False)
            axes.set_xlim(*limits)
        row[0].set_ylabel(name, rotation=0, ha="right", va="center", color=INK)
        last = of_layers[layers[-1]]
        said.append(f"{name}: half of the numbers of layer {layers[-1]} are within ±{_few(np.median(np.abs(last)))}")
    for axes, layer in zip(grid[0], layers, strict=True):
        axes.set_title(f"layer {layer}", size=10.5, weight="normal", loc="center", pad=4)
    figure.suptitle(finding, x=0.01, ha="left", size=13, weight="bold")
    if circumstances:
        figure.supxlabel(circumstances, x=0.01, ha="left", size=10, color=QUIET)
    figure.alt = f"{finding}. {'; '.join(said)}."
    return figure


def _few(value: float) -> str:
    return f"{value:.2g}"
