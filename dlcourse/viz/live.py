"""What is drawn while something runs: the dashboard of a training, and a monitor of memory."""

import html
import signal
import threading
import time
from base64 import b64encode
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, Self

from matplotlib.patheffects import withStroke

from dlcourse import tree
from dlcourse.memory import Bill, Monitor, read_log, resident_now, traced_peak
from dlcourse.train import Step
from dlcourse.units import binary
from dlcourse.viz.bill import ORDER
from dlcourse.viz.lines import draw_loss
from dlcourse.viz.style import COLOURS, INK, Picture, picture, styled, title, unit

GROWTH = "growth of the process"  # of its resident size, children included
POINTS = 300  # of a line in the monitor's picture, at most


class Live:
    """A Stop button, a line of words and a picture under a cell, until one picture that stands by itself takes their place.
    A class of it has `stop()`, what the button does, and `picture()`. Where there is no notebook, nothing is shown.

    The click comes in while the cell runs where JupyterLab (4.4 on) and ipykernel (7 on) hand the messages of widgets to
    another thread. Where they do not, it waits for the end of the cell.
    """

    every, tooltip = 0.0, ""  # seconds between two pictures, at least; what the button says
    stop: Any
    picture: Any
    _widgets: tuple[Any, ...] = ()
    _cost = _drawn = _told = 0.0

    def _show(self) -> bool:
        """Show the widgets; False where there is no notebook."""
        from IPython import get_ipython
        from IPython.display import display

        if getattr(get_ipython(), "kernel", None) is None:
            return False
        import ipywidgets

        self.button = ipywidgets.Button(description="Stop", icon="stop", tooltip=self.tooltip)
        self.button.on_click(lambda _: self.stop())
        # ipykernel 7.4 answers a widget in the thread that wrote to it last, which may be the busy one: leave a click to
        # the thread that JupyterLab chose.
        self.button.comm._reply_subshell_for = lambda data, chosen: chosen
        row = ipywidgets.HBox([self.button, ipywidgets.Label()])
        box = ipywidgets.VBox([row, ipywidgets.HTML()])
        self._handle = display(box, display_id=True)
        self._widgets = (box, row, *row.children, box.children[1])  # the last two: the words, the picture
        return True

    def _draw(self, words: str) -> None:
        """Renew the words, at most four times a second, and the picture, so that drawing stays under a tenth of the time."""
        now, widgets = time.perf_counter(), self._widgets
        if widgets and now - self._told >= 0.25:
            widgets[-2].value, self._told = words, now
        if widgets and now - self._drawn >= max(self.every, 10 * self._cost):
            before = time.thread_time()  # the work, and not the time that others take from this thread
            widgets[-1].value = _image(self.picture())
            self._cost, self._drawn = time.thread_time() - before, now

    def _end(self, final: Any) -> None:
        """Close the widgets and show `final` in their place."""
        widgets, self._widgets = self._widgets, ()
        if widgets:
            self._handle.update(final)
        for widget in widgets:
            for part in filter(None, (widget, widget.layout, getattr(widget, "style", None))):
                part.close()


def _image(shown: Any) -> str:
    kind, data = ("svg+xml", shown.svg.encode()) if isinstance(shown, Drawing) else ("png", shown.png(1))
    address = f"data:image/{kind};base64,{b64encode(data).decode('ascii')}"
    return f'<img src="{address}" alt="{html.escape(shown.alt)}" style="max-width:100%">'


