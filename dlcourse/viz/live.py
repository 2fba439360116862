"""What is drawn while something runs: the dashboard of a training, and a monitor of memory."""

import html
import signal
import threading
import time
import tracemalloc
from base64 import b64encode
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any, Self

from matplotlib.patheffects import withStroke

from dlcourse import tree
from dlcourse.memory import Bill, Monitor, Sample, reset_traced_peak, resident
from dlcourse.memory.tables import Table
from dlcourse.memory.sample import Source
from dlcourse.train import Step
from dlcourse.units import binary
from dlcourse.viz.bill import ORDER
from dlcourse.viz.lines import draw_loss
from dlcourse.viz.style import COLOURS, INK, Picture, picture, styled, title, unit

GROWTH = "growth of the process"  # of its resident size, children included
POINTS = 300  # of a line in the monitor's picture, at most
LEFT, TOP, RIGHT, BOTTOM = 60, 56, 500, 256  # of the area with its lines, in a picture of 720 × 300 pixels


class Live:
    """A Stop button, a line of words and a picture under a cell, until one picture that stands by itself takes their place.

    The click comes in while the cell runs where JupyterLab (4.4 on) and ipykernel (7 on) hand the messages of widgets to
    another thread. Where they do not, it waits for the end of the cell. Where there is no notebook, nothing is shown.
    """

    def __init__(self, stop: Callable[[], Any], tooltip: str) -> None:
        self._stop, self._tooltip = stop, tooltip
        self._widgets: tuple[Any, ...] = ()
        self._cost = self._drawn = self._told = 0.0

    @property
    def shown(self) -> bool:
        return bool(self._widgets)

    def show(self) -> bool:
        """Show button, words and picture; False where there is no notebook."""
        from IPython import get_ipython
        from IPython.display import display

        if getattr(get_ipython(), "kernel", None) is None:
            return False
        import ipywidgets

        self.button = ipywidgets.Button(description="Stop", icon="stop", tooltip=self._tooltip)
        self.button.on_click(lambda _: self._stop())
        # ipykernel 7.4 answers a widget in the thread that wrote to it last, which may be the busy one: leave a click to
        # the thread that JupyterLab chose.
        self.button.comm._reply_subshell_for = lambda data, chosen: chosen
        self._words, self._image = ipywidgets.Label(), ipywidgets.HTML()
        row = ipywidgets.HBox([self.button, self._words])
        box = ipywidgets.VBox([row, self._image])
        self._handle = display(box, display_id=True)
        self._widgets = (box, row, self.button, self._words, self._image)
        return True

    def say(self, words: str) -> None:
        """Write the line beside the button, at most four times a second."""
        if self.shown and time.perf_counter() - self._told >= 0.25:
            self._words.value, self._told = words, time.perf_counter()

    def draw(self, make: Callable[[], Any], every: float = 0.0) -> None:
        """Show `make()`, at most once in `every` seconds, and so that drawing stays under a tenth of the time."""
        now, widgets = time.perf_counter(), self._widgets
        if widgets and now - self._drawn >= max(every, 10 * self._cost):
            before = time.thread_time()  # the work, and not the time that others take from this thread
            widgets[-1].value = _image(make())
            self._cost, self._drawn = time.thread_time() - before, now

    def end(self, final: Any) -> None:
        """Close the widgets and show `final` in their place."""
        widgets, self._widgets = self._widgets, ()
        if widgets:
            self._handle.update(final)
        for widget in widgets:
            for part in (widget, widget.layout, getattr(widget, "style", None)):
                if part is not None:
                    part.close()


def _image(shown: Any) -> str:
    kind, data = ("svg+xml", shown.svg.encode()) if isinstance(shown, Drawing) else ("png", shown.png(1))
    address = f"data:image/{kind};base64,{b64encode(data).decode('ascii')}"
    return f'<img src="{address}" alt="{html.escape(shown.alt)}" style="max-width:100%">'


