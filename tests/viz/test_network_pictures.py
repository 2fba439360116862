import numpy as np
import pytest

from dlcourse.viz.network import lifetimes, shares, stairs, through_layers
from dlcourse.viz.style import COLOURS

MIB = 2**20
LAYERS = ["affine_1", "relu_1", "affine_2"]
UP = [("forward", LAYERS[: i + 1]) for i in range(3)]
HELD = UP + [("backward", LAYERS)] * 3
GONE = UP + [("backward", LAYERS[: 2 - i]) for i in range(3)]


def colour(patch):
    return "#" + "".join(f"{round(255 * part):02X}" for part in patch.get_facecolor()[:3])


def test_stairs_fill_a_cell_where_what_a_layer_saved_is_alive():
    drawn = stairs({"held": HELD, "gone": GONE}, LAYERS)
    filled = [[colour(cell) == COLOURS["saved"] for cell in axes.patches] for axes in drawn.axes]
    assert [sum(panel) for panel in filled] == [6 + 9, 6 + 3]
    assert filled[1] == [layer in alive for _, alive in GONE for layer in LAYERS]


def test_stairs_say_what_is_held_at_the_end():
    drawn = stairs({"held": HELD, "gone": GONE}, LAYERS)
    titles = [axes.get_title(loc="left") for axes in drawn.axes]
    assert titles == ["At the end 3 of 3 are held", "At the end 0 of 3 are held"]
    assert "gone: at the end 0 of 3 layers hold saved arrays" in drawn.alt


def test_lifetimes_add_up_what_is_alive_between_two_steps():
    drawn = lifetimes({"params": 2 * MIB, "slots": 4 * MIB, "grads": 2 * MIB, "saved": 8 * MIB}, "a network")
    assert drawn.axes[0].get_title(loc="left") == "Between two steps 6.00 MiB of 16.0 MiB are alive"
    assert "saved 8.00 MiB, grows in forward and goes in backward" in drawn.alt
    assert "params 2.00 MiB, always there" in drawn.alt


def test_lifetimes_draw_each_kind_in_its_colour_and_on_one_scale():
    drawn = lifetimes({"params": 2 * MIB, "saved": 8 * MIB})
    assert [colour_of(axes) for axes in drawn.axes] == [COLOURS["params"], COLOURS["saved"]]
    assert len({axes.get_ylim() for axes in drawn.axes}) == 1


def colour_of(axes):
    (area,) = axes.collections
    return "#" + "".join(f"{round(255 * part):02X}" for part in area.get_facecolor()[0][:3])


def test_through_layers_leave_out_what_no_logarithm_can_show():
    drawn = through_layers({"grows": [1.0, 10.0, np.inf], "gone": [1.0, 0.0, 0.0]}, "It grows")
    assert drawn.axes[0].get_yscale() == "log"
    assert [np.isfinite(line.get_ydata()).sum() for line in drawn.axes[0].lines[1:]] == [2, 1]
    assert drawn.alt.startswith("It grows. ") and "gone: 1 in the first layer, 0 in the last" in drawn.alt


def test_through_layers_name_a_line_that_leaves_the_axis_where_it_was_seen_last():
    drawn = through_layers({"out": [1.0, 1e3, 1e6], "in": [1.0, 1.0, 1.0]}, "Ends", limits=(1e-4, 1e4))
    assert drawn.axes[0].get_ylim() == (1e-4, 1e4)
    assert {text.get_text(): text.xy[0] for text in drawn.axes[0].texts if text.get_text() in ("out", "in")} == {
        "out": 2,
        "in": 3,
    }


def test_through_layers_keep_the_words_at_the_ends_apart():
    drawn = through_layers({"a": [1.0, 1.0], "b": [1.0, 1.01], "c": [1.0, 100.0]}, "Ends")
    heights = np.log10([text.xy[1] for text in drawn.axes[0].texts if text.get_text() in "abc"])
    assert np.diff(heights).min() > 0.05


def test_shares_have_a_panel_for_each_start_and_layer():
    rng = np.random.default_rng(0)
    numbers = {
        name: {layer: rng.uniform(-scale, scale, 1000) for layer in (1, 4)} for name, scale in (("a", 1), ("b", 9))
    }
    drawn = shares(numbers, "Finding", limits=(-1, 1))
    assert len(drawn.axes) == 4
    assert drawn.get_suptitle() == "Finding"
    assert drawn.alt.startswith("Finding. a: half of the numbers of layer 4 are within ±0.5")


@pytest.mark.parametrize("kind", ["workspace", "nothing"])
def test_lifetimes_know_four_kinds(kind):
    with pytest.raises(KeyError):
        lifetimes({kind: MIB})
