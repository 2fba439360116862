"""Bytes as text, and texts as bytes."""

import pytest

from dlcourse.units import binary, parse


@pytest.mark.parametrize(
    ("text", "count"),
    [("200MiB", 209715200), (" 200 mib ", 209715200), ("1.5 GiB", 1610612736), ("4096B", 4096), ("7 B", 7), (12, 12)],
)
def test_a_size_is_read_with_and_without_a_space(text, count):
    assert parse(text) == count


@pytest.mark.parametrize(
    "text", ["200 MB", "MiB", "-1 MiB", "1e9", "", "4096", "0", 0, "0.5 B", "9" * 400 + " GiB", 10**400]
)
def test_what_is_no_size_is_refused_with_an_example(text):
    with pytest.raises(ValueError, match=r"200 MiB|at least one byte"):
        parse(text)


@pytest.mark.parametrize(("text", "meant"), [("100MB", "95.4 MiB"), ("2 gb", "1.86 GiB"), ("100", "100B for bytes")])
def test_what_was_probably_meant_is_said(text, meant):
    with pytest.raises(ValueError, match=meant):
        parse(text)


@pytest.mark.parametrize("value", [True, 1.5, None])
def test_another_type_is_no_size(value):
    with pytest.raises(TypeError, match="200 MiB"):
        parse(value)


def test_what_is_shown_can_be_read_again():
    for count in (1, 999, 1024, 9437184, 3 * 2**30):
        assert parse(binary(count)) == count