class Dashboard:
    """Loss and memory by kind while `fit` runs, and a Stop button:

        with Dashboard(bill) as live:
            history = fit(..., callbacks=[live])

    Left the loss; right the bytes: params and slots of the live trees, the other kinds from the bill's highest moment,
    the peak of some steps by the exact ruler, and by how much the resident size of the process has grown.

    Stop, and an interrupt (■ in the toolbar, Ctrl-C), end the training after the present step. `fit` runs in the cell
    and not in a thread of its own: so a cell is done when its training is done, Run All keeps its order, an error shows
    in its cell, and a second run does not meet the first one still at work.

    At most once in `every` seconds it draws, and traces the allocations of one step (tracemalloc): a step is half as
    slow again while it is traced, and a picture takes as long as some steps.
    """

    def __init__(self, bill: Bill | None = None, *, every: float = 1.0) -> None:
        self.bill, self.every = bill, every
        self.live = Live(self.stop, "End the training after the present step")
        self._stop, self._open = threading.Event(), False
        self._begin()

    def _begin(self) -> None:
        self.traced: dict[int, int] = {}  # {step: its peak}, params and slots included; never the first step
        self.resident: list[int] = []  # the resident size after each step
        self._step: Step | None = None
        self._persistent: dict[str, int] = {}
        self._interrupt: Any = None
        self._next_trace = 0.0
        self._before: int | None = None  # traced bytes before a step that is traced
        self._tracing = False  # whether tracing was started here
        self._stop.clear()

    def __enter__(self) -> Self:
        self._begin()
        if threading.current_thread() is threading.main_thread():
            self._interrupt = signal.signal(signal.SIGINT, lambda *_: self.stop())
        if self.live.show():
            self.live.say("The first step is under way.")
        self._resident = resident().total
        self._open = True
        return self

    def __exit__(self, *_: object) -> None:
        self._open = False
        self._end_trace()
        if self._interrupt is not None:
            signal.signal(signal.SIGINT, self._interrupt)
        if self.live.shown:
            self.live.end(self.picture() if self._step else _note("no step was done"))

    def __call__(self, step: Step) -> bool:
        """What `fit` calls after each step: True if the training is to end."""
        if not self._open:
            raise RuntimeError(
                "a Dashboard works in a with block: with Dashboard(bill) as live: fit(…, callbacks=[live])"
            )
        slots = {name: slot for name, slot in step.slots.items() if not isinstance(slot, int)}
        self._persistent = {"params": tree.nbytes(step.params), "slots": tree.nbytes(slots)}
        if self._before is not None:
            peak = tracemalloc.get_traced_memory()[1] - self._before
            self.traced[step.step] = peak + sum(self._persistent.values())
            self._end_trace()
        self.resident.append(resident().total)
        self._step = replace(step, params={}, slots={})  # without its arrays, which would live on with this object
        ending = "; it ends here" if self._stop.is_set() else ""
        self.live.say(f"Epoch {step.epoch}, step {step.step} of {step.steps}, loss {step.loss:.3f}{ending}")
        self.live.draw(self.picture, self.every)
        if time.perf_counter() >= self._next_trace:
            self._begin_trace()
        return self._stop.is_set()

    def stop(self) -> None:
        """End the training after the present step: what the button does."""
        self._stop.set()

    def picture(self) -> Picture:
        """What has been seen so far, as a picture that stands by itself."""
        if self._step is None:
            raise ValueError("there is nothing to draw yet: give this object to fit(…, callbacks=[…])")
        kinds = self._persistent
        if self.bill is not None:
            highest = max(self.bill.moments, key=lambda moment: moment.total)
            kinds = {kind: getattr(highest, kind) for kind in ORDER if getattr(highest, kind, 0)}
            kinds |= {kind: size for kind, size in self._persistent.items() if size}
        return _dashboard(self._step, kinds, self.traced, self.resident, self._resident)

    def _begin_trace(self) -> None:
        self._next_trace = time.perf_counter() + self.every
        if not tracemalloc.is_tracing():
            tracemalloc.start()
            self._tracing = True
        reset_traced_peak()
        self._before = tracemalloc.get_traced_memory()[0]

    def _end_trace(self) -> None:
        self._before = None
        if self._tracing:
            tracemalloc.stop()
            self._tracing = False


