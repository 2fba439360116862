"""Pictures of the bill: each layer's bytes by kind, and what is alive from moment to moment."""

from itertools import groupby

from dlcourse.memory import Bill
from dlcourse.units import binary
from dlcourse.viz.bars import bars
from dlcourse.viz.style import COLOURS, INK, Picture, picture, styled, title, unit

ORDER = ("params", "slots", "buffers", "grads", "data", "saved", "workspace")  # what lives longest comes first


def bill(bill: Bill, *, up_to: int | None = None) -> Picture:
    """A bar for each layer, from left to right its bytes of each kind. `up_to`: bytes at the right end of the axis, the
    same for pictures that are to be compared (None: as wide as the longest bar needs)."""
    kinds = [kind for kind in ORDER if bill.total(kind)]
    rows = {row.name: {kind: getattr(row, kind) for kind in kinds} for row in bill.rows}
    # Workspace comes and goes with each call, so a sum of it never exists.
    names = {kind: f"{kind} {binary(bill.total(kind))}" for kind in kinds}
    if "workspace" in names:
        names["workspace"] = f"workspace, at most {binary(max(row.workspace for row in bill.rows))} in one call"
    most = max((kind for kind in kinds if kind != "workspace"), key=bill.total)
    finding = f"Of what outlives a call, most is {most}: {binary(bill.total(most))}"
    shown = {name: parts for name, parts in rows.items() if any(parts.values())}
    drawn = bars(shown, finding, _circumstances(bill, rows_too=True), colours=COLOURS, names=names, up_to=up_to)
    totals = "; ".join(f"{name} {binary(sum(parts.values()))}" for name, parts in shown.items())
    drawn.alt = f"{finding}. A bar for each layer, divided by kind: {totals}."
    return drawn


@styled
def timeline(bill: Bill) -> Picture:
    """A column for each moment of the step, forward, backward, update: what is alive in it, by kind. Marks the peak."""
    moments = bill.moments
    kinds = [kind for kind in ORDER if any(getattr(moment, kind, 0) for moment in moments)]
    size, name = unit(bill.peak)
    figure, axes = picture(width=max(7.2, 1.0 + 0.19 * len(moments)), height=4.4)
    bottom = [0.0] * len(moments)
    for kind in kinds:
        heights = [getattr(moment, kind) / size for moment in moments]
        axes.bar(range(len(moments)), heights, bottom=bottom, width=0.9, color=COLOURS[kind], label=kind)
        bottom = [start + height for start, height in zip(bottom, heights, strict=True)]
    places = [moment.name.rpartition(", ") for moment in moments]  # ("conv2d_1", ", ", "forward"), or ("", "", "loss")
    axes.set_xticks(range(len(moments)), [layer or phase for layer, _, phase in places], rotation=90, size=10)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    axes.set(xlim=(-0.6, len(moments) - 0.4), ylim=(0, 1.4 * bill.peak / size), ylabel=f"{name} alive")
    for phase, group in groupby(range(len(places)), key=lambda place: places[place][2] if places[place][0] else ""):
        columns = list(group)
        if phase:  # "forward" and "backward" over their columns, and a line between the two
            middle = (columns[0] + columns[-1]) / 2
            axes.text(middle, 0.99, phase, transform=axes.get_xaxis_transform(), ha="center", va="top")
            for edge in (columns[0] - 0.5, columns[-1] + 0.5):
                if 0 < edge < len(moments) - 0.6:
                    axes.axvline(edge, color=INK, linewidth=1, linestyle=":")
    highest = max(range(len(moments)), key=lambda place: moments[place].total)
    side = "left" if highest < 2 else "right" if highest > len(moments) - 3 else "center"
    axes.annotate(
        f"peak {binary(bill.peak)}", (highest, bill.peak / size), (0, 18), textcoords="offset points", ha=side,
        weight="bold", arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkB": 0},
    )  # fmt: skip
    figure.legend(loc="outside lower center", ncols=len(kinds), columnspacing=1.2, handlelength=1.2)
    where = bill.peak_at if "," in bill.peak_at else f"the {bill.peak_at}"  # "conv2d_1, backward", but "the update"
    finding = f"The peak of {binary(bill.peak)} is reached in {where}"
    title(figure, finding, _circumstances(bill))
    parts = ", ".join(f"{kind} {binary(n)}" for kind in kinds if (n := getattr(moments[highest], kind)))
    figure.alt = f"{finding}: {parts}. A column for each of {len(moments)} moments of the step, divided by kind."
    return figure


def _circumstances(bill: Bill, *, rows_too: bool = False) -> str:
    whole = bill.micro_batch == bill.batch_size
    cut = "" if whole else f", in micro-batches of {bill.micro_batch}"
    many = f", {bill.workers} workers" + (" (one of them drawn)" if rows_too else "") if bill.workers > 1 else ""
    return f"batch of {bill.batch_size}{cut}{many}, {bill.dtype}"
