"""Pictures of the bill: each layer's bytes by kind, and what is alive from moment to moment."""

from typing import Any

from dlcourse.memory import Bill
from dlcourse.units import binary
from dlcourse.viz.style import COLOURS, INK, QUIET, Picture, picture, styled, title, unit

ORDER = ("params", "slots", "buffers", "grads", "data", "saved", "workspace")  # what lives longest comes first


@styled
def bill(bill: Bill, *, up_to: int | None = None) -> Picture:
    """A bar for each layer, from left to right its bytes of each kind. `up_to`: bytes at the right end of the axis, the
    same for pictures that are to be compared (None: as wide as the longest bar needs)."""
    rows = [row for row in bill.rows if _sum(row)]
    kinds = [kind for kind in ORDER if bill.total(kind)]
    end = up_to or 1.12 * max(map(_sum, rows))
    size, name = unit(end / 1.12)
    figure, axes = picture(width=8.5, height=1.9 + 0.3 * len(rows))
    left = [0.0] * len(rows)
    for kind in kinds:
        widths = [getattr(row, kind) / size for row in rows]
        axes.barh(range(len(rows)), widths, left=left, height=0.72, color=COLOURS[kind], label=_legend(bill, kind))
        left = [start + width for start, width in zip(left, widths, strict=True)]
    for place, row in enumerate(rows):
        axes.annotate(binary(_sum(row)), (left[place], place), (4, 0), textcoords="offset points", va="center", size=10)
    axes.set_yticks(range(len(rows)), [row.name for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.margins(y=0.02)
    axes.set_xlim(0, end / size)
    axes.set_xlabel(name)
    figure.legend(loc="outside lower center", ncols=3, handlelength=1.2)
    most = max((kind for kind in kinds if kind != "workspace"), key=bill.total)
    finding = f"Of what outlives a call, most is {most}: {binary(bill.total(most))}"
    title(axes, finding, _circumstances(bill, rows_too=True))
    listed = "; ".join(f"{row.name} {binary(_sum(row))}" for row in rows)
    figure.alt = f"{finding}. A bar for each layer, divided by kind: {listed}."
    return figure


@styled
def timeline(bill: Bill) -> Picture:
    """A column for each moment of the step, forward, backward, update: what is alive in it, by kind. Marks the peak."""
    moments = bill.moments
    kinds = [kind for kind in ORDER if any(getattr(moment, kind, 0) for moment in moments)]
    size, name = unit(bill.peak)
    figure, axes = picture(width=max(8.5, 2.0 + 0.22 * len(moments)), height=5.0)
    bottom = [0.0] * len(moments)
    for kind in kinds:
        heights = [getattr(moment, kind) / size for moment in moments]
        axes.bar(range(len(moments)), heights, bottom=bottom, width=0.9, color=COLOURS[kind], label=kind)
        bottom = [start + height for start, height in zip(bottom, heights, strict=True)]
    places = [moment.name.rpartition(", ") for moment in moments]  # ("conv2d_1", ", ", "forward"), or ("", "", "loss")
    axes.set_xticks(range(len(moments)), [layer or phase for layer, _, phase in places], rotation=90)
    axes.tick_params(axis="x", length=0)
    axes.grid(axis="x", visible=False)
    axes.set_xlim(-0.6, len(moments) - 0.4)
    axes.set_ylim(0, 1.3 * bill.peak / size)
    axes.set_ylabel(f"{name} alive")
    _name_phases(axes, [phase if layer else "" for layer, _, phase in places])
    _mark_peak(axes, bill, size)
    figure.legend(loc="outside lower center", ncols=len(kinds), columnspacing=1.4, handlelength=1.2)
    where = bill.peak_at if "," in bill.peak_at else f"the {bill.peak_at}"  # "conv2d_1, backward", but "the update"
    finding = f"The peak of {binary(bill.peak)} is reached in {where}"
    title(axes, finding, _circumstances(bill))
    highest = max(moments, key=lambda moment: moment.total)
    parts = ", ".join(f"{kind} {binary(getattr(highest, kind))}" for kind in kinds if getattr(highest, kind))
    figure.alt = f"{finding}: {parts}. A column for each of {len(moments)} moments of the step, divided by kind."
    return figure


def _sum(row: Any) -> int:
    return sum(getattr(row, kind) for kind in ORDER)


def _legend(bill: Bill, kind: str) -> str:
    if (
        kind == "workspace"
    ):  # comes and goes with each call, so a sum of it never exists; a moment of the step holds more
        return f"workspace, at most {binary(max(row.workspace for row in bill.rows))} in one call"
    return f"{kind} {binary(bill.total(kind))}"


def _circumstances(bill: Bill, *, rows_too: bool = False) -> str:
    whole = bill.micro_batch == bill.batch_size
    cut = "" if whole else f", in micro-batches of {bill.micro_batch}"
    many = f", {bill.workers} workers" + (" (one of them drawn)" if rows_too else "") if bill.workers > 1 else ""
    return f"batch of {bill.batch_size}{cut}{many}, {bill.dtype}"


def _name_phases(axes: Any, phases: list[str]) -> None:
    """Write "forward" and "backward" over their columns, and a line between the two."""
    for phase in ("forward", "backward"):
        columns = [place for place, name in enumerate(phases) if name == phase]
        if columns:
            middle = (columns[0] + columns[-1]) / 2
            axes.text(middle, 0.98, phase, transform=axes.get_xaxis_transform(), ha="center", va="top", color=QUIET)
            for edge in (columns[0] - 0.5, columns[-1] + 0.5):
                if 0 < edge < len(phases) - 0.6:
                    axes.axvline(edge, color="#999999", linewidth=1, linestyle=":")


def _mark_peak(axes: Any, bill: Bill, size: int) -> None:
    place = max(range(len(bill.moments)), key=lambda i: bill.moments[i].total)
    axes.annotate(
        f"peak {binary(bill.peak)}",
        (place, bill.peak / size),
        (0, 22),
        textcoords="offset points",
        ha="center",
        weight="bold",
        arrowprops={"arrowstyle": "-|>", "color": INK, "shrinkB": 0},
    )