@styled
def _dashboard(step: Step, kinds: dict[str, int], traced: dict[int, int], sizes: list[int], before: int) -> Picture:
    figure, (loss, memory) = picture(1, 2, width=8.6, height=4.0)
    draw_loss(loss, step.history)
    loss.legend(loc="lower left")  # a loss comes from the upper left
    loss.set_xlim(0, 1.02 * step.steps)
    place = f"epoch {step.epoch}, step {step.step} of {step.steps}"
    title(loss, f"Loss {step.loss:.2f}", f"{place}: stopped" if step.history.stopped else place)

    grown = [max(0, size - before) for size in sizes]
    highest = max(traced.values(), default=0)
    size, name = unit(max(highest, sum(kinds.values())))
    bottom = 0.0
    for kind, amount in kinds.items():
        memory.axhspan(bottom, bottom + amount / size, color=COLOURS[kind], label=f"{kind} {binary(amount)}")
        bottom += amount / size
    edged: Any = {"color": "black", "path_effects": [withStroke(linewidth=4, foreground="white")]}  # over any colour
    memory.plot(list(traced), [peak / size for peak in traced.values()], "o-", markersize=4, linewidth=1,
                label="peak of a step, traced", **edged)  # fmt: skip
    numbers = range(step.step - len(grown) + 1, step.step + 1)
    memory.plot(numbers, [x / size for x in grown], ":", label="growth of the process", **edged)
    memory.set(xlim=(0, 1.02 * step.steps), xlabel="step", ylabel=name)
    memory.set_ylim(0, 1.1 * max(bottom, highest / size, max(grown) / size))
    memory.grid(False)
    finding = f"A step peaks at {binary(highest)}" if traced else "No peak yet"
    title(memory, finding, f"process: {binary(sizes[-1])} resident, {binary(before)} before")
    figure.legend(*memory.get_legend_handles_labels(), loc="outside lower center", ncols=3, handlelength=1.2)
    listed = ", ".join(f"{kind} {binary(amount)}" for kind, amount in kinds.items())
    figure.alt = (
        f"Left the loss of each step, at the end {step.loss:.2f}. {finding} by the exact ruler; by kind: {listed}."
    )
    return figure


@styled
def _note(text: str) -> Picture:
    figure, axes = picture(height=1.0)
    axes.set_axis_off()
    axes.text(0.5, 0.5, text, ha="center")
    figure.alt = text
    return figure


def monitor(
    trees: Mapping[str, Source] | None = None, *, interval: float = 0.5, name: str = "monitor"
) -> "LiveMonitor":
    """Watch memory from now on: a line for each kind of `trees`, one for the growth of the process, and a Stop button.

        viz.monitor({"params": params, "history": lambda: history})      # as the last line of a cell: shown there
        with viz.monitor() as live:                                      # or for a block
            fit(…, callbacks=[live])                                     # adds params and slots as fit has them

    It goes on while other cells run, until `stop()`, the button, the end of the block, or the same cell run again.
    trees, interval, name: as for `memory.Monitor`.
    """
    return LiveMonitor(Monitor(interval, trees, name=name))


class LiveMonitor:
    """A running `memory.Monitor` with a picture; `table()` and `samples` are the monitor's."""

    def __init__(self, watched: Monitor) -> None:
        self.monitor = watched
        self.live = Live(self.stop, "End the monitor and keep its picture")
        watched.on_sample = lambda _: self.live.draw(self.picture)
        watched.on_end = lambda _: self.live.end(self.picture())
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
        self.live.show()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __call__(self, step: Step) -> None:
        self.monitor(step)

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if not self.monitor.running:
            display(self.picture())
        elif not self.live.shown and not self.live.show():
            print(self.monitor.line())


