"""Memory by kind as lines, drawn while something runs."""

import html
from collections.abc import Mapping
from typing import Any, Self

from dlcourse.memory import Monitor, Sample
from dlcourse.memory.monitor import Source
from dlcourse.memory.tables import Table
from dlcourse.units import binary
from dlcourse.viz.style import COLOURS, INK, QUIET, unit

WIDTH, HEIGHT = 820, 300
LEFT, TOP, RIGHT, BOTTOM = 70, 56, 610, 256  # of the area where the lines are
GROWTH = "growth of the process"  # of its resident size, children included
POINTS = 300  # of a line, at most


def monitor(
    trees: Mapping[str, Source] | None = None, *, interval: float = 0.5, name: str = "monitor"
) -> "LiveMonitor":
    """Watch memory from now on: a line for each kind of `trees`, one for the growth of the process, and a Stop button.

        viz.monitor({"params": params, "history": lambda: history})      # as the last line of a cell: shown there
        with viz.monitor() as live:                                      # or for a block
            fit(…, callbacks=[live])                                     # adds params and slots as fit has them

    It goes on while other cells run, until `stop()`, the button, the end of the block, or the same cell run again; then
    one picture that stands by itself takes the place of the widgets. trees, interval, name: as for `memory.Monitor`.
    """
    return LiveMonitor(Monitor(interval, trees, name=name))


class LiveMonitor:
    """A running `memory.Monitor` with a picture; `table()` and `samples` are the monitor's.

    Nothing is shown where there is no notebook. The button works while a cell runs where JupyterLab (4.4 on) and
    ipykernel (7 on) hand the messages of widgets to another thread; elsewhere a click waits for the end of the cell.
    """

    def __init__(self, watched: Monitor) -> None:
        self.monitor = watched
        self._shown: Any = None
        watched.on_sample, watched.on_end = self._redraw, self._ended
        watched.start()

    @property
    def samples(self) -> list[Sample]:
        return self.monitor.samples

    def table(self, rows: int = 12) -> Table:
        return self.monitor.table(rows)

    def stop(self) -> None:
        """End, and leave the picture: what the button does."""
        self.monitor.stop()

    def picture(self) -> "Drawing":
        """What has been seen so far."""
        return Drawing(self.monitor)

    def __enter__(self) -> Self:
        if not self.monitor.running:
            self.monitor.start()
        self._show()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, step: Any) -> None:
        self.monitor(step)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if not self.monitor.running:
            display(self.picture())
        elif self._shown is None and not self._show():
            print(self.monitor.line())

    def _show(self) -> bool:
        """Show the widgets; False where there is no notebook."""
        from IPython import get_ipython
        from IPython.display import display

        if getattr(get_ipython(), "kernel", None) is None:
            return False
        import ipywidgets

        button = ipywidgets.Button(description="Stop", icon="stop", tooltip="End the monitor and keep its picture")
        button.on_click(lambda _: self.stop())
        drawing = ipywidgets.HTML(self.picture().svg)
        box = ipywidgets.VBox([button, drawing])
        self._shown = display(box, display_id=True), drawing, (box, button, drawing)
        return True

    def _redraw(self, _: Monitor) -> None:
        shown = self._shown
        if shown is not None:
            shown[1].value = self.picture().svg

    def _ended(self, _: Monitor) -> None:
        shown, self._shown = self._shown, None
        if shown is None:
            return
        handle, _drawing, widgets = shown
        handle.update(self.picture())
        for widget in widgets:
            for part in (widget, widget.layout, getattr(widget, "style", None)):
                if part is not None:
                    part.close()


