"""What a picture is when a notebook shows it."""

import io
import struct
from base64 import b64decode

import matplotlib
import matplotlib.image
import nbformat
import numpy as np
import pytest
from IPython.core.interactiveshell import InteractiveShell
from matplotlib.figure import Figure

import notebooks
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


def luminance(colour):
    rgb = np.array(matplotlib.colors.to_rgb(colour))
    return np.array([0.2126, 0.7152, 0.0722]) @ np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)


@pytest.mark.parametrize("ground", ["#FFFFFF", "#111111"])  # of JupyterLab's light theme and of its dark one
def test_text_and_colours_are_seen_on_light_and_on_dark(ground):
    def contrast(colour):  # as WCAG 2 has it
        one, other = sorted((luminance(colour) + 0.05, luminance(ground) + 0.05))
        return other / one

    assert contrast(style.INK) > 4.2
    assert min(map(contrast, style.COLOURS.values())) > 1.7
    assert min(map(contrast, (style.MAIN, style.SECOND, style.REST, *(colour for colour, _ in style.LINES)))) > 2.2


def test_a_picture_has_no_ground_of_its_own():
    figure, axes = style.styled(style.picture)()
    axes.plot([0, 1])
    assert matplotlib.image.imread(io.BytesIO(figure.png(1)))[2, 2, 3] == 0


@pytest.mark.parametrize("path", notebooks.paths(), ids=notebooks.name_of)
def test_stored_pictures_have_no_ground_and_fit_a_narrow_window(path):
    """At 1024 pixels JupyterLab leaves about 590 for a picture: text of 10 points is still 9 pixels high if it has 890."""
    for cell in notebooks.code_cells(nbformat.read(path, as_version=4)):
        for output in cell.outputs:
            if "image/png" in output.get("data", {}):
                dots = matplotlib.image.imread(io.BytesIO(b64decode(output.data["image/png"])))
                assert dots[1, 1, 3] == 0, cell.source
                assert dots.shape[1] <= 2 * 890, cell.source
