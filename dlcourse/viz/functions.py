"""Pictures of functions: activations and their slopes, what a row of scores says, and a loss that falls."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dlcourse.viz.arrays import ARRAY, REST
from dlcourse.viz.style import COLOURS, INK, QUIET, Picture, picture, styled, title


@styled
def curves(
    x: np.ndarray,
    functions: Mapping[str, tuple[np.ndarray, np.ndarray]],
    finding: str,
    *,
    low: float = -1.2,
    high: float = 3.0,
) -> Picture:
    """A panel for each of `functions`, {name: (y, slope)}: y as a line, its slope dashed. x, y and slope (P,), one after
    the other along x. `finding`: the title. low, high: the ends of every upright axis."""
    figure, axes = picture(1, len(functions), width=9.4, height=3.3, sharex=True, sharey=True, squeeze=False)
    said = []
    for panel, (name, (y, slope)) in zip(axes[0], functions.items(), strict=True):
        panel.axhline(0, color=QUIET, linewidth=0.8)
        panel.axvline(0, color=QUIET, linewidth=0.8)
        panel.plot(x, y, color=ARRAY, linewidth=2.5, label="y")
        panel.plot(x, slope, color=COLOURS["grads"], linestyle="--", label="slope")
        panel.set_ylim(low, high)
        panel.set_xlabel("x")
        panel.annotate(
            name, (0, 1), (4, -4), xycoords="axes fraction", textcoords="offset points", va="top", weight="bold"
        )
        said.append(f"{name} from {y[0]:.2f} to {y[-1]:.2f}, slope from {slope.min():.2f} to {slope.max():.2f}")
    axes[0][0].legend(loc="upper left", bbox_to_anchor=(0, 0.9))
    axes[0][0].set_xticks(np.linspace(x[0], x[-1], 5))
    _over(figure, finding)
    figure.alt = f"{finding}. A panel for each function, with its slope: {'; '.join(said)}."
    return figure


def _over(figure: Picture, finding: str) -> None:
    """Write what several panels show over all of them."""
    figure.suptitle(finding, x=0.01, ha="left", size=13, weight="bold", color=INK)


@styled
def answer(scores: np.ndarray, label: int, names: Sequence[str] | None = None) -> Picture:
    """Three panels for one sample: its scores, their softmax, and the gradient of the cross-entropy with respect to the
    scores. The right answer is in colour, and the title says its probability and the loss.

    scores: (K,), finite.  label: the right one, 0..K-1.  names: a name for each of the K. Raises ValueError for other
    shapes or labels.
    """
    scores = np.asarray(scores, dtype=np.float64)
    if scores.ndim != 1 or not 0 <= label < scores.size:
        raise ValueError(f"answer draws one row of scores and a label in it; got shape {scores.shape}, label {label}")
    names = list(names) if names is not None else [str(i) for i in range(scores.size)]
    shifted = scores - scores.max()
    e = np.exp(shifted)
    p = e / e.sum()
    loss = float(np.log(e.sum()) - shifted[label])
    gradient = p.copy()
    gradient[label] -= 1
    finding = f"The right answer has {p[label]:.1%}: the loss is {loss:.2f}"
    figure, axes = picture(1, 3, width=9.2, height=3.1)
    panels = (("scores", scores, None), ("probabilities", p, (0, 1.12)), ("gradient", gradient, (-1.12, 1.12)))
    for panel, (what, values, limits) in zip(axes, panels, strict=True):
        _bars(panel, what, values, limits, label, names)
    _over(figure, finding)
    rows = "; ".join(f"{n} {s:.4g}, {q:.3f}, {g:+.3f}" for n, s, q, g in zip(names, scores, p, gradient, strict=True))
    figure.alt = f"{finding}. {names[label]} is right. Score, probability and gradient of each: {rows}."
    return figure


def _bars(
    panel: Any, what: str, values: np.ndarray, limits: tuple[float, float] | None, label: int, names: Sequence[str]
) -> None:
    colours = [ARRAY if i == label else REST for i in range(len(values))]
    panel.bar(range(len(values)), values, color=colours, width=0.75)
    panel.axhline(0, color=INK, linewidth=0.8)
    panel.set_xticks(range(len(values)), names)
    panel.get_xticklabels()[label].set(color=ARRAY, weight="bold", size=12)
    panel.tick_params(axis="x", length=0)
    panel.grid(axis="x", visible=False)
    panel.set_xlabel(what)
    if limits:
        panel.set_ylim(*limits)


@styled
def descent(losses: Sequence[float], per_epoch: int, finding: str, *, start: float | None = None) -> Picture:
    """The loss of each step as a grey line, the mean of each epoch of `per_epoch` steps as points. start: a loss to
    compare with, a dashed line, such as that of a network that knows nothing."""
    epochs = [float(np.mean(losses[first : first + per_epoch])) for first in range(0, len(losses), per_epoch)]
    figure, axes = picture(width=8.5, height=3.4)
    axes.plot(range(1, len(losses) + 1), losses, color=REST, linewidth=1.2, label="each step")
    middles = [(first + min(first + per_epoch, len(losses)) + 1) / 2 for first in range(0, len(losses), per_epoch)]
    axes.plot(middles, epochs, color=ARRAY, marker="o", label="mean of an epoch")
    if start is not None:
        axes.axhline(start, color=INK, linewidth=1.2, linestyle="--", label="knows nothing")
    axes.set_ylim(bottom=0)
    axes.set_xlabel("step")
    axes.set_ylabel("loss")
    axes.legend()
    title(axes, finding)
    figure.alt = f"{finding}. The mean loss of each epoch: {', '.join(f'{loss:.2f}' for loss in epochs)}."
    return figure
