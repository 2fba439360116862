import re

import nbformat
import numpy as np
import pytest

from dlcourse.exercises import compare, predict, predictions
from notebooks import paths


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
    predict("00.step", **{unit: 512})
    assert written in capsys.readouterr().out


@pytest.mark.parametrize(("unit", "written"), [("seconds", "12.5 s"), ("percent", "12.5 %"), ("number", "12.5.")])
def test_other_quantities_have_their_own_units(unit, written, capsys):
    predict("00.step", **{unit: 12.5})
    assert written in capsys.readouterr().out
    assert compare("00.step", formula="f", by_formula=25, measured=25, unit=unit).prediction == 12.5


def test_the_last_prediction_counts_and_dots_take_it_back(capsys):
    for value, kept in ((1, 1024), (2, 2048), (..., None), (np.float32(3), 3072)):
        predict("00.step", kib=value)
        assert compare("00.step", formula="f", by_formula=1, measured=1).prediction == kept


def test_questions_do_not_mix(capsys):
    predict("00.array", bytes=1)
    assert compare("00.step", formula="f", by_formula=1, measured=1).prediction is None


@pytest.mark.parametrize("amount", [{}, {"mb": 1}, {"kib": 1, "mib": 1}])
def test_a_unit_that_is_missing_or_unknown_is_named_with_those_that_are_right(amount):
    with pytest.raises(TypeError, match="bytes, kib, mib, gib, seconds, percent, number"):
        predict("00.step", **amount)


@pytest.mark.parametrize("value", ["12", None, True, 1j])
def test_a_value_that_is_no_number_is_shown(value):
    with pytest.raises(TypeError, match="mib must be a number, such as mib=12"):
        predict("00.step", mib=value)


def test_a_value_that_is_not_finite_is_refused():
    with pytest.raises(ValueError, match="finite"):
        predict("00.step", seconds=float("nan"))
    for value in (10**400, 1e308):  # more than a float holds, the second one as bytes
        with pytest.raises(ValueError, match="finite"):
            predict("00.step", mib=value)


def test_another_quantity_than_the_predicted_one_is_refused(capsys):
    predict("00.step", seconds=1)
    with pytest.raises(ValueError, match=r"00\.step was predicted in seconds and is compared in bytes"):
        compare("00.step", formula="f", by_formula=1, measured=1)


def test_a_formula_is_escaped_in_html():
    shown = compare("00.step", formula="a < b & c", by_formula=2, measured=1)._repr_html_()
    assert "a &lt; b &amp; c" in shown
    assert "0.50" in shown


def test_a_prediction_of_nothing_has_a_ratio_too(capsys):
    predict("00.step", bytes=0)
    assert "inf" in str(compare("00.step", formula="f", by_formula=1, measured=1))
    assert "1.00" in str(compare("00.step", formula="f", by_formula=0, measured=0))


@pytest.mark.parametrize(
    ("amount", "said"),
    [
        ({"mib": -5}, "00.array: mib=-5 would be less than nothing, and is not kept."),
        ({"mib": 64_000_000}, "00.array: mib=6.4e+07 would be very much, and is not kept."),
        ({"mib": 1e300}, "00.array: mib=1e+300 would be very much, and is not kept."),
        ({"mib": 1e-300}, "00.array: mib=1e-300 would be less than a byte, and is not kept."),
        ({"percent": -1}, "00.array: percent=-1 would be less than nothing, and is not kept.\n"),
    ],
)
def test_a_number_that_cannot_be_meant_is_asked_back(amount, said, capsys):
    predict("00.array", **amount)
    assert said in capsys.readouterr().out
    assert compare("00.array", formula="f", by_formula=1, measured=1).prediction is None


def test_of_too_many_bytes_another_unit_is_asked(capsys):
    predict("00.array", mib=64_000_000)
    assert "Is another unit meant, such as bytes?" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("bytes_", "said"), [(61, "smaller by the factor 1,048,576"), (61 * 2**30, "larger by the factor 1,024")]
)
def test_a_slip_of_the_unit_is_told_beside_the_measured_one(bytes_, said, capsys):
    predict("00.array", bytes=bytes_)
    assert said in str(compare("00.array", formula="f", by_formula=61 * 2**20, measured=61 * 2**20))
    predict("00.array", mib=60)
    assert "factor" not in str(compare("00.array", formula="f", by_formula=61 * 2**20, measured=61 * 2**20))


def test_a_number_alone_is_told_to_name_its_unit():
    with pytest.raises(TypeError, match="write mib=8"):
        predict("00.array", 8)


@pytest.mark.parametrize(
    ("question", "said"), [("99.zzz", "named like"), ("00.aray", "notebook 00 asks array, "), (5, "named like")]
)
def test_a_question_that_nobody_asks_is_told(question, said):
    with pytest.raises(ValueError, match=said):
        predict(question, mib=1)


def test_the_questions_are_those_of_the_notebooks():
    for path in paths():
        code = "\n".join(cell.source for cell in nbformat.read(path, as_version=4).cells if cell.cell_type == "code")
        for function in ("predict", "compare"):
            asked = re.findall(rf'\b{function}\(\s*"{path.stem[:2]}\.(\w+)"', code)
            assert sorted(set(asked)) == sorted(predictions.QUESTIONS.get(path.stem[:2], "").split()), path.stem
