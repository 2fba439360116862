"""Bars: sizes beside one another, whole or divided into parts."""

from collections.abc import Mapping
from typing import Any

from dlcourse.units import binary
from dlcourse.viz.style import INK, LINES, REST, Picture, picture, short, styled, title, unit


@styled
def bars(
    rows: Mapping[str, Any],
    finding: str,
    circumstances: str = "",
    *,
    chosen: str | None = None,
    colours: Mapping[str, str] | None = None,
    names: Mapping[str, str] | None = None,
    beside: bool = False,
    marks: Mapping[str, int] | None = None,
    up_to: int | None = None,
) -> Picture:
    """A bar for each of `rows`, {name: bytes} or {name: {part: bytes}}, with its bytes beside it. `finding` is the title.

    chosen: the row in colour (None: all). colours, names: of the parts. beside: the parts one under the other, not in one
    bar. up_to: bytes at the end of the axis, the same for pictures that are compared (None: as the longest bar needs).
    marks: {name: bytes}, a dashed line across for each, on an axis that is logarithmic and begins at 1 KiB.
    """
    parted = {row: dict(parts) if isinstance(parts, Mapping) else {"": parts} for row, parts in rows.items()}
    parts = list(dict.fromkeys(part for row in parted.values() for part in row)) or [""]
    deep = len(parts) if beside else 1
    longest = max([max(row.values()) if beside else sum(row.values()) for row in parted.values()], default=0)
    end = up_to or 1.2 * max(longest, 1)
    size, name = (1, "") if marks else unit(end / 1.2)
    extra = 0.28 * -(-len(parts) // 3) if parts != [""] else 0
    figure, axes = picture(height=1.15 + 0.3 * bool(marks) + extra + (0.3 + 0.22 * (deep - 1)) * max(1, len(rows)))
    ends = [[0.0] * deep for _ in parted]
    for number, part in enumerate(parts):
        colour = (colours or {}).get(part, LINES[number % len(LINES)][0])
        tones = [colour if chosen in (None, row) else REST for row in parted]
        level = number if beside else 0
        places = [place + (level - (deep - 1) / 2) * 0.4 for place in range(len(parted))]
        widths = [max(0, row.get(part, 0)) / size for row in parted.values()]
        axes.barh(places, widths, left=[end[level] for end in ends], height=0.74 if deep == 1 else 0.36, color=tones,
                  label=(names or {}).get(part, part))  # fmt: skip
        for place, reached, width in zip(places, ends, widths, strict=True):
            reached[level] += width
            if beside or part == parts[-1]:
                axes.annotate(binary(reached[level] * size), (min(reached[level], end / size), place), (4, 0),
                              textcoords="offset points", va="center", size=10)  # fmt: skip
    axes.set_yticks(range(len(rows)), list(rows))
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    axes.set(ylim=(len(rows) - 0.4, -1.2 if marks else -0.6), xlim=(2**10 if marks else 0, end / size), xlabel=name)
    if marks:
        _logarithmic(axes, end, marks)
    if parts != [""]:
        figure.legend(loc="outside lower center", ncols=min(3, len(parts)), handlelength=1.2)
    title(figure, finding, circumstances)
    figure.alt = f"{finding}. A bar for each: {'; '.join(_said(*row, names or {}) for row in parted.items())}."
    return figure


def _said(row: str, parts: Mapping[str, int], names: Mapping[str, str]) -> str:
    if list(parts) == [""]:
        return f"{row} {binary(parts[''])}"
    return f"{row} " + ", ".join(f"{names.get(part, part)} {binary(max(0, n))}" for part, n in parts.items() if n)


def _logarithmic(axes: Any, end: float, marks: Mapping[str, int]) -> None:
    ticks = [2**power for power in range(10, 60, 5) if 2**power < end]
    axes.set_xscale("log", base=2)
    axes.set_xlim(2**10, end)
    axes.set_xticks(ticks, [short(tick) for tick in ticks])
    axes.set_xlabel("bytes; each line of the grid is 32 times the one before it")
    for number, (name, count) in enumerate(marks.items()):
        axes.axvline(count, color=INK, linewidth=1.2, linestyle="--")
        side = "right" if number == 0 and len(marks) > 1 else "left"
        axes.text(count, -0.8, f" {name}, {short(count)} ", size=10, ha=side, va="center")
