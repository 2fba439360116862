"""A picture of the benchmark: seconds against bytes, a point a side, a field a case."""

from typing import Any

from dlcourse.units import binary
from dlcourse.viz.style import COLOURS, Picture, picture, styled, title

# The sides are no kinds of state; they borrow colours that can be told apart, and each has a mark of its own.
MARKS = {
    "dlcourse": (COLOURS["params"], "o"),
    "textbook": (COLOURS["grads"], "s"),
    "torch": (COLOURS["saved"], "^"),
    "torch channels last": (COLOURS["slots"], "v"),
}


@styled
def seconds_against_bytes(measured: list[list[Any]]) -> Picture:
    """Each case's sides by their median seconds (with quartiles) and the resident peak of their process; both axes
    begin at 0, and nearer to that corner is better. `measured`: lists of `dlcourse.bench.Result`, a list a case."""
    columns = min(3, len(measured))
    rows = -(-len(measured) // columns)
    figure, fields = picture(rows, columns, width=max(6.0, 4.0 * columns), height=3.2 * rows + 0.5, squeeze=False)
    for axes, results in zip(fields.flat, measured, strict=False):
        for one in results:
            colour, mark = MARKS[one.side]
            spread = [[1e3 * (one.median - one.quartiles[0])], [1e3 * (one.quartiles[1] - one.median)]]
            axes.errorbar(
                1e3 * one.median, one.resident / 2**20, xerr=spread, fmt=mark, color=colour, ms=9, label=one.side
            )
        axes.set_xlim(left=0)
        axes.set_ylim(bottom=0)
        axes.margins(0.15)
        axes.set_xlabel("ms")
        axes.set_ylabel("MiB of the process, at its peak")
        title(axes, str(results[0].case))
    for axes in list(fields.flat)[len(measured) :]:
        axes.set_visible(False)
    handles, labels = fields.flat[0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4)
    figure.alt = ". ".join(
        f"{results[0].case}: "
        + ", ".join(f"{one.side} {1e3 * one.median:.1f} ms and {binary(one.resident)}" for one in results)
        for results in measured
    )
    return figure
