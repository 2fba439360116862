"""Pictures of the two rulers: what was requested beside what the system saw."""

from collections.abc import Mapping, Sequence
from typing import Any

from dlcourse.exercises.experiments import Held, free_order
from dlcourse.units import binary
from dlcourse.viz.style import INK, QUIET, Picture, picture, styled, title

REQUESTED, RESIDENT, USAGE = INK, "#0B6E75", "#B4532A"  # none of them a colour of a kind
HOLE = "#DADAD6"
MIB = 2**20


@styled
def rulers(rows: Mapping[str, tuple[float, float]], finding: str) -> Picture:
    """Two bars for each name of `rows`: (bytes requested, bytes that the resident size rose by). `finding` is the title."""
    figure, axes = picture(width=8.5, height=1.5 + 0.52 * len(rows))
    for place, sizes in enumerate(rows.values()):
        for part, (size, colour) in enumerate(zip(sizes, (REQUESTED, RESIDENT), strict=True)):
            y = place + (part - 0.5) * 0.36
            axes.barh(y, size / MIB, height=0.32, color=colour)
            axes.annotate(
                f"{max(size, 0) / MIB:.1f}",
                (max(size, 0) / MIB, y),
                (4, 0),
                textcoords="offset points",
                va="center",
                size=9,
            )
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(axis="y", length=0)
    axes.invert_yaxis()
    axes.grid(axis="y", visible=False)
    axes.set_xlim(0, 1.1 * max(max(sizes) for sizes in rows.values()) / MIB)
    axes.set_xlabel("MiB")
    handles = [axes.barh(0, 0, color=colour) for colour in (REQUESTED, RESIDENT)]
    figure.legend(handles, ["requested (exact)", "system saw (resident)"], loc="outside lower center", ncols=2)
    title(axes, finding)
    listed = "; ".join(f"{name} {binary(asked)} and {binary(max(seen, 0))}" for name, (asked, seen) in rows.items())
    figure.alt = f"{finding}. Requested and resident: {listed}."
    return figure


@styled
def looks(alive: Sequence[tuple[float, float]], seen: Sequence[tuple[float, float]], size: int) -> Picture:
    """Arrays of `size` bytes that were alive from one second to another, and what a sampler saw: (second, bytes)."""
    figure, axes = picture(width=8.5, height=3.2)
    for number, (made, gone) in enumerate(alive):
        axes.axvspan(made, gone, ymax=0.8, color=HOLE, label="the array is alive" if number == 0 else None)
    axes.plot(*zip(*seen, strict=True), "o", color=RESIDENT, markersize=6, label="what a look saw")
    for second, resident in seen:
        axes.vlines(second, 0, resident, color=RESIDENT, linewidth=1)
    axes.set_ylim(-0.03 * size, 1.25 * size)
    axes.set_yticks([0, size / 2, size], [f"{part * size / MIB:.0f}" for part in (0, 0.5, 1)])
    axes.set_ylabel("MiB")
    axes.set_xlabel("seconds")
    figure.legend(loc="outside lower center", ncols=2)
    met = sum(any(made <= second <= gone for second, _ in seen) for made, gone in alive)
    finding = f"{len(seen)} looks met {met} of {len(alive)} arrays"
    title(axes, finding)
    figure.alt = f"{finding}. Grey bands where an array of {binary(size)} is alive, a dot for each look."
    return figure


@styled
def heap(moments: Sequence[Held], order: str, freed: int) -> Picture:
    """The blocks of `exercises.experiments.freed_blocks` when `freed` of them are freed: the blocks as a row of squares,
    both rulers over the number of freed blocks, and the allocator's usage in per cent."""
    now, blocks = moments[freed], len(moments) - 1
    figure, (strip, left, right) = _panels()
    holes = set(free_order(order, blocks)[:freed])
    strip.bar(range(blocks), 1, width=0.8, color=[HOLE if number in holes else RESIDENT for number in range(blocks)])
    strip.set_xlim(-1, blocks)
    strip.set_axis_off()
    usage = "usage not available" if now.usage is None else f"usage {100 * now.usage:.0f} %"
    finding = f"{freed} of {blocks} arrays freed: {binary(now.requested)} requested, "
    finding += f"{binary(max(now.resident, 0))} resident, {usage}"
    title(strip, finding, f"{order}; dark: in use, pale: freed")
    for name, colour, style in (("requested", REQUESTED, "--"), ("resident", RESIDENT, "-")):
        sizes = [getattr(moment, name) / MIB for moment in moments]
        left.plot(sizes, style, color=colour, label=name)
        left.plot(freed, sizes[freed], "o", color=colour)
    left.set_ylim(0, 1.12 * moments[0].requested / MIB)
    left.set_ylabel("MiB")
    left.legend(loc="lower left")
    left.set_xlabel("arrays freed")
    right.set_xlabel("arrays freed")
    right.set_ylabel("allocator's usage, %")
    right.set_ylim(0, 112)
    if now.usage is None:
        right.text(0.5, 0.5, "not available", transform=right.transAxes, ha="center", color=QUIET)
    else:
        usages = [100 * (moment.usage or 0) for moment in moments]
        right.plot(usages, color=USAGE)
        right.plot(freed, usages[freed], "o", color=USAGE)
    figure.alt = f"{finding}. Above, a bar for each array; below, bytes and usage over the number of freed arrays."
    return figure


def _panels() -> tuple[Any, tuple[Any, Any, Any]]:
    """One flat panel over two."""
    figure, axes = picture(2, 2, width=8.5, height=4.4, gridspec_kw={"height_ratios": (1, 5)})
    grid = axes[0, 0].get_gridspec()
    for old in axes[0]:
        old.remove()
    return figure, (figure.add_subplot(grid[0, :]), *axes[1])
