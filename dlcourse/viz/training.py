"""Pictures of data and of training, and a dashboard that watches a training while it runs."""

import signal
import threading
import time
import tracemalloc
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Self

import numpy as np
from matplotlib.patheffects import withStroke

from dlcourse import tree
from dlcourse.memory import Bill, reset_traced_peak, resident_now
from dlcourse.train import History, Step
from dlcourse.units import binary
from dlcourse.viz.bill import ORDER
from dlcourse.viz.style import COLOURS, INK, Picture, picture, styled, title, unit

STEPS, CHECK = "#B5B5B5", "#B5401A"  # the loss of single steps; what was measured on samples kept apart


@styled
def curves(history: History) -> Picture:
    """The loss of each step (light), the mean of each epoch (a level line over its steps) and, where there was
    validation, its loss at the end of each epoch, with the accuracy beside."""
    accuracy = [value for value in history.column("val_accuracy") if value is not None]
    figure, axes = picture(1, 2 if accuracy else 1, width=10 if accuracy else 8.5, height=3.8, squeeze=False)
    loss = axes[0, 0]
    _loss(loss, history)
    if history.step_loss:  # the axis shows what the title names, and a point at 0 whole
        top = max(loss.get_ylim()[1], 1.05 * history.step_loss[0])
        loss.set_ylim(-0.03 * top, top)
        loss.legend(loc="upper right")  # up to its first loss the axis is empty where the training ends
    finding = (
        f"The loss goes from {history.step_loss[0]:.2f} to {history.step_loss[-1]:.2f}" if history.step_loss else ""
    )
    title(loss, finding, f"{len(history.step_loss)} steps, {len(history.epochs)} whole epochs")
    figure.alt = f"{finding}. Loss against steps, with the mean of each epoch."
    if accuracy:
        found = f"Validation accuracy ends at {accuracy[-1]:.1%}"
        numbers = range(1, len(accuracy) + 1)
        axes[0, 1].plot(numbers, [100 * value for value in accuracy], "o-", color=CHECK)
        axes[0, 1].set(xlabel="epoch", ylabel="per cent right", ylim=(-3, 103))
        axes[0, 1].set_xticks([number for number in numbers if number % -(-len(numbers) // 10) == 0])
        title(axes[0, 1], found, "after each epoch")
        figure.alt += f" {found}."
    return figure


@styled
def pictures(split: Any, n: int = 20, *, columns: int = 10, captions: Sequence[str] | None = None) -> Picture:
    """The first `n` pictures of a split in rows of `columns`, each under the name of its class or its caption.

    split: .x uint8 (N, H, W, 3 or 1), .y (N,), .class_names, as `datasets` make it.
    """
    n = min(n, len(split.x))
    if n < 1:
        raise ValueError(f"there is nothing to show: n is {n} and the split has {len(split.x)} pictures")
    columns = min(columns, n)
    rows = -(-n // columns)
    names = captions if captions is not None else [_class_name(split.class_names, label) for label in split.y[:n]]
    lines = 1 + max(name.count("\n") for name in names[:n])
    figure, axes = picture(
        rows, columns, width=1.0 * columns + 0.3, height=(0.92 + 0.18 * lines) * rows + 0.2, squeeze=False
    )
    for place, ax in enumerate(axes.flat):
        ax.set_axis_off()
        if place < n:
            _image(ax, split.x[place])
            ax.set_title(names[place], loc="center", fontsize=9, fontweight="normal", pad=3)
    figure.alt = f"{n} pictures: {', '.join(name.replace(chr(10), ' ') for name in names[:n])}."
    return figure


@styled
def confusion(matrix: np.ndarray, class_names: Sequence[str] = ()) -> Picture:
    """How often samples of one class (rows) were taken for another (columns). matrix (K, K) of counts."""
    matrix = np.asarray(matrix)
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"a confusion matrix is square, (classes, classes); got shape {matrix.shape}")
    names = [_class_name(class_names, label) for label in range(len(matrix))]
    figure, ax = picture(width=2.4 + 0.5 * len(matrix), height=1.9 + 0.42 * len(matrix))
    share = matrix / np.maximum(matrix.sum(axis=1, keepdims=True), 1)
    ax.imshow(share, cmap="Greys", vmin=0, vmax=1, aspect="auto")
    for row, column in np.argwhere(matrix > 0):
        dark = share[row, column] > 0.5
        ax.text(column, row, str(matrix[row, column]), ha="center", va="center", size=10, color="w" if dark else INK)
    ax.set_xticks(range(len(names)), names, rotation=45, ha="right", rotation_mode="anchor")
    ax.set_yticks(range(len(names)), names)
    ax.tick_params(length=0)
    ax.grid(False)
    ax.set(xlabel="taken for", ylabel="is")
    mistakes = matrix - np.diag(np.diag(matrix))
    if mistakes.any():
        row, column = np.unravel_index(mistakes.argmax(), mistakes.shape)
        finding = f"Most often: {names[row]} taken for {names[column]}, {mistakes[row, column]} times"
    else:
        finding = "No mistake"
    right, total = np.trace(matrix), matrix.sum()
    title(
        ax,
        finding,
        f"{right} of {total} right ({right / max(total, 1):.1%}); a darker cell is a larger share of its row",
    )
    figure.alt = f"{finding}. {right} of {total} are on the diagonal, which is right."
    return figure


@styled
def filters(W: np.ndarray, *, columns: int = 16) -> Picture:
    """The filters of a first convolution as small pictures.  W (kh, kw, 3 or 1, F).

    Each is scaled by its own largest weight: mid-grey is 0, brighter is positive, darker is negative, a channel each.
    """
    W = np.asarray(W)
    if W.ndim != 4 or W.shape[2] not in (1, 3):
        raise ValueError(f"filters that look like pictures are (kh, kw, 3 or 1, filters); got shape {W.shape}")
    count = W.shape[3]
    columns = min(columns, count)
    rows = -(-count // columns)
    figure, axes = picture(rows, columns, width=0.6 * columns + 0.4, height=0.6 * rows + 0.4, squeeze=False)
    for place, ax in enumerate(axes.flat):
        ax.set_axis_off()
        if place < count:
            one = W[..., place]
            shown = 0.5 + 0.5 * one / max(np.abs(one).max(), np.finfo(W.dtype).tiny)
            ax.imshow(shown if one.shape[2] == 3 else shown[..., 0], cmap="gray", vmin=0, vmax=1)
    figure.alt = f"{count} filters of {W.shape[0]}×{W.shape[1]} pixels, each as a small picture; mid-grey is 0."
    return figure


class Dashboard:
    """Loss and memory by kind while `fit` runs, and a Stop button:

        with Dashboard(bill) as live:
            history = fit(..., callbacks=[live])

    Left the loss; right the bytes: params and slots of the live trees, the other kinds from the bill's highest moment,
    the peak of some steps by the exact ruler, and by how much the resident size of the process has grown. At the end one
    picture that stands by itself takes the place of the widgets, which are closed. Outside a notebook nothing is shown.

    Stop, and an interrupt (■ in the toolbar, Ctrl-C), end the training after the present step. `fit` runs in the cell
    and not in a thread of its own: so a cell is done when its training is done, Run All keeps its order, an error shows
    in its cell, and a second run does not meet the first one still at work. The click comes in while the cell runs where
    JupyterLab (4.4 on) and ipykernel (7 on) hand the messages of widgets to another thread. Where they do not, the click
    waits for the end of the cell, and the interrupt is the way.

    At most once in `every` seconds it draws, and traces the allocations of one step (tracemalloc): a step is half as
    slow again while it is traced, and a picture takes as long as some steps. Drawing is held under a tenth of the time.
    """

    def __init__(self, bill: Bill | None = None, *, every: float = 1.0) -> None:
        self.bill, self.every = bill, every
        self._stop, self._open = threading.Event(), False
        self._begin()

    def _begin(self) -> None:
        self.traced: dict[int, int] = {}  # {step: its peak}, params and slots included; never the first step
        self.resident: list[int] = []  # the resident size after each step
        self._step: Step | None = None
        self._persistent: dict[str, int] = {}
        self._shown: Any = None
        self._interrupt: Any = None
        self._told = self._drawn = time.perf_counter()
        self._cost, self._next_trace = 0.0, 0.0
        self._before: int | None = None  # traced bytes before a step that is traced
        self._tracing = False  # whether tracing was started here
        self._stop.clear()

    def __enter__(self) -> Self:
        self._begin()
        if threading.current_thread() is threading.main_thread():
            self._interrupt = signal.signal(signal.SIGINT, lambda *_: self.stop())
        self._show_widgets()
        self._resident = resident_now().total
        self._open = True
        return self

    def __exit__(self, *_: object) -> None:
        self._open = False
        self._end_trace()
        if self._interrupt is not None:
            signal.signal(signal.SIGINT, self._interrupt)
        if self._shown is not None:
            handle, widgets = self._shown
            handle.update(self.picture() if self._step else _note("no step was done"))
            for widget in widgets:
                for part in (widget, widget.layout, getattr(widget, "style", None)):
                    if part is not None:
                        part.close()
            self._shown = None

    def __call__(self, step: Step) -> bool:
        """What `fit` calls after each step: True where the training is to end."""
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
        self.resident.append(resident_now().total)
        self._step = replace(step, params={}, slots={})  # without its arrays, which would live on with this object
        if self._shown is not None:
            self._refresh(step)
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
        return _dashboard(self._step, self._kinds(), self.traced, self.resident, self._resident)

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

    def _kinds(self) -> dict[str, int]:
        if self.bill is None:
            return self._persistent
        highest = max(self.bill.moments, key=lambda moment: moment.total)
        kinds = {kind: getattr(highest, kind) for kind in ORDER if getattr(highest, kind, 0)}
        return kinds | {kind: size for kind, size in self._persistent.items() if size}

    def _show_widgets(self) -> None:
        """Show the widgets, where there is a notebook."""
        from IPython import get_ipython
        from IPython.display import display

        if getattr(get_ipython(), "kernel", None) is None:
            return
        import ipywidgets

        button = ipywidgets.Button(description="Stop", icon="stop", tooltip="End the training after the present step")
        button.on_click(lambda _: self.stop())
        # ipykernel 7.4 answers a widget in the thread that wrote to it last, and that one is at work here: leave a click
        # to the thread that JupyterLab chose.
        button.comm._reply_subshell_for = lambda data, chosen: chosen
        self._label = ipywidgets.Label("The first step is under way.")
        self._image = ipywidgets.Image(value=_note("").png(1), format="png", width=WIDTH * 100, height=HEIGHT * 100)
        row = ipywidgets.HBox([button, self._label])
        box = ipywidgets.VBox([row, self._image])
        self._shown = display(box, display_id=True), (box, row, button, self._label, self._image)

    def _refresh(self, step: Step) -> None:
        now = time.perf_counter()
        if now - self._told >= 0.25:
            ending = "; it ends here" if self._stop.is_set() else ""
            self._label.value = f"Epoch {step.epoch}, step {step.step} of {step.steps}, loss {step.loss:.3f}{ending}"
            self._told = now
        if now - self._drawn >= max(self.every, 10 * self._cost):
            before = time.thread_time()  # the work, and not the time that others take from this thread
            self._image.value = self.picture().png(1)
            self._cost = time.thread_time() - before
            self._drawn = now


WIDTH, HEIGHT = 10.0, 3.9


@styled
def _dashboard(step: Step, kinds: dict[str, int], traced: dict[int, int], sizes: list[int], before: int) -> Picture:
    figure, (loss, memory) = picture(1, 2, width=WIDTH, height=HEIGHT)
    history = step.history
    _loss(loss, history)
    loss.set_xlim(0, 1.02 * step.steps)
    place = f"epoch {step.epoch}, step {step.step} of {step.steps}"
    title(loss, f"Loss {step.loss:.2f}", f"{place}: stopped" if history.stopped else place)

    grown = [max(0, size - before) for size in sizes]
    highest = max(traced.values(), default=0)
    size, name = unit(max(highest, sum(kinds.values())))
    bottom = 0.0
    for kind, amount in kinds.items():
        top = bottom + amount / size
        memory.axhspan(bottom, top, color=COLOURS[kind], label=f"{kind} {binary(amount)}")
        bottom = top
    peaks = [peak / size for peak in traced.values()]
    memory.plot(list(traced), peaks, "o-", color=INK, markersize=4, linewidth=1, label="peak of a step, traced")
    numbers = range(step.step - len(grown) + 1, step.step + 1)
    over_bands = [withStroke(linewidth=4, foreground="white")]
    label = "growth of the process"
    memory.plot(numbers, [x / size for x in grown], ":", color=INK, path_effects=over_bands, label=label)
    memory.set(xlim=(0, 1.02 * step.steps), xlabel="step", ylabel=name)
    memory.set_ylim(0, 1.1 * max(bottom, highest / size, max(grown) / size))
    memory.grid(False)
    finding = f"A step peaks at {binary(highest)} by the exact ruler" if traced else "No peak yet"
    title(memory, finding, f"the process has {binary(sizes[-1])} resident, {binary(before)} before")
    figure.legend(*memory.get_legend_handles_labels(), loc="outside lower center", ncols=4, handlelength=1.2)
    listed = ", ".join(f"{kind} {binary(amount)}" for kind, amount in kinds.items())
    figure.alt = f"Left the loss of each step, at the end {step.loss:.2f}. {finding}; by kind: {listed}."
    return figure


def _loss(ax: Any, history: History) -> None:
    losses = history.step_loss
    ax.plot(range(1, len(losses) + 1), losses, color=STEPS, linewidth=1, label="step")
    if history.epochs:
        length = _steps_per_epoch(history)
        ends = [length * number for number in range(1, len(history.epochs) + 1)]
        ax.hlines(history.column("loss"), [end - length for end in ends], ends, color=INK, label="mean of an epoch")
        if checked := history.column("val_loss"):
            ax.plot(ends, checked, "o", color=CHECK, label="validation")
    ax.set(xlabel="step", ylabel="loss")
    ax.set_ylim(0, 1.05 * float(np.percentile(losses, 99)) if losses else 1)
    ax.legend(loc="lower left")  # a loss comes from the upper left


def _steps_per_epoch(history: History) -> int:
    """A training that was stopped may have a part of an epoch at its end: the right length gives the first mean."""
    steps, epochs = len(history.step_loss), len(history.epochs)
    possible = range(steps // (epochs + 1) + 1, steps // epochs + 1) if history.stopped else [steps // epochs]
    return min(possible, key=lambda n: abs(sum(history.step_loss[:n]) / n - history.epochs[0]["loss"]))


def _class_name(names: Sequence[str], label: int) -> str:
    return names[label] if len(names) else str(label)


def _image(ax: Any, x: np.ndarray) -> None:
    if x.shape[-1] == 1:
        ax.imshow(x[..., 0], cmap="gray_r", vmin=0, vmax=255)  # 255 is ink
    else:
        ax.imshow(x)


@styled
def _note(text: str) -> Picture:
    figure, ax = picture(width=WIDTH, height=HEIGHT)
    ax.set_axis_off()
    ax.text(0.5, 0.5, text, ha="center")
    figure.alt = text
    return figure
