"""Pictures of notebook 03: a slope by two steps, one neuron, a line that is fitted, a product number by number, the best
step, and what grows with the batch."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import FancyArrowPatch, FancyBboxPatch, Rectangle

from dlcourse.units import binary
from dlcourse.viz.style import COLOURS, INK, QUIET, Picture, picture, styled, title

MAIN, EDGE, LIGHT = "#0B6E75", "#999999", "#CFCFCA"  # none of them a colour of a kind
BATCHES = 2 ** np.arange(15)  # 1 to 16384


@styled
def secants(f: Callable[[Any], Any], at: float, steps: Sequence[float], name: str) -> Picture:
    """The curve of f near `at`, twice. Left: lines through the point and one h to its right. Right: lines through the
    points h to its left and to its right. Both with the slope of each line, for each h in `steps`, the largest first.
    """
    figure, (one, both) = picture(1, 2, width=10, height=4.4, sharey=True)
    reach = 1.25 * max(steps)
    curve = np.linspace(at - reach, at + reach, 200)
    tones = [LIGHT, "#7FA9A8", MAIN]
    said = {}
    for axes, sides in ((one, 1), (both, 2)):
        axes.plot(curve, f(curve), color=INK)
        slopes = []
        for h, tone in zip(steps, tones, strict=True):
            left = at - h if sides == 2 else at
            slope = (f(at + h) - f(left)) / (at + h - left)
            slopes.append(slope)
            axes.plot(curve, f(left) + slope * (curve - left), color=tone, linewidth=1.5)
            axes.plot(
                [left, at + h], [f(left), f(at + h)], "o", color=tone, markersize=6, label=f"h = {h:g}: {slope:.4g}"
            )
        axes.plot(at, f(at), "o", color=INK, markersize=7)
        axes.set_xlabel("w")
        axes.legend(loc="upper left", title="slope of the line", alignment="left", title_fontsize=10)
        said[sides] = ", ".join(f"{slope:.4g} for h = {h:g}" for h, slope in zip(steps, slopes, strict=True))
    low, high = f(curve).min(), f(curve).max()
    one.set_ylim(low - 0.1 * (high - low), high + 0.1 * (high - low))
    one.set_ylabel(name)
    title(one, "A step to one side", f"{name} at w = {at:g}")
    title(both, "A step to both sides is nearer", f"{name} at w = {at:g}")
    figure.alt = f"{name} at {at:g}, slopes of lines. A step to one side: {said[1]}. To both sides: {said[2]}."
    return figure


@styled
def chain(boxes: Sequence[tuple[str, float, float]], factors: Sequence[str]) -> Picture:
    """A chain of numbers, each computed from the one before it. boxes: (name, its value, its gradient). factors: what the
    gradient is multiplied by on the way back from each box to the one before it."""
    step, wide, high = 2.9, 1.5, 0.86
    width, height = step * (len(boxes) - 1) + wide + 0.4, 2.3
    figure, axes = picture(width=width, height=height)
    figure.set_layout_engine("none")
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, width)
    axes.set_ylim(height, 0)
    middle = 1.15
    for place, (name, value, gradient) in enumerate(boxes):
        left = 0.2 + step * place
        box = FancyBboxPatch((left, middle - high / 2), wide, high, boxstyle="round,pad=0,rounding_size=0.1")
        box.set(facecolor="white", edgecolor=EDGE)
        axes.add_patch(box)
        axes.text(
            left + wide / 2, middle - 0.2, f"{name} = {value:g}", size=11, ha="center", va="center", weight="bold"
        )
        words = f"gradient {gradient:g}"
        axes.text(left + wide / 2, middle + 0.2, words, size=10.5, ha="center", va="center", color=COLOURS["grads"])
        if place:
            start, end = left - (step - wide), left
            _arrow(axes, (start, middle - 0.22), (end, middle - 0.22), INK)
            _arrow(axes, (end, middle + 0.22), (start, middle + 0.22), COLOURS["grads"])
            centre = (start + end) / 2
            axes.text(
                centre, middle + 0.45, factors[place - 1], size=10, ha="center", va="center", color=COLOURS["grads"]
            )
    axes.text(0.2, 0.3, "forward: values, from left to right", size=10, color=INK, va="center")
    axes.text(
        0.2, height - 0.2, "backward: gradients, from right to left", size=10, color=COLOURS["grads"], va="center"
    )
    values = ", ".join(f"{name} = {value:g}" for name, value, _ in boxes)
    back = ", ".join(f"{gradient:g} for {name}" for name, _, gradient in reversed(boxes))
    figure.alt = f"A chain of numbers. Forward: {values}. The gradients, backward: {back}."
    return figure


def _arrow(axes: Any, start: tuple[float, float], end: tuple[float, float], colour: str) -> None:
    look: Any = {"arrowstyle": "-|>", "mutation_scale": 12, "linewidth": 1.4, "shrinkA": 3, "shrinkB": 3}
    arrow = FancyArrowPatch(start, end, color=colour, **look)
    axes.add_patch(arrow)


@styled
def fitted(
    x: np.ndarray,
    t: np.ndarray,
    path: Sequence[tuple[float, float, float]],
    shown: Sequence[int],
    circumstances: str = "",
) -> Picture:
    """A line w x + b on its way to the points (x, t). path: (w, b, loss) before the first step and after each one. Left:
    the points, and the line after each of the steps `shown`. Right: the loss. The axes are the same for every path."""
    figure, (left, right) = picture(1, 2, width=10, height=4)
    left.plot(x, t, "o", color=INK, markersize=5)
    ends = np.array([x.min(), x.max()])
    labels: list[float] = []  # where they stand: one that would cover another is left out
    for step in reversed(shown):
        w, b, _ = path[step]
        last = step == shown[-1]
        left.plot(ends, w * ends + b, color=MAIN if last else EDGE, linewidth=2.5 if last else 1.2)
        end = w * ends[1] + b
        if all(abs(end - other) > 0.05 * np.ptp(t) for other in labels):
            labels.append(end)
            words = left.annotate(f"step {step}", (ends[1], end), (4, 0), textcoords="offset points", va="center")
            words.set(size=9.5, color=MAIN if last else QUIET, annotation_clip=True)
    left.set_xlim(ends[0] - 0.1, ends[1] + 0.2 * (ends[1] - ends[0]))
    left.set_ylim(t.min() - 0.3 * np.ptp(t), t.max() + 0.3 * np.ptp(t))
    left.set(xlabel="x", ylabel="t")
    losses = [loss for _, _, loss in path]
    best = ((np.polyval(np.polyfit(x, t, 1), x) - t) ** 2).mean()
    right.semilogy(losses, color=MAIN)
    right.axhline(best, color=INK, linewidth=1.2, linestyle="--")
    right.text(len(losses) - 1, 0.75 * best, "the best line", size=9.5, ha="right", va="center")
    right.set_ylim(best / 2, 100 * losses[0])
    right.set(xlabel="step", ylabel="loss")
    finding, end = _arrival(losses, best)
    lines = f"lines after {', '.join(map(str, shown[:-1]))} and {shown[-1]} steps"
    title(left, finding, f"{circumstances}; {lines}" if circumstances else lines)
    change = "falls" if losses[-1] < losses[0] else "grows"
    title(right, f"The loss {change} from {losses[0]:.2f} to {end}", "on a logarithmic scale")
    found = "; ".join(f"step {step}: {path[step][0]:.2f} x + {path[step][1]:.2f}" for step in shown)
    figure.alt = f"{finding}. {len(x)} points and lines. {found}. The loss goes from {losses[0]:.2f} to {end}."
    return figure


def _arrival(losses: Sequence[float], best: float) -> tuple[str, str]:
    """-> where the line is after the last step, in words, and its loss."""
    steps = len(losses) - 1
    if losses[-1] > losses[0]:
        return "The line leaves the points", f"{losses[-1]:.1e}"
    if losses[-1] < 1.05 * best:
        return f"The line lies along the points after {steps} steps", f"{losses[-1]:.3f}"
    return f"After {steps} steps the line is still on its way", f"{losses[-1]:.3f}"


@styled
def product(
    factors: Sequence[tuple[str, np.ndarray, Any]], result: tuple[str, np.ndarray, Any], finding: str
) -> Picture:
    """Matrices number by number: `factors`, with a product sign between them, and their `result`. Each is (name, array,
    index of the numbers that are filled with colour), such as ("x", x, np.s_[:, 1])."""
    cell, gap, top = 0.5, 0.75, 1.05
    panels = [*factors, result]
    width = 0.3 + sum(cell * array.shape[1] + gap for _, array, _ in panels)
    height = top + cell * max(array.shape[0] for _, array, _ in panels) + 0.2
    figure, axes = picture(width=max(width, 7.5), height=height)
    figure.set_layout_engine("none")
    axes.set_position((0, 0, 1, 1))
    axes.set_axis_off()
    axes.set_xlim(0, max(width, 7.5))
    axes.set_ylim(height, 0)
    axes.text(0.2, 0.28, finding, size=13, weight="bold", va="center")
    left, said = 0.3, []
    for place, (name, array, chosen) in enumerate(panels):
        marked = np.zeros(array.shape, dtype=bool)
        marked[chosen] = True
        _grid(axes, left, top, cell, array, marked)
        axes.text(left, top - 0.22, name, size=11, weight="bold", va="center")
        axes.text(left + 0.14 * len(name) + 0.08, top - 0.22, f"{array.shape}", size=10, color=QUIET, va="center")
        said.append(f"{name} {array.shape}: {', '.join(f'{number:g}' for number in array[marked])}")
        left += cell * array.shape[1]
        if place < len(panels) - 1:
            sign = "=" if place == len(factors) - 1 else "@"
            axes.text(left + gap / 2, top + cell * 1.5, sign, size=15, ha="center", va="center")
        left += gap
    figure.alt = f"{finding}. Filled with colour: {'; '.join(said)}."
    return figure


def _grid(axes: Any, left: float, top: float, cell: float, array: np.ndarray, marked: np.ndarray) -> None:
    for row, column in np.ndindex(array.shape):
        corner = (left + cell * column, top + cell * row)
        filled = bool(marked[row, column])
        axes.add_patch(
            Rectangle(corner, cell, cell, facecolor=MAIN if filled else "white", edgecolor=EDGE, linewidth=1)
        )
        tone = "white" if filled else INK
        middle = corner[0] + cell / 2, corner[1] + cell / 2
        axes.text(*middle, f"{array[row, column]:g}", size=10.5, color=tone, ha="center", va="center")


@styled
def step_errors(errors: Mapping[str, Mapping[float, float]], circumstances: str = "") -> Picture:
    """The error of a slope against the step, both logarithmic. errors: {dtype: {h: relative error}}."""
    figure, axes = picture(width=8.5, height=4.4)
    tones = dict(zip(errors, (MAIN, "#C4572B"), strict=False))
    best = {}
    for name, found in errors.items():
        axes.loglog(list(found), list(found.values()), "o-", color=tones[name], markersize=4)
        h = min(found, key=lambda step: found[step])
        best[name] = h, found[h]
        axes.plot(*best[name], "o", color=tones[name], markersize=10)
        left = min(found)
        place = (0, -18) if found[left] > 0.1 else (8, 8)
        words = f"{name}: best at h = {h:.0e}"
        axes.annotate(words, (left, found[left]), place, textcoords="offset points", color=tones[name], size=10.5)
    axes.set_xlabel("step h")
    axes.set_ylabel("relative error")
    axes.set_ylim(min(error for _, error in best.values()) / 30, 3)
    title(axes, "A step can be too large and too small", circumstances)
    said = "; ".join(f"{name}: smallest error {error:.0e} at h = {h:.0e}" for name, (h, error) in best.items())
    figure.alt = f"A step can be too large and too small. The error falls with h and rises again. {said}."
    return figure


@styled
def growth(batch: int, width: int, layers: int, measured: Mapping[int, int] | None = None) -> Picture:
    """Bytes of a stack of affine layers, all `width` wide, in float32, against the batch: the parameters, which are the
    same for each batch, and the inputs saved for backward. A dot on each line at `batch`. measured: {batch: saved bytes}."""
    params, saved = stack_bytes(batch, width, layers)
    figure, axes = picture(width=8.5, height=4.4)
    lines = {"params": np.full(len(BATCHES), params), "saved": stack_bytes(1, width, layers)[1] * BATCHES}
    for name, line in lines.items():
        axes.loglog(BATCHES, line, color=COLOURS[name], linewidth=2.5)
    for name, count, below in (("params", params, saved > params), ("saved", saved, saved <= params)):
        axes.plot(batch, count, "o", color=COLOURS[name], markersize=10, markeredgecolor="white")
        place = (-8 if batch > 1024 else 8, -20 if below else 12)
        side = "right" if batch > 1024 else "left"
        words = axes.annotate(f"{name} {binary(count)}", (batch, count), place, textcoords="offset points", ha=side)
        words.set(size=10.5, weight="bold", bbox={"facecolor": "white", "edgecolor": "none", "pad": 1, "alpha": 0.85})
    if measured:
        axes.plot(list(measured), list(measured.values()), "x", color=INK, markersize=9, markeredgewidth=1.8, zorder=5)
        axes.text(0.99, 0.04, "×: measured", transform=axes.transAxes, ha="right", size=10)
    axes.axvline(width + 1, color=QUIET, linestyle="--", linewidth=1.2)
    axes.text(width + 1, 2**11.6, f" equal at {width + 1:,}", size=10, color=QUIET)
    axes.set_xlim(2**-0.3, 2**14.3)
    axes.set_ylim(2**11, 2**33)
    axes.set_xticks(BATCHES[::2], [f"{size:,}" for size in BATCHES[::2]])
    powers = range(12, 33, 4)
    axes.set_yticks(
        [2**power for power in powers], [binary(2**power).replace(".00", "").replace(".0", "") for power in powers]
    )
    axes.minorticks_off()
    axes.set_xlabel("batch")
    ratio = saved / params
    finding = f"Saved is {ratio:.3g} × the parameters"
    many = "affine layer" if layers == 1 else "affine layers"
    title(axes, finding, f"{layers} {many}, {width:,} wide, batch {batch:,}, float32")
    figure.alt = (
        f"{finding}: {layers} {many}, {width:,} wide. At batch {batch:,} the parameters are {binary(params)} and the "
        f"saved inputs {binary(saved)}. They are equal at batch {width + 1:,}."
    )
    return figure


def stack_bytes(batch: int, width: int, layers: int, itemsize: int = 4) -> tuple[int, int]:
    """-> bytes of the parameters, bytes of the saved inputs, of `layers` affine layers from `width` to `width` numbers."""
    return layers * (width + 1) * width * itemsize, layers * batch * width * itemsize
