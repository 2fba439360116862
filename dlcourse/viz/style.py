"""One look for every picture of the course: sizes, grid, and one colour for each kind of state."""

import io
import sys
import textwrap
from base64 import b64encode
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from dlcourse.units import SIZES, binary

# Pictures are transparent, so each colour is seen on white and on the dark theme's #111111. Kinds can be told apart with
# normal sight and without red, green or blue cones (CIE76 distance of any two at least 24, tests/viz/test_style.py).
COLOURS = {
    "params": "#384DEF",
    "slots": "#45B8EE",
    "grads": "#994B7E",
    "saved": "#EDB111",
    "workspace": "#B4B2B2",
    "data": "#699463",
    "buffers": "#71680E",
}
INK = "#7A7A7A"  # text and axes: 4.3 : 1 on white, 4.4 : 1 on #111111
MAIN, SECOND, REST = "#0F7F87", "#C4572B", "#ABABA6"  # what is no kind of state: the subject, another one, all others
LINES = ((MAIN, "-"), (SECOND, "--"), ("#8561B5", "-."), ("#5F8F2F", ":"))  # colour and dashes, by turns

RC: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so a picture is the same on every machine
    "font.size": 10.5,
    "axes.titlesize": 12,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "legend.fontsize": 10,
    "legend.frameon": False,
    **dict.fromkeys(("text.color", "axes.labelcolor", "axes.titlecolor", "xtick.color", "ytick.color"), INK),
    "axes.edgecolor": "#999999",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#808080",
    "grid.alpha": 0.25,
    "lines.linewidth": 2,
    **dict.fromkeys(("figure.facecolor", "savefig.facecolor", "axes.facecolor"), "none"),
    "axes.prop_cycle": cycler(
        color=[COLOURS[kind] for kind in ("params", "saved", "grads", "slots", "data", "buffers")]
    ),
}


def use() -> None:
    """Give the look to what a cell draws with matplotlib from here on."""
    matplotlib.rcParams.update(RC)


class Picture(Figure):
    """A figure that pyplot does not know: nothing to close, and it is shown once, as the last expression of a cell.

    `alt` says in words what is to be seen. It is stored with the picture, and stands in its place where none is shown.
    """

    alt = ""

    def png(self, scale: float = 2.0) -> bytes:
        """The picture as PNG, `scale` dots to a pixel of 1/100 inch."""
        file = io.BytesIO()
        with matplotlib.rc_context(RC):
            self.savefig(file, format="png", dpi=100 * scale, metadata={"Software": None})
        return file.getvalue()

    def _repr_mimebundle_(self, **_: Any) -> tuple[dict[str, str], dict[str, Any]]:
        width, height = (round(100 * inches) for inches in self.get_size_inches())
        data = {"image/png": b64encode(self.png()).decode("ascii"), "text/plain": self.alt or repr(self)}
        return data, {"image/png": {"width": width, "height": height, "alt": self.alt}}


def _keep_own_png() -> None:
    """The inline backend, which any widget loads, has a PNG of its own for every Figure, with half the dots and no
    alternative text. In IPython, register the PNG of Picture for Picture: the nearer class wins."""
    ipython = sys.modules.get("IPython")
    if ipython and (shell := ipython.get_ipython()) is not None:
        png = shell.display_formatter.formatters["image/png"]
        png.for_type(Picture, lambda shown: (shown.png(), shown._repr_mimebundle_()[1]["image/png"]))


_keep_own_png()


def picture(rows: int = 1, columns: int = 1, *, width: float = 7.2, height: float = 3.6, **axes: Any) -> Any:
    """-> (Picture, its axes), as `plt.subplots` gives them. Sizes in units of 100 pixels; at a width of 7.2 the text can
    still be read when a narrow window makes the picture smaller. In a notebook call `use()` before, so that all text in
    the picture has the look too; in a function, decorate it with `styled`."""
    air = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)  # at the edges, in inches
    figure = Picture(figsize=(width, height), layout=air)
    return figure, figure.subplots(rows, columns, **axes)


def canvas(width: float, height: float, finding: str = "", circumstances: str = "") -> tuple[Any, float]:
    """-> (axes over a whole picture, in units of 100 pixels from its upper left corner; where the room under the title
    begins). `height` is that of the room."""
    top = 0.1 + 0.24 * (len(_wrapped(finding, width).splitlines()) + bool(circumstances))
    figure, axes = picture(width=width, height=top + height)
    figure.set_layout_engine("none")
    axes.set(position=(0, 0, 1, 1), xlim=(0, width), ylim=(top + height, 0))
    axes.set_axis_off()
    title(figure, finding, circumstances)
    return axes, top


styled = matplotlib.rc_context(RC)  # @styled: what the function draws has the look, and what others draw has not


def title(over: Any, finding: str, circumstances: str = "") -> None:
    """Write what is to be seen over a picture, or over one panel of it (axes), and under that what it holds for."""
    if isinstance(over, Picture):
        width, height = over.get_size_inches()
        lines = _wrapped(finding, width)
        over.suptitle(lines + "\n" * bool(circumstances), size=13, weight="bold", x=0.012, ha="left", color=INK)
        y = 1 - (0.1 + 0.22 * len(lines.splitlines())) / height
        over.text(0.012, y, circumstances, size=10, va="top", color=INK)
        return
    shape = over.get_subplotspec().get_gridspec() if over.get_subplotspec() else None
    lines = _wrapped(finding, over.figure.get_size_inches()[0] / (shape.ncols if shape else 1))
    over.set_title(lines, pad=22 if circumstances else 8)
    over.annotate(circumstances, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points", size=10)


def _wrapped(words: str, width: float) -> str:
    return textwrap.fill(words, int(8 * width))  # letters of 13 points, bold


def unit(largest: float) -> tuple[int, str]:
    """The unit for an axis of bytes that reaches up to `largest`: (2**20, "MiB")."""
    return next((size, name) for name, size in reversed(SIZES.items()) if largest >= size or size == 1)


def short(count: float) -> str:
    """A round number of bytes: 2**31 -> "2 GiB"."""
    number, name = binary(count).split()
    return f"{float(number):g} {name}"


def duration(seconds: float) -> str:
    """Seconds in the unit that suits them, with two digits: 0.0164 -> "16 ms"."""
    units = ((1.0, "s"), (1e-3, "ms"), (1e-6, "µs"))
    size, name = next((unit for unit in units if seconds >= 0.995 * unit[0]), units[-1])
    count = seconds / size
    return f"{count:.0f} {name}" if count >= 9.95 or abs(count - round(count)) < 1e-9 else f"{count:.1f} {name}"