class Drawing:
    """The samples of a monitor as a picture in SVG. It is written by hand: a thread draws it, beside a cell that may draw
    with matplotlib itself, in a millisecond or so."""

    def __init__(self, watched: Monitor) -> None:
        samples = list(watched.samples)
        samples = samples[: -1 : -(-len(samples) // POINTS)] + samples[-1:]
        kinds = list(dict.fromkeys(kind for sample in samples for kind in sample.kinds))
        lines = {kind: [sample.kinds.get(kind, 0) for sample in samples] for kind in kinds}
        lines[GROWTH] = [max(0, sample.rss - samples[0].rss) for sample in samples]
        grown = watched.peaks["RSS"] - samples[0].rss
        finding = f"The process grew by {binary(grown)}, to {binary(watched.peaks['RSS'])}"
        if kinds:
            most = max(kinds, key=lambda kind: watched.peaks[kind])
            finding += f"; {most} reached {binary(watched.peaks[most])}"
        usage = (
            "" if samples[-1].usage is None else f"; {100 * samples[-1].usage:.0f} % of the allocator's memory in use"
        )
        under = f"sampled each {watched.apart:.2g} s or less, so peaks are lower bounds{usage}"
        self.alt = f"{finding}. {len(lines)} lines over {samples[-1].seconds:.1f} seconds, {under}."
        self.svg = _svg([sample.seconds for sample in samples], lines, finding, under, self.alt)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"image/svg+xml": self.svg, "text/plain": self.alt}


def _svg(seconds: list[float], lines: dict[str, list[int]], finding: str, under: str, alt: str) -> str:
    """Lines over time, their names and last values at the right."""
    size, name = unit(max(map(max, lines.values())))
    top, end = _round_up(max(map(max, lines.values())) / size), max(seconds[-1], 0.1)
    colours = _colours(lines)
    parts = [_text(LEFT, 22, finding, size=15, weight="bold"), _text(LEFT, 42, under, colour=QUIET)]
    for i in range(5):
        y, value = BOTTOM - (BOTTOM - TOP) * i / 4, top * i / 4
        parts.append(f'<line x1="{LEFT}" x2="{RIGHT}" y1="{y}" y2="{y}" stroke="#E4E4E4"/>')
        parts.append(_text(LEFT - 8, y + 4, f"{value:g}", anchor="end"))
    tick = _round_up(end / 1.5) / 4
    for i in range(1 + int(end / tick)):
        parts.append(_text(LEFT + (RIGHT - LEFT) * i * tick / end, BOTTOM + 18, f"{i * tick:g}", anchor="middle"))
    parts.append(_text(RIGHT, BOTTOM + 36, "seconds", anchor="end"))
    parts.append(_text(8, TOP - 2, name))
    for place, (line, sizes) in enumerate(lines.items()):
        points = " ".join(
            f"{LEFT + (RIGHT - LEFT) * s / end:.1f},{BOTTOM - (BOTTOM - TOP) * value / size / top:.1f}"
            for s, value in zip(seconds, sizes, strict=True)
        )
        dashes = "" if line != GROWTH else ' stroke-dasharray="5 3"'
        parts.append(f'<polyline points="{points}" fill="none" stroke="{colours[line]}" stroke-width="2"{dashes}/>')
        y = TOP + 10 + 20 * place
        parts.append(
            f'<line x1="{RIGHT + 14}" x2="{RIGHT + 34}" y1="{y}" y2="{y}" stroke="{colours[line]}" stroke-width="3"{dashes}/>'
        )
        parts.append(_text(RIGHT + 40, y + 4, f"{line} {binary(sizes[-1])}"))
    style = 'font-family="DejaVu Sans, sans-serif" style="background:white;max-width:100%"'
    head = f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{HEIGHT}" viewBox="0 0 {WIDTH} {HEIGHT}"'
    return f'{head} role="img" aria-label="{html.escape(alt)}" {style}>{"".join(parts)}</svg>'


def _colours(lines: dict[str, list[int]]) -> dict[str, str]:
    """Each kind of state in its own colour, other names in those that are left."""
    left = [colour for kind, colour in COLOURS.items() if kind not in lines] or list(COLOURS.values())
    found = {GROWTH: INK}
    for line in lines:
        if line not in found:
            found[line] = COLOURS[line] if line in COLOURS else left[len(found) % len(left)]
    return found


def _text(
    x: float, y: float, words: str, *, size: int = 12, anchor: str = "start", colour: str = INK, weight: str = "normal"
) -> str:
    place = f'x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{colour}" font-weight="{weight}"'
    return f"<text {place}>{html.escape(words)}</text>"


def _round_up(value: float) -> float:
    """The next number that an axis can end at and be divided by four."""
    step = 1e-3
    while step < value:
        step *= 10
    return next(
        (part * step for part in (0.12, 0.16, 0.2, 0.24, 0.32, 0.4, 0.6, 0.8, 1.0) if part * step >= value), step
    )
