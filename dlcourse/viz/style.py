"""One look for every picture of the course: sizes, grid, and one colour for each kind of state."""

import io
import sys
from base64 import b64encode
from typing import Any

import matplotlib
from cycler import cycler
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

# Kinds can be told apart with normal sight, without red, green or blue cones, and by lightness next to their neighbours.
COLOURS = {
    "params": "#22308F",
    "slots": "#45B8EE",
    "grads": "#9A4577",
    "saved": "#EDB111",
    "workspace": "#CFCFCF",
    "data": "#5B8C4F",
    "buffers": "#3A1A1C",
}
INK, QUIET = "#222222", "#666666"  # text; text of second rank

RC: Any = {
    "font.family": "DejaVu Sans",  # comes with matplotlib, so a picture is the same on every machine
    "font.size": 11,
    "axes.titlesize": 13,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.titlepad": 10,
    "axes.labelsize": 11,
    "xtick.labelsize": 10,
    "ytick.labelsize": 10,
    "legend.fontsize": 10,
    "legend.frameon": False,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.titlecolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "axes.edgecolor": "#999999",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#E4E4E4",
    "lines.linewidth": 2,
    "figure.facecolor": "white",
    "savefig.facecolor": "white",
    "axes.prop_cycle": cycler(
        color=[COLOURS[kind] for kind in ("params", "saved", "grads", "slots", "data", "buffers")]
    ),
}

UNITS = ((2**30, "GiB"), (2**20, "MiB"), (2**10, "KiB"), (1, "B"))


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
    alternative text. In IPython, name ours for Picture: the nearer class wins."""
    ipython = sys.modules.get("IPython")
    shell = ipython.get_ipython() if ipython else None
    if shell is not None:
        shell.display_formatter.formatters["image/png"].for_type(
            Picture, lambda shown: (shown.png(), shown._repr_mimebundle_()[1]["image/png"])
        )


_keep_own_png()


def picture(
    rows: int = 1, columns: int = 1, *, width: float = 8.5, height: float = 4.0, **axes: Any
) -> tuple[Any, Any]:
    """-> (Picture, its axes), as `plt.subplots` gives them. Sizes in units of 100 pixels. Use it in a function that is
    decorated with `styled`, so that all text in the picture has the look too."""
    air = ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.08)  # at the edges, in inches
    figure = Picture(figsize=(width, height), layout=air)
    return figure, figure.subplots(rows, columns, **axes)


styled = matplotlib.rc_context(RC)  # @styled: what the function draws has the look, and what others draw has not


def title(axes: Any, finding: str, circumstances: str = "") -> None:
    """Write what the picture shows over it, and under that, smaller, what it holds for."""
    lift = 22 if circumstances else 10
    axes.set_title(finding, pad=lift)
    if circumstances:
        axes.annotate(
            circumstances, (0, 1), (0, 7), xycoords="axes fraction", textcoords="offset points", size=10, color=QUIET
        )


def unit(largest: float) -> tuple[int, str]:
    """The unit for an axis of bytes that reaches up to `largest`: (2**20, "MiB")."""
    return next((size, name) for size, name in UNITS if largest >= size or size == 1)
