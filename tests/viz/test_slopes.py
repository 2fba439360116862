import numpy as np
import pytest
from matplotlib.text import Text

from dlcourse import tree
from dlcourse.layers import Affine
from dlcourse.viz import slopes

X = np.arange(6.0).reshape(3, 2)
W = np.array([[1.0, 2, 0], [0, 1, 3]])


def texts(drawn):
    drawn.draw_without_rendering()
    return [
        text for axes in drawn.axes for text in axes.findobj(Text) if text.get_visible() and text.get_text().strip()
    ]


def test_secants_say_the_slope_of_each_line():
    drawn = slopes.secants(lambda w: w**2, at=3, steps=[1, 0.5, 0.25], name="w²")
    assert "To one side" not in drawn.alt and "A step to one side: 7 for h = 1, 6.5 for h = 0.5, 6.25" in drawn.alt
    assert "To both sides: 6 for h = 1, 6 for h = 0.5, 6 for h = 0.25" in drawn.alt
    assert [axes.get_title(loc="left") for axes in drawn.axes] == [
        "A step to one side",
        "A step to both sides is nearer",
    ]


def test_chain_has_values_forward_and_gradients_backward():
    drawn = slopes.chain([("w", 3, 12), ("y", 7, 6), ("L", 9, 1)], ["× 2", "× 6"])
    assert "Forward: w = 3, y = 7, L = 9. The gradients, backward: 1 for L, 6 for y, 12 for w" in drawn.alt
    written = [text.get_text() for text in texts(drawn)]
    assert {"w = 3", "gradient 12", "× 2", "× 6"} <= set(written)


@pytest.mark.parametrize(
    ("path", "finding", "loss"),
    [
        (
            [(0, 0, 4.0), (0.5, 0.5, 1.0), (1, 1, 0.0)],
            "The line lies along the points after 2 steps",
            "falls from 4.00 to 0.000",
        ),
        ([(0, 0, 4.0), (0.5, 0.5, 1.0)], "After 1 steps the line is still on its way", "falls from 4.00 to 1.000"),
        ([(0, 0, 4.0), (9, 9, 1e6)], "The line leaves the points", "grows from 4.00 to 1.0e+06"),
    ],
)
def test_fitted_says_where_the_line_has_come_to(path, finding, loss):
    x = np.array([0.0, 1, 2, 3])
    drawn = slopes.fitted(x, x + 1 + 1e-3 * x**2, path, shown=(0, len(path) - 1))
    left, right = drawn.axes
    assert left.get_title(loc="left") == finding
    assert right.get_title(loc="left") == f"The loss {loss}"
    assert f"step {len(path) - 1}: {path[-1][0]:.2f} x + {path[-1][1]:.2f}" in drawn.alt


def test_product_fills_the_numbers_that_were_chosen():
    drawn = slopes.product([("x", X, np.s_[:, 1]), ("W", W, np.s_[1, 0])], ("x @ W", X @ W, np.s_[:, 0]), "One weight")
    assert "x (3, 2): 1, 3, 5; W (2, 3): 0; x @ W (3, 3): 0, 2, 4" in drawn.alt
    filled = [box for box in drawn.axes[0].patches if box.get_facecolor()[:3] != (1, 1, 1)]
    assert len(filled) == 3 + 1 + 3
    assert [text.get_text() for text in drawn.axes[0].texts if text.get_text() in "@="] == ["@", "="]


def test_step_errors_name_the_best_step_of_each_dtype():
    drawn = slopes.step_errors({"float32": {0.1: 0.2, 0.01: 0.05, 0.001: 0.5}, "float64": {0.1: 0.2, 0.01: 1e-3}})
    assert "float32: smallest error 5e-02 at h = 1e-02; float64: smallest error 1e-03 at h = 1e-02" in drawn.alt
    assert drawn.axes[0].get_title(loc="left") == "A step can be too large and too small"


@pytest.mark.parametrize(("batch", "width", "layers"), [(1, 64, 1), (64, 512, 4), (513, 512, 4), (16384, 4096, 16)])
def test_growth_says_by_how_much_and_its_text_stays_inside(batch, width, layers):
    drawn = slopes.growth(batch, width, layers, measured={256: 2**20})
    params, saved = slopes.stack_bytes(batch, width, layers)
    assert drawn.axes[0].get_title(loc="left") == f"Saved is {saved / params:.3g} × the parameters"
    assert f"equal at batch {width + 1:,}" in drawn.alt
    edge = drawn.bbox
    for text in texts(drawn):
        box = text.get_window_extent()
        assert edge.x0 <= box.x0 and box.x1 <= edge.x1 and edge.y0 <= box.y0 and box.y1 <= edge.y1, text


def test_the_bytes_of_a_stack_are_those_of_the_package_s_layers():
    layer, rng = Affine(32), np.random.default_rng(0)
    params = layer.init((32,), rng)
    _, saved = layer.forward(params, np.ones((8, 32), np.float32), train=True)
    assert slopes.stack_bytes(8, 32, 3) == (3 * tree.nbytes(params), 3 * saved.nbytes)