class Dashboard(Live):
    """Loss and memory by kind while `fit` runs, and a Stop button:

        with Dashboard(bill) as live:
            history = fit(..., callbacks=[live])

    Left the loss; right the bytes: params and slots of the live trees, the other kinds from the bill's highest moment,
    the peak of some steps by the exact ruler, and by how much the resident size of the process has grown.

    Stop, and an interrupt (■ in the toolbar, Ctrl-C), end the training after the present step. `fit` runs in the cell
    and not in a thread of its own: so Run All keeps its order, an error shows in its cell, and a second run does not meet
    the first one still at work. At most once in `every` seconds it draws, and traces the allocations of one step
    (tracemalloc): a step is half as slow again while it is traced, and a picture takes as long as some steps.
    """

    tooltip = "End the training after the present step"

    def __init__(self, bill: Bill | None = None, *, every: float = 1.0) -> None:
        self.bill, self.every = bill, every
        self._stop, self._open = threading.Event(), False
        self._trace = ExitStack()  # open while a step is traced
        self._begin()

    def _begin(self) -> None:
        self.traced: dict[int, int] = {}  # {step: its peak}, params and slots included; never the first step
        self.resident: list[int] = []  # the resident size after each step
        self._step: Step | None = None
        self._persistent: dict[str, int] = {}
        self._interrupt: Any = None
        self._traced: Any = None
        self._next_trace = 0.0
        self._stop.clear()

    def __enter__(self) -> Self:
        self._begin()
        if threading.current_thread() is threading.main_thread():
            self._interrupt = signal.signal(signal.SIGINT, lambda *_: self.stop())
        self._show()
        self._resident = resident_now().total
        self._open = True
        return self

    def __exit__(self, *_: object) -> None:
        self._open = False
        self._trace.close()
        if self._interrupt is not None:
            signal.signal(signal.SIGINT, self._interrupt)
        self._end(self.picture() if self._widgets and self._step else picture(height=0.5)[0])

    def __call__(self, step: Step) -> bool:
        """What `fit` calls after each step: True if the training is to end."""
        if not self._open:
            raise RuntimeError("use a Dashboard in a block: with Dashboard(bill) as live: fit(…, callbacks=[live])")
        slots = {name: slot for name, slot in step.slots.items() if not isinstance(slot, int)}
        self._persistent = {"params": tree.nbytes(step.params), "slots": tree.nbytes(slots)}
        self._trace.close()
        if self._traced is not None:
            self.traced[step.step] = self._traced.peak + sum(self._persistent.values())
            self._traced = None
        self.resident.append(resident_now().total)
        self._step = replace(step, params={}, slots={})  # without its arrays, which would live on with this object
        ending = "; it ends here" if self._stop.is_set() else ""
        self._draw(f"Epoch {step.epoch}, step {step.step} of {step.steps}, loss {step.loss:.3f}{ending}")
        if time.perf_counter() >= self._next_trace:
            self._next_trace = time.perf_counter() + self.every
            self._traced = self._trace.enter_context(traced_peak(collect=False))
        return self._stop.is_set()

    def stop(self) -> None:
        """End the training after the present step."""
        self._stop.set()

    @styled
    def picture(self) -> Picture:
        """What has been seen so far, as a picture that stands by itself."""
        step = self._step
        if step is None:
            raise ValueError("there is nothing to draw yet: give this object to fit(…, callbacks=[…])")
        figure, (loss, memory) = picture(1, 2, width=8.6, height=4.0)
        draw_loss(loss, step.history)
        loss.legend(loc="lower left")  # a loss comes from the upper left
        loss.set_xlim(0, 1.02 * step.steps)
        place = f"epoch {step.epoch}, step {step.step} of {step.steps}"
        title(loss, f"Loss {step.loss:.2f}", f"{place}: stopped" if step.history.stopped else place)

        kinds = self._persistent
        if self.bill is not None:
            moment = max(self.bill.moments, key=lambda moment: moment.total)
            kinds = {kind: getattr(moment, kind) for kind in ORDER if getattr(moment, kind, 0)}
            kinds |= {kind: size for kind, size in self._persistent.items() if size}
        grown, highest = [max(0, n - self._resident) for n in self.resident], max(self.traced.values(), default=0)
        size, name = unit(max(highest, sum(kinds.values())))
        bottom = 0.0
        for kind, amount in kinds.items():
            memory.axhspan(bottom, bottom + amount / size, color=COLOURS[kind], label=f"{kind} {binary(amount)}")
            bottom += amount / size
        edged: Any = {"color": "black", "path_effects": [withStroke(linewidth=4, foreground="white")]}
        peaks = [peak / size for peak in self.traced.values()]
        memory.plot(list(self.traced), peaks, "o-", ms=4, lw=1, label="peak of a step, traced", **edged)
        numbers = range(step.step - len(grown) + 1, step.step + 1)
        memory.plot(numbers, [x / size for x in grown], ":", label="growth of the process", **edged)
        top = 1.1 * max(bottom, highest / size, max(grown) / size)
        memory.set(xlim=(0, 1.02 * step.steps), ylim=(0, top), xlabel="step", ylabel=name)
        memory.grid(False)
        finding = f"A step peaks at {binary(highest)}" if self.traced else "No peak yet"
        title(memory, finding, f"process: {binary(self.resident[-1])} resident, {binary(self._resident)} before")
        figure.legend(*memory.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=1.2)
        listed = ", ".join(f"{kind} {binary(amount)}" for kind, amount in kinds.items())
        seen = f"{finding} by the exact ruler; by kind: {listed}"
        figure.alt = f"Left the loss of each step, at the end {step.loss:.2f}. {seen}."
        return figure