class Drawing:
    """The samples of a monitor as lines over time, in SVG. It is written by hand: a thread draws it beside a cell that may
    draw with matplotlib itself, whose settings belong to all threads, and in a millisecond or so.

    It is shown as an image in HTML, which JupyterLab also shows in a notebook that it does not trust yet."""

    def __init__(self, watched: Monitor) -> None:
        samples = list(watched.samples)
        samples = samples[: -1 : -(-len(samples) // POINTS)] + samples[-1:]
        kinds = list(dict.fromkeys(kind for sample in samples for kind in sample.kinds))
        lines = {kind: [sample.kinds.get(kind, 0) for sample in samples] for kind in kinds}
        lines[GROWTH] = [max(0, sample.rss - samples[0].rss) for sample in samples]
        rss = watched.peaks["RSS"]
        finding = f"The process grew by {binary(rss - samples[0].rss)}, to {binary(rss)}"
        if kinds:
            most = max(kinds, key=lambda kind: watched.peaks[kind])
            finding += f"; {most} reached {binary(watched.peaks[most])}"
        under = f"sampled each {watched.apart:.2g} s or less, so peaks are lower bounds"
        if samples[-1].usage is not None:
            under += f"; {100 * samples[-1].usage:.0f} % of the allocator's memory in use"
        self.alt = f"{finding}. {len(lines)} lines over {samples[-1].seconds:.1f} seconds, {under}."
        self.svg = _svg([sample.seconds for sample in samples], lines, finding, under)

    def _repr_mimebundle_(self, **_: Any) -> dict[str, str]:
        return {"text/html": _image(self), "text/plain": self.alt}


def _svg(seconds: list[float], lines: dict[str, list[int]], finding: str, under: str) -> str:
    """Lines over time, their names and last values at the right."""
    size, name = unit(max(map(max, lines.values())))
    top, end = _round_up(max(map(max, lines.values())) / size), max(seconds[-1], 0.1)
    spare = [colour for kind, colour in COLOURS.items() if kind not in lines] or list(COLOURS.values())
    x = [LEFT + (RIGHT - LEFT) * second / end for second in seconds]
    parts = [
        _text(8, 22, finding, size=16, weight="bold"),
        _text(8, 42, under),
        _text(RIGHT, 292, "seconds", anchor="end"),
    ]
    for i in range(5):
        y = BOTTOM - (BOTTOM - TOP) * i / 4
        parts.append(f'<path d="M{LEFT} {y}H{RIGHT}" stroke="#808080" opacity="0.3"/>')
        parts.append(_text(LEFT - 6, y + 4, f"{top * i / 4:g}{f' {name}' * (i == 4)}", anchor="end"))
        parts.append(_text(LEFT + (RIGHT - LEFT) * i / 4, 274, f"{end * i / 4:.2g}", anchor="middle"))
    for place, (line, sizes) in enumerate(lines.items()):
        colour = INK if line == GROWTH else COLOURS.get(line, spare[place % len(spare)])
        look = f'fill="none" stroke="{colour}" stroke-width="2.5"' + ' stroke-dasharray="5 3"' * (line == GROWTH)
        heights = [BOTTOM - (BOTTOM - TOP) * value / size / top for value in sizes]
        points = " ".join(f"{across:.1f},{height:.1f}" for across, height in zip(x, heights, strict=True))
        y = TOP + 10 + 20 * place
        parts.append(f'<polyline points="{points}" {look}/><path d="M{RIGHT + 12} {y}h22" {look}/>')
        parts.append(_text(RIGHT + 40, y + 4, f"{line} {binary(sizes[-1])}"))
    head = '<svg xmlns="http://www.w3.org/2000/svg" width="720" height="300" font-family="DejaVu Sans, sans-serif">'
    return f"{head}{''.join(parts)}</svg>"


def _text(x: float, y: float, words: str, *, size: int = 13, anchor: str = "start", weight: str = "normal") -> str:
    place = f'x="{x:g}" y="{y:g}" font-size="{size}" text-anchor="{anchor}" fill="{INK}" font-weight="{weight}"'
    return f"<text {place}>{html.escape(words)}</text>"


def _round_up(value: float) -> float:
    """The next number that an axis can end at and be divided by four."""
    step = 1e-3
    while step < value:
        step *= 10
    return next((part * step for part in (0.12, 0.16, 0.2, 0.24, 0.32, 0.4, 0.6, 0.8) if part * step >= value), step)
