import csv
import json
import os

import pytest

from dlcourse.exercises import progress, record
from dlcourse.exercises.exercise import of_notebook


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv(record.FOLDER, str(tmp_path))
    return tmp_path


def test_without_the_variable_it_lies_in_the_folder_of_the_notebook(monkeypatch, tmp_path):
    monkeypatch.delenv(record.FOLDER)
    monkeypatch.chdir(tmp_path)
    record.note("00.1", True)
    assert (tmp_path / "progress.json").exists()


def test_a_map_of_nothing_is_open_everywhere():
    drawn = str(progress())
    assert drawn.startswith("0 of ")
    assert record.DONE not in drawn and record.OPEN in drawn
    assert "■" not in progress()._repr_html_() and "not yet" in progress()._repr_html_()


def test_a_right_answer_fills_its_square_and_a_later_wrong_one_does_not_empty_it():
    record.note("00.1", False)
    assert str(progress()).startswith("0 of ")
    record.note("00.1", True)
    record.note("00.1", False)
    assert str(progress()).startswith("1 of ")
    assert f"00 start here            {record.DONE} {record.OPEN}" in str(progress())
    title = of_notebook("00")[0].title
    assert f"00.1 {title}: done" in progress()._repr_html_()
    assert record.load()["00.1"]["tries"] == 3


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("{", "is damaged"),
        ("[]", "is damaged"),
        ("null", "is damaged"),
        ('{"version": 1, "exercises": {"00.1": 7}}', "is damaged"),
        ('{"version": 1, "exercises": {"00.1": {"tries": "x", "right": null}}}', "is damaged"),
        ('{"version": 1}', "is damaged"),
        ('{"version": 2, "exercises": {}}', "is of version 2, and this course writes version 1"),
        (b"\xff\xfe\x00", "cannot be read"),
    ],
)
def test_a_file_that_is_not_ours_is_kept_aside_said_and_started_anew(text, said, folder, capsys):
    file = folder / "progress.json"
    file.write_bytes(text if isinstance(text, bytes) else text.encode())
    (folder / "progress-kept-1.json").write_text("older")
    record.note("00.1", True)
    assert said in capsys.readouterr().out
    assert (folder / "progress-kept-1.json").read_text() == "older"
    assert (folder / "progress-kept-2.json").read_bytes() == (text if isinstance(text, bytes) else text.encode())
    assert record.load().keys() == {"00.1"}


def test_a_folder_that_cannot_be_written_stops_nobody(monkeypatch, folder, capsys):
    monkeypatch.setenv(record.FOLDER, str(folder / "missing"))
    record.note("00.1", True)
    assert "The progress is not kept: progress.json cannot be written" in capsys.readouterr().out


def test_a_kill_in_the_middle_of_a_write_leaves_the_old_file(monkeypatch, folder):
    record.note("00.1", True)
    before = (folder / "progress.json").read_text()
    monkeypatch.setattr(os, "replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left on device")))
    record.note("00.2", True)
    assert (folder / "progress.json").read_text() == before
    assert [file.name for file in folder.iterdir()] == ["progress.json"]


def test_an_export_for_a_teacher_has_a_row_for_each_exercise(folder, capsys):
    record.note("00.2", True)
    progress(export=folder / "class.csv")
    with (folder / "class.csv").open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    by_id = {row["exercise"]: row for row in rows}
    assert by_id["00.1"]["tries"] == "0" and by_id["00.1"]["right since"] == ""
    assert by_id["00.2"]["tries"] == "1" and by_id["00.2"]["right since"].count("-") == 2
    assert capsys.readouterr().out == "Written: class.csv\n"
    with pytest.raises(OSError, match="cannot be written"):
        progress(export=folder / "missing" / "class.csv")


def test_the_file_is_plain_json(folder):
    record.note("00.1", True)
    assert json.loads((folder / "progress.json").read_text())["version"] == record.VERSION
