"""Pictures of normalization: which numbers share a statistic, sizes through layers, running statistics, loss curves."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import Rectangle

from dlcourse.viz.style import INK, QUIET, Picture, picture, styled, title

# None of them a colour of a kind. For groups: eight tones, dark and pale by turns.
GROUPS = ("#0B6E75", "#E8B9A0", "#5A3E7A", "#B7D3A8", "#8C4A2F", "#A9C7E8", "#3F5D3A", "#E3D48C")
METHODS = {"none": ("#777777", ":"), "BatchNorm": ("#0B6E75", "-"), "LayerNorm": ("#C4572E", "--")}
EDGE = "#FFFFFF"


@styled
def shared_statistics(
    shape: tuple[int, int, int, int], groupings: Mapping[str, tuple[int, ...]], finding: str, circumstances: str = ""
) -> Picture:
    """The numbers of an array of `shape` (N, H, W, C) as squares, a block of H × W for each sample and channel. Squares of
    one colour share a mean and a variance.

    groupings: {name of a panel: the axes that its mean goes over}. At most 8 groups have a colour of their own; with more,
    the colours repeat, and each square has the number of its group.
    """
    samples, height, width, channels = shape
    figure, axes = picture(1, len(groupings), width=3.0 * len(groupings), height=3.6, squeeze=False)
    said = []
    for panel, (name, over) in zip(axes[0], groupings.items(), strict=True):
        numbers = groups(shape, over)
        said.append(f"{name}: {numbers.max() + 1} groups of {numbers.size // (numbers.max() + 1)} numbers")
        for sample, row, column, channel in np.ndindex(shape):
            left, top = channel * (width + 0.5) + column, sample * (height + 0.5) + row
            _square(panel, left, top, int(numbers[sample, row, column, channel]))
        _block_names(panel, samples, channels, height, width)
        panel.set_title(name, size=11, weight="normal", loc="center", pad=18)
        panel.annotate(
            said[-1].removeprefix(f"{name}: "), (0.5, 1), (0, 4), xycoords="axes fraction", textcoords="offset points",
            size=9.5, color=QUIET, ha="center",
        )  # fmt: skip
    _over_all(figure, finding, circumstances)
    figure.alt = f"{finding}. {circumstances}{'. ' if circumstances else ''}{'; '.join(said)}."
    return figure


def groups(shape: tuple[int, ...], over: tuple[int, ...]) -> np.ndarray:
    """For each number of an array of `shape`: which group it is in when a mean goes over the axes `over`. -> integers."""
    kept = tuple(1 if axis in over else length for axis, length in enumerate(shape))
    return np.broadcast_to(np.arange(int(np.prod(kept))).reshape(kept), shape)


def _square(panel: Any, left: float, top: float, group: int) -> None:
    colour = GROUPS[group % len(GROUPS)]
    panel.add_patch(Rectangle((left, top), 1, 1, facecolor=colour, edgecolor=EDGE, linewidth=1.5))
    bright = sum(int(colour[i : i + 2], 16) for i in (1, 3, 5)) > 400
    tone = INK if bright else "white"
    panel.text(left + 0.5, top + 0.52, f"{group + 1}", size=9, color=tone, ha="center", va="center")


def _block_names(panel: Any, samples: int, channels: int, height: int, width: int) -> None:
    for channel in range(channels):
        panel.text(channel * (width + 0.5) + width / 2, -0.25, f"channel {channel}", size=9, ha="center", color=QUIET)
    for sample in range(samples):
        middle = sample * (height + 0.5) + height / 2
        panel.text(-0.25, middle, f"picture {sample}", size=9, ha="center", va="center", rotation=90, color=QUIET)
    panel.set_xlim(-0.7, channels * (width + 0.5) - 0.4)
    panel.set_ylim(samples * (height + 0.5) - 0.4, -0.7)
    panel.set_aspect("equal")
    panel.set_axis_off()


@styled
def through_layers(
    rows: Mapping[str, Sequence[float]], finding: str, circumstances: str = "", *, normalized: Sequence[float] = ()
) -> Picture:
    """Standard deviation after each layer, a line for each of `rows`, on a logarithmic axis.

    normalized: one further line, drawn thick, of a network with normalization.
    """
    figure, axes = picture(width=8.5, height=4.0)
    styles = ("-", "--", ":", "-.")
    for (name, sizes), style in zip(rows.items(), styles, strict=False):
        places = range(1, len(sizes) + 1)
        axes.plot(places, sizes, style, color=INK, marker="o", markersize=4)
        axes.annotate(name, (places[-1], sizes[-1]), (8, 0), textcoords="offset points", va="center", size=10)
    if len(normalized):
        colour = METHODS["BatchNorm"][0]
        axes.plot(range(1, len(normalized) + 1), normalized, color=colour, linewidth=5, alpha=0.6)
        axes.annotate(
            "all, normalized", (len(normalized), normalized[-1]), (8, 0), textcoords="offset points", va="center",
            size=10, color=colour,
        )  # fmt: skip
    longest = max(len(sizes) for sizes in rows.values())
    axes.set_yscale("log")
    axes.set_xlim(0.8, longest + 1.5)
    axes.set_xticks(range(1, longest + 1))
    axes.set_xlabel("layer")
    axes.set_ylabel("standard deviation")
    title(axes, finding, circumstances)
    ends = "; ".join(f"{name} ends at {sizes[-1]:.2g}" for name, sizes in rows.items())
    figure.alt = f"{finding}. A line for each network, layer by layer: {ends}."
    return figure


@styled
def running(
    found: Sequence[float],
    followed: Sequence[float],
    right: Sequence[float],
    finding: str,
    circumstances: str = "",
    *,
    span: tuple[float, float] | None = None,
) -> Picture:
    """A number that each batch measures (points), the running one that follows it (line) and the right one (dashed)."""
    figure, axes = picture(width=8.5, height=4.0)
    steps = range(1, len(found) + 1)
    axes.plot(steps, found, "o", color="#9A9A9A", markersize=4, label="one batch")
    axes.plot(steps, right, "--", color=INK, linewidth=1.5, label="true")
    axes.plot(steps, followed, color=METHODS["BatchNorm"][0], linewidth=3, label="running")
    axes.set_xlabel("step")
    axes.set_ylabel("mean of one channel")
    if span:
        axes.set_ylim(*span)
    axes.legend(loc="lower right", ncols=3)
    title(axes, finding, circumstances)
    figure.alt = (
        f"{finding}. {len(found)} batches from {min(found):.2f} to {max(found):.2f}; the running mean ends at "
        f"{followed[-1]:.2f}, the right one at {right[-1]:.2f}."
    )
    return figure


@styled
def losses(
    panels: Mapping[str, Mapping[str, Sequence[float]]], finding: str, circumstances: str = "", *, smooth: int = 10
) -> Picture:
    """Loss against step: a panel for each of `panels`, {title: {method: loss of each step}}, all with one axis.

    A point is the mean of the last `smooth` steps. A curve that is shorter than that is left out.
    """
    figure, axes = picture(1, len(panels), width=9.5, height=3.9, sharey=True, squeeze=False)
    said = []
    for panel, (name, curves) in zip(axes[0], panels.items(), strict=True):
        for method, curve in curves.items():
            colour, style = METHODS[method]
            if len(curve) >= smooth:
                means = np.convolve(curve, np.full(smooth, 1 / smooth), mode="valid")
                panel.plot(range(smooth, len(curve) + 1), means, style, color=colour, label=method)
                said.append(f"{name}, {method}: {means[-1]:.2f}")
            else:
                panel.plot([], [], style, color=colour, label=method)
                said.append(f"{name}, {method}: stopped")
                height = 0.62 - 0.08 * len(panel.texts)  # under the legend of the last panel
                panel.text(
                    0.97, height, f"{method}: stopped", transform=panel.transAxes, size=10, ha="right", color=colour
                )
        panel.set_title(name, size=11, weight="normal", loc="center")
        panel.set_xlabel("step")
        panel.set_ylim(0, 3)
    axes[0][0].set_ylabel("loss")
    axes[0][-1].legend(loc="upper right")
    _over_all(figure, finding, circumstances)
    figure.alt = f"{finding}. {circumstances}{'. ' if circumstances else ''}Loss at the end: {'; '.join(said)}."
    return figure


def _over_all(figure: Picture, finding: str, circumstances: str) -> None:
    """A title over several panels, as `title` writes it over one."""
    figure.suptitle(f"{finding}\n", size=13, weight="bold", x=0.02, ha="left", color=INK)
    figure.text(0.02, 1 - 0.38 / figure.get_figheight(), circumstances, size=10, va="top", color=QUIET)
