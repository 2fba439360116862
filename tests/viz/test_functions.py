import math

import numpy as np
import pytest
from matplotlib.colors import to_hex

from dlcourse import losses
from dlcourse.viz.functions import answer, curves, descent
from dlcourse.viz.style import Picture

X = np.linspace(-2, 2, 9)


def heading(drawn: Picture) -> str:
    return drawn.get_suptitle()


def heights(panel) -> list[float]:
    return [bar.get_height() for bar in panel.patches]


def test_curves_draw_each_function_and_its_slope():
    drawn = curves(X, {"square": (X**2, 2 * X), "line": (X, np.ones_like(X))}, "One bends")
    square, line = drawn.axes
    assert [to_draw.get_label() for to_draw in square.lines[-2:]] == ["y", "slope"]
    assert np.array_equal(square.lines[-1].get_ydata(), 2 * X)
    assert np.array_equal(line.lines[-2].get_ydata(), X)
    assert heading(drawn) == "One bends"
    assert drawn.alt == (
        "One bends. A panel for each function, with its slope: square from 4.00 to 4.00, slope from -4.00 to 4.00; "
        "line from -2.00 to 2.00, slope from 1.00 to 1.00."
    )


def test_answer_draws_scores_probabilities_and_the_gradient_of_the_loss():
    scores = np.array([1.0, -2.0, 3.0])
    drawn = answer(scores, 1, ["ant", "bee", "cat"])
    loss, gradient = losses.softmax_cross_entropy(scores[None], np.array([1]))
    left, middle, right = drawn.axes
    assert heights(left) == [1, -2, 3]
    assert np.allclose(heights(middle), losses.softmax(scores))
    assert np.allclose(heights(right), gradient[0])
    assert f"the loss is {loss:.2f}" in heading(drawn)
    assert "bee is right" in drawn.alt


def test_answer_marks_the_right_answer_alone():
    for panel in answer(np.zeros(4), 2).axes:
        colours = [to_hex(bar.get_facecolor()) for bar in panel.patches]
        assert colours.count(colours[2]) == 1
        assert [text.get_text() for text in panel.get_xticklabels() if text.get_weight() == "bold"] == ["2"]


def test_answer_survives_scores_far_apart():
    drawn = answer(np.array([1000.0, 0.0, -1000.0]), 1)
    assert heading(drawn) == "The right answer has 0.0%: the loss is 1000.00"
    assert heights(drawn.axes[2]) == [1, -1, 0]


@pytest.mark.parametrize(("scores", "label"), [(np.zeros((2, 3)), 0), (np.zeros(3), 3), (np.zeros(3), -1)])
def test_answer_refuses_what_is_not_one_row_with_a_label_in_it(scores, label):
    with pytest.raises(ValueError, match="one row of scores"):
        answer(scores, label)


def test_descent_has_a_point_an_epoch_in_its_middle_and_counts_the_short_last_one():
    drawn = descent([4.0, 2.0, 2.0, 1.0, 0.5], 2, "It falls", start=math.log(10))
    steps, epochs, nothing = drawn.axes[0].lines
    assert steps.get_xdata().tolist() == [1, 2, 3, 4, 5]
    assert list(epochs.get_xdata()) == [1.5, 3.5, 5.0]
    assert list(epochs.get_ydata()) == [3.0, 1.5, 0.5]
    assert nothing.get_ydata()[0] == math.log(10)
    assert drawn.axes[0].get_title(loc="left") == "It falls"
    assert drawn.alt == "It falls. The mean loss of each epoch: 3.00, 1.50, 0.50."
