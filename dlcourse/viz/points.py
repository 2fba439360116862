"""Points: two measures of the same thing against each other, such as bytes against seconds."""

from collections.abc import Mapping
from typing import Any

from matplotlib.ticker import LogLocator

from dlcourse.units import binary
from dlcourse.viz.style import COLOURS, MAIN, REST, Picture, duration, picture, short, styled, title

SHAPES = "os^Dvph*"


@styled
def points(
    places: Mapping[str, tuple[float, float]], finding: str, circumstances: str = "", *, joined: bool = False
) -> Picture:
    """A point for each of `places`, {name: (bytes, seconds)}, on logarithmic axes. Nearer to the lower left corner is better.
    joined: draw a line from each point to the next, with all names at the right of it. Raises ValueError for none."""
    if not places:
        raise ValueError("there is nothing to draw: no point")
    figure, axes = picture(height=4.0)
    sizes, seconds = zip(*places.values(), strict=True)
    axes.set_xscale("log")
    axes.set_yscale("log", base=2)
    if joined:
        axes.plot(seconds, sizes, color=REST, linewidth=1.5, zorder=1)
    for number, (name, (size, took)) in enumerate(places.items()):
        axes.plot(took, size, "o" if joined else SHAPES[number % len(SHAPES)], color=MAIN, markersize=8)
        words = f"{name}: {binary(size)}, {duration(took)}"
        axes.annotate(words, (max(seconds) if joined else took, size), (12 if joined else 8, 0), size=10,
                      textcoords="offset points", va="center")  # fmt: skip
    spread = max(seconds) / min(seconds)
    axes.set(xlim=(min(seconds) / 1.3, 1.1 * max(seconds) * max(1.35, spread**0.5)), xlabel="time of the processor")
    axes.set(ylim=(min(sizes) / 1.6, max(sizes) * 1.6), ylabel="bytes beside input and output")
    axes.xaxis.set_major_locator(LogLocator(subs=(1,) if spread > 30 else (1, 1.5, 2, 3, 4, 6)))
    axes.xaxis.set_major_formatter(lambda seconds, _: duration(seconds))
    axes.yaxis.set_major_formatter(lambda size, _: short(size))
    axes.minorticks_off()
    title(figure, finding, circumstances)
    listed = "; ".join(f"{name} {binary(size)} and {duration(took)}" for name, (size, took) in places.items())
    figure.alt = f"{finding}. A point for each: {listed}."
    return figure


@styled
def seconds_against_bytes(measured: list[list[Any]]) -> Picture:
    """A panel for each case of the benchmark: its sides by their median seconds (with quartiles) and the resident peak of
    their process, both from 0 on. `measured`: lists of `dlcourse.bench.Result`, a list a case."""
    columns = min(3, len(measured))
    rows = -(-len(measured) // columns)
    figure, fields = picture(rows, columns, width=max(6.0, 3.6 * columns), height=3.2 * rows + 0.5, squeeze=False)
    # The sides are no kinds of state; they borrow colours that can be told apart, each with its own mark.
    sides = list(dict.fromkeys(one.side for results in measured for one in results))
    looks = dict(zip(sides, zip(COLOURS.values(), SHAPES, strict=False), strict=False))
    for axes, results in zip(fields.flat, measured, strict=False):
        for one in results:
            colour, mark = looks[one.side]
            spread = [[1e3 * (one.median - one.quartiles[0])], [1e3 * (one.quartiles[1] - one.median)]]
            place = 1e3 * one.median, one.resident / 2**20
            axes.errorbar(*place, xerr=spread, fmt=mark, color=colour, ms=9, label=one.side)
        axes.set(xlim=(0, None), ylim=(0, None), xlabel="ms", ylabel="MiB of the process, at its peak")
        axes.margins(0.15)
        title(axes, str(results[0].case))
    for axes in list(fields.flat)[len(measured) :]:
        axes.set_visible(False)
    figure.legend(*fields.flat[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
    said = [
        ", ".join(f"{one.side} {1e3 * one.median:.1f} ms and {binary(one.resident)}" for one in results)
        for results in measured
    ]
    figure.alt = ". ".join(f"{results[0].case}: {words}" for results, words in zip(measured, said, strict=True))
    return figure
