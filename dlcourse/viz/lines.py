"""Lines: one number after the other, each line with its name at its end."""

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcourse.train import History
from dlcourse.viz.style import INK, LINES, REST, SECOND, Picture, picture, styled, title


@styled
def lines(
    curves: Mapping[str, Any],
    finding: str = "",
    circumstances: str = "",
    *,
    xlabel: str = "",
    ylabel: str = "",
    log: str = "",
    marker: str = "",
    limits: tuple[float | None, float | None] = (None, None),
    looks: Mapping[str, tuple[str, str]] | None = None,
    legend: bool = False,
    on: Any = None,
) -> Picture:
    """A line for each of `curves`, {name: numbers (P,), counted from 1; or (x, numbers)}, with its name at its end. A number
    that is not finite, or not positive on a logarithmic axis, is left out.

    log: "x", "y" or "xy". limits: ends of the upright axis; a line that leaves it has its name where it was seen last.
    looks: {name: (colour, dashes)}, for the others LINES by turns. legend: names in a corner, not at the ends. on: axes to
    draw in, a panel of a larger picture.
    """
    figure, axes = (on.figure, on) if on is not None else picture()
    axes.set(xlabel=xlabel, ylabel=ylabel)
    ends, said = [], []
    for number, (name, curve) in enumerate(curves.items()):
        colour, dashes = (looks or {}).get(name, LINES[number % len(LINES)])
        x, y = curve if isinstance(curve, tuple) else (range(1, len(curve) + 1), curve)
        x, y = np.asarray(x, float), np.asarray(y, float)
        shown = np.isfinite(y) & ((y > 0) | ("y" not in log))
        drawn = np.where(shown, x, np.nan), np.where(shown, y, np.nan)
        axes.plot(*drawn, dashes, color=colour, marker=marker, ms=4, label=name)
        low, high = (limit if limit is not None else far for limit, far in zip(limits, (-np.inf, np.inf), strict=True))
        seen = np.flatnonzero(shown & (y >= low) & (y <= high))
        if len(seen):
            ends.append((x[seen[-1]], y[seen[-1]], name, colour))
        said.append(f"{name}: from {y[0]:.3g} to {y[-1]:.3g}" if len(y) else f"{name}: nothing")
    for axis in log:
        getattr(axes, f"set_{axis}scale")("log")
    axes.set_ylim(*limits)
    if legend:
        axes.legend()
    else:
        name_ends(axes, ends)
    title(axes if on is not None else figure, finding, circumstances)
    figure.alt = f"{figure.alt} {finding}. A line for each: {'; '.join(said)}.".strip()
    return figure


def name_ends(axes: Any, ends: Sequence[tuple[float, float, str, str]]) -> None:
    """Write (x, y, name, colour) at the right of each point, moved up where two names would lie on each other."""
    bottom, top = axes.get_ylim()
    scale = math.log10 if axes.get_yscale() == "log" else float
    height = axes.figure.get_size_inches()[1] * axes.get_position().height
    before = -math.inf
    for x, y, name, colour in sorted(ends, key=lambda end: end[1]):
        place = (scale(y) - scale(bottom)) / (scale(top) - scale(bottom))
        before = max(place, before + 0.17 / height)
        axes.annotate(
            name, (x, before), (8, 0), xycoords=("data", "axes fraction"), textcoords="offset points", color=colour,
            va="center", size=10,
        )  # fmt: skip


@styled
def curves(history: History) -> Picture:
    """The loss of each step (light), the mean of each epoch (a level line over its steps) and, where there was
    validation, its loss at the end of each epoch, with the accuracy beside."""
    accuracy = [value for value in history.column("val_accuracy") if value is not None]
    figure, axes = picture(1, 2 if accuracy else 1, width=8.4 if accuracy else 7.2, squeeze=False)
    loss = axes[0, 0]
    draw_loss(loss, history)
    finding = ""
    if history.step_loss:  # the axis shows what the title names, and a point at 0 whole
        top = np.nanmax([loss.get_ylim()[1], 1.05 * history.step_loss[0]])
        loss.set_ylim(-0.03 * top, top)
        finding = f"The loss goes from {history.step_loss[0]:.2f} to {history.step_loss[-1]:.2f}"
    title(loss, finding, f"{len(history.step_loss)} steps, {len(history.epochs)} whole epochs")
    figure.alt = f"{finding}. Loss against steps, with the mean of each epoch."
    if accuracy:
        found = f"Accuracy ends at {accuracy[-1]:.1%}"
        numbers = range(1, len(accuracy) + 1)
        axes[0, 1].plot(numbers, [100 * value for value in accuracy], "o-", color=SECOND)
        axes[0, 1].set(xlabel="epoch", ylabel="per cent right", ylim=(-3, 103))
        axes[0, 1].set_xticks([number for number in numbers if number % -(-len(numbers) // 10) == 0])
        title(axes[0, 1], found, "on the validation data, after each epoch")
        figure.alt += f" Validation: {found[0].lower()}{found[1:]}."
    figure.legend(*loss.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def draw_loss(axes: Any, history: History) -> None:
    """The loss of each step, the mean of each epoch and the validation loss, in `axes`."""
    losses = history.step_loss
    finite = [loss for loss in losses if math.isfinite(loss)]
    axes.plot(range(1, len(losses) + 1), losses, color=REST, linewidth=1, label="step")
    if history.epochs:
        length = _steps_per_epoch(history)
        ends = [length * number for number in range(1, len(history.epochs) + 1)]
        starts = [end - length for end in ends]
        axes.hlines(history.column("loss"), starts, ends, color=INK, linewidth=2.5, label="mean of an epoch")
        if checked := history.column("val_loss"):
            axes.plot(ends, checked, "o", color=SECOND, label="validation")
    axes.set(xlabel="step", ylabel="loss", ylim=(0, 1.05 * float(np.percentile(finite, 99)) if finite else 1))


def _steps_per_epoch(history: History) -> int:
    """A training that was stopped may have a part of an epoch at its end: the right length gives the first mean."""
    steps, epochs = len(history.step_loss), len(history.epochs)
    possible = range(steps // (epochs + 1) + 1, steps // epochs + 1) if history.stopped else [steps // epochs]
    return min(possible, key=lambda n: abs(sum(history.step_loss[:n]) / n - history.epochs[0]["loss"]))
