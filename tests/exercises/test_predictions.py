import numpy as np
import pytest

from dlcourse.exercises import compare, predict, predictions


@pytest.fixture(autouse=True)
def no_predictions():
    predictions._predictions.clear()
    yield
    predictions._predictions.clear()


def test_leaving_the_dots_prints_one_calm_line(capsys):
    predict("00.array", mib=...)
    out = capsys.readouterr().out
    assert out.count("\n") == 1
    assert "no prediction yet" in out
    assert "none yet" in str(compare("00.array", formula="n × 8", by_formula=8, measured=8))


def test_a_prediction_stands_beside_formula_and_measurement(capsys):
    predict("00.array", mib=15)
    assert capsys.readouterr().out == "00.array: you predict 15.0 MiB.\n"
    table = compare("00.array", formula="2000 × 1000 × 8", by_formula=30 * 2**20, measured=30 * 2**20)
    lines = str(table).splitlines()
    assert lines[1].split() == ["your", "prediction", "15.0", "MiB", "2.00"]
    assert lines[2].split() == ["2000", "×", "1000", "×", "8", "30.0", "MiB", "1.00"]
    assert lines[3].split() == ["measured", "30.0", "MiB"]
    assert table.ratio == 1
    assert repr(table) == str(table)


@pytest.mark.parametrize(("unit", "written"), [("bytes", "512 B"), ("kib", "512 KiB"), ("gib", "512 GiB")])
def test_bytes_may_be_given_in_any_unit(unit, written, capsys):
    predict("q", **{unit: 512})
    assert written in capsys.readouterr().out


@pytest.mark.parametrize(("unit", "written"), [("seconds", "12.5 s"), ("percent", "12.5 %"), ("number", "12.5.")])
def test_other_quantities_have_their_own_units(unit, written, capsys):
    predict("q", **{unit: 12.5})
    assert written in capsys.readouterr().out
    assert compare("q", formula="f", by_formula=25, measured=25, unit=unit).prediction == 12.5


def test_the_last_prediction_counts_and_dots_take_it_back(capsys):
    for value, kept in ((1, 1024), (2, 2048), (..., None), (np.float32(3), 3072)):
        predict("q", kib=value)
        assert compare("q", formula="f", by_formula=1, measured=1).prediction == kept


def test_questions_do_not_mix(capsys):
    predict("a", bytes=1)
    assert compare("b", formula="f", by_formula=1, measured=1).prediction is None


@pytest.mark.parametrize("amount", [{}, {"mb": 1}, {"kib": 1, "mib": 1}])
def test_a_unit_that_is_missing_or_unknown_is_named_with_those_that_are_right(amount):
    with pytest.raises(TypeError, match="bytes, kib, mib, gib, seconds, percent, number"):
        predict("q", **amount)


@pytest.mark.parametrize("value", ["12", None, True, 1j])
def test_a_value_that_is_no_number_is_shown(value):
    with pytest.raises(TypeError, match="mib must be a number, such as mib=12"):
        predict("q", mib=value)


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite"):
        predict("q", seconds=float("nan"))
    for value in (10**400, 1e308):  # more than a float holds, the second one as bytes
        with pytest.raises(ValueError, match="finite"):
            predict("q", mib=value)


def test_another_quantity_than_the_predicted_one_is_refused(capsys):
    predict("q", seconds=1)
    with pytest.raises(ValueError, match="q was predicted in seconds and is compared in bytes"):
        compare("q", formula="f", by_formula=1, measured=1)


def test_a_formula_is_escaped_in_html():
    shown = compare("q", formula="a < b & c", by_formula=2, measured=1)._repr_html_()
    assert "a &lt; b &amp; c" in shown
    assert "0.50" in shown


def test_a_prediction_of_nothing_has_a_ratio_too(capsys):
    predict("q", bytes=0)
    assert "inf" in str(compare("q", formula="f", by_formula=1, measured=1))
    assert "1.00" in str(compare("q", formula="f", by_formula=0, measured=0))
