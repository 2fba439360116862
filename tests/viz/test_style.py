"""What a picture is when a notebook shows it."""

import struct

from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure

from dlcourse.viz import style


def test_a_picture_keeps_its_dots_and_its_alternative_text_beside_a_widget(monkeypatch):
    shell = InteractiveShell()
    png = shell.display_formatter.formatters["image/png"]
    png.for_type(Figure, lambda figure: b"of the inline backend")
    monkeypatch.setattr("IPython.get_ipython", lambda: shell)
    style._keep_own_png()
    figure, axes = style.picture(width=4, height=3)
    axes.plot([0, 1])
    figure.alt = "A line."
    data, metadata = shell.display_formatter.format(figure)
    width, height = struct.unpack(">II", data["image/png"][16:24])
    assert (width, height) == (800, 600)  # two dots a pixel
    assert metadata["image/png"] == {"width": 400, "height": 300, "alt": "A line."}
    assert data["text/plain"] == "A line."