class LiveMonitor(Live):
    """Watch memory from now on: a line for each kind of `trees`, one for the growth of the process, and a Stop button.

        viz.monitor({"params": params, "history": lambda: history})      # as the last line of a cell: shown there
        with viz.monitor() as live:                                      # or for a block
            fit(…, callbacks=[live])                                     # adds params and slots as fit has them

    It goes on while other cells run, until `stop()`, the button, the end of the block, or the same cell run again.
    trees, interval, name: as for `memory.Monitor`, whose samples and table are those of `live.monitor`.
    """

    tooltip = "End the monitor and keep its picture"

    def __init__(self, trees: Mapping[str, Any] | None = None, *, interval: float = 0.5, name: str = "monitor") -> None:
        self.monitor = watched = Monitor(interval, trees, name=name)
        watched.on_sample = lambda _: self._draw(f"{len(watched.samples)} samples")
        watched.on_end = lambda _: self._end(self.picture())
        watched.start()

    def stop(self) -> None:
        """End, and leave the picture."""
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

    def __call__(self, step: Step) -> None:
        self.monitor(step)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if not self.monitor.running:
            display(self.picture())
        elif not self._widgets and not self._show():
            print(self.monitor.line())


monitor = LiveMonitor


class Drawing:
    """The samples of a monitor as lines over time, in SVG. It is written by hand: a thread draws it beside a cell that may
    draw with matplotlib itself, whose settings belong to all threads, and in a millisecond or so. It is shown as an image
    in HTML, which JupyterLab also shows in a notebook that it does not trust yet."""

    def __init__(self, watched: Monitor) -> None:
        samples = list(watched.samples)
        samples = samples[: -1 : -(-len(samples) // POINTS)] + samples[-1:]
        kinds = list(dict.fromkeys(kind for sample in samples for kind in sample.kinds))
        lines = {kind: [sample.kinds.get(kind, 0) for sample in samples] for kind in kinds}
        lines[GROWTH] = [max(0, sample.rss - samples[0].rss) for sample in samples]
        rss, last = watched.peaks["RSS"], samples[-1]
        finding = f"The process grew by {binary(rss - samples[0].rss)}, to {binary(rss)}"
        if kinds:
            most = max(kinds, key=lambda kind: watched.peaks[kind])
            finding += f"; {most} reached {binary(watched.peaks[most])}"
        under = f"{last.seconds:.1f} seconds, sampled each {watched.apart:.2g} s or less, so peaks are lower bounds"
        if last.usage is not None:
            under += f"; {100 * last.usage:.0f} % of the allocator's memory in use"
        self.alt = f"{finding}. {len(lines)} line{'s' if len(lines) > 1 else ''} over {under}."
        self.svg = _svg([sample.seconds for sample in samples], lines, finding, under)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": _image(self), "text/plain": self.alt}


def monitor_log(path: str | Path) -> Drawing:
    """The last run in a log of `dlcourse train --monitor-log FILE` or `dlcourse watch PID --log FILE`, as `monitor` draws
    it. Raises what `memory.read_log` raises."""
    return Drawing(read_log(path))


def _svg(seconds: list[float], lines: dict[str, list[int]], finding: str, under: str) -> str:
    """Lines over time in 720 × 300 pixels, their names and last values at the right."""
    left, top, right, bottom = 72, 60, 430, 270
    most, end = max(1, *map(max, lines.values())), max(seconds[-1], 0.1)
    spare = [colour for kind, colour in COLOURS.items() if kind not in lines] or list(COLOURS.values())
    parts = [_text(4, 20, finding, "start", 'font-weight="bold"'), _text(4, 40, under)]
    for quarter in range(5):
        across, y = left + (right - left) * quarter / 4, bottom - (bottom - top) * quarter / 4
        parts += [
            f'<path d="M{left} {y}H{right}" stroke="#808080" opacity="0.3"/>',
            _text(left - 6, y + 4, binary(most * quarter / 4), "end"),
            _text(across, bottom + 18, f"{end * quarter / 4:.2g} s", "middle"),
        ]
    for place, (line, sizes) in enumerate(lines.items()):
        colour = INK if line == GROWTH else COLOURS.get(line, spare[place % len(spare)])
        look = f'fill="none" stroke="{colour}" stroke-width="2.5"' + ' stroke-dasharray="5 3"' * (line == GROWTH)
        points = " ".join(
            f"{left + (right - left) * second / end:.1f},{bottom - (bottom - top) * size / most:.1f}"
            for second, size in zip(seconds, sizes, strict=True)
        )
        y = top + 20 * place
        parts.append(f'<polyline points="{points}" {look}/><path d="M{right + 12} {y}h22" {look}/>')
        parts.append(_text(right + 40, y + 4, f"{line} {binary(sizes[-1])}"))
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="720" height="300" font-size="13" font-family="DejaVu Sans">'
    return f"{head}{''.join(parts)}</svg>"


def _text(x: float, y: float, words: str, anchor: str = "start", more: str = "") -> str:
    return f'<text x="{x:g}" y="{y:g}" text-anchor="{anchor}" fill="{INK}" {more}>{html.escape(words)}</text>'
