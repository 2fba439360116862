import csv
import json
import os
import re
import subprocess
import sys
import time
from dataclasses import replace

import pytest

from dlcourse.exercises import progress, record
from dlcourse.exercises.unit import of_notebook


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
    assert "background:white" not in progress()._repr_html_()  # in the dark theme white looks done


def test_a_right_answer_fills_its_square_and_a_later_wrong_one_does_not_empty_it():
    record.note("00.1", False)
    assert str(progress()).startswith("0 of ")
    record.note("00.1", True)
    record.note("00.1", False)
    assert str(progress()).startswith("1 of ")
    assert re.search(rf"00 start here +{record.DONE} {record.OPEN}", str(progress()))
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
        ('{"version": 1, "exercises": {"00.1": {"tries": true, "right": null}}}', "is damaged"),
        ('{"version": 1, "exercises": {"00.1": {"tries": -7, "right": null}}}', "is damaged"),
        ('{"version": 1, "exercises": {"00.1": {"tries": 1, "right": "=cmd"}}}', "is damaged"),
        ('{"version": 1}', "is damaged"),
        ('{"version": 2, "exercises": {}}', "is of version 2, and this course writes version 1"),
        (b"\xff\xfe\x00", "cannot be read"),
        ("[" * 100_000, "is damaged"),
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


@pytest.mark.parametrize("name", ["missing", "file", "file/below", "x" * 5000])
def test_a_folder_that_is_none_stops_nobody(monkeypatch, folder, capsys, name):
    (folder / "file").write_text("kept")
    monkeypatch.setenv(record.FOLDER, str(folder / name))
    record.note("00.1", True)
    said = capsys.readouterr().out
    assert "The progress is not kept: progress.json cannot be written" in said
    assert "Make the folder that DLCOURSE_PROGRESS names, or unset it." in said
    assert str(progress()).startswith("0 of ")
    assert (folder / "file").read_text() == "kept"


def test_a_folder_in_the_place_of_the_file_is_kept_aside(folder, capsys):
    (folder / "progress.json").mkdir()
    (folder / "progress.json" / "inside").write_text("kept")
    record.note("00.1", True)
    assert (folder / "progress-kept-1.json" / "inside").read_text() == "kept"
    assert record.load().keys() == {"00.1"}


def test_a_link_to_the_file_stays_a_link(folder):
    (folder / "elsewhere").mkdir()
    try:
        (folder / "progress.json").symlink_to(folder / "elsewhere" / "mine.json")
    except OSError:
        pytest.skip("this system makes no links")
    record.note("00.1", True)
    assert (folder / "progress.json").is_symlink()
    assert "00.1" in (folder / "elsewhere" / "mine.json").read_text()


def test_a_home_folder_is_found(monkeypatch, folder):
    monkeypatch.setenv("HOME", str(folder))
    monkeypatch.setenv("USERPROFILE", str(folder))
    monkeypatch.setenv(record.FOLDER, "~")
    assert record.path() == folder.resolve() / "progress.json"


def test_a_file_that_an_editor_marked_is_read(folder):
    record.note("00.1", True)
    file = folder / "progress.json"
    file.write_bytes(b"\xef\xbb\xbf" + file.read_bytes())
    assert record.load().keys() == {"00.1"}


NOTES = """
import sys
from dlcourse.exercises import record
for _ in range(int(sys.argv[2])):
    record.note(sys.argv[1], True)
"""


def noting(exercise_id, times):
    return subprocess.Popen([sys.executable, "-c", NOTES, exercise_id, str(times)], stdout=subprocess.PIPE, text=True)


def test_two_kernels_at_once_lose_nothing(folder):
    children = [noting(exercise_id, 100) for exercise_id in ("00.1", "00.2")]
    assert [child.communicate(timeout=60)[0] for child in children] == ["", ""]
    assert {exercise_id: entry["tries"] for exercise_id, entry in record.load().items()} == {"00.1": 100, "00.2": 100}
    assert [file.name for file in folder.iterdir()] == ["progress.json"]


def test_what_a_killed_kernel_left_is_taken_over(folder, monkeypatch, capsys):
    monkeypatch.setattr(record, "PATIENCE", 0.05)
    (folder / "progress.json.tmp").write_text('{"version": 1, "exer')
    record.note("00.1", True)
    assert record.load().keys() == {"00.1"}
    assert [file.name for file in folder.iterdir()] == ["progress.json"]
    assert capsys.readouterr().out == ""


def test_a_kill_at_any_moment_leaves_a_whole_file(folder, monkeypatch, capsys):
    monkeypatch.setattr(record, "PATIENCE", 0.05)
    record.note("00.2", True)
    child = noting("00.1", 10**6)
    while "00.1" not in record.load():
        time.sleep(0.01)
    child.kill()
    child.communicate()
    assert record.load()["00.2"] == {"tries": 1, "right": record.load()["00.1"]["right"]}
    record.note("00.2", True)
    assert [file.name for file in folder.iterdir()] == ["progress.json"]
    assert capsys.readouterr().out == ""


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


def test_a_cell_that_a_spreadsheet_would_compute_is_exported_as_text(folder, monkeypatch):
    formula = replace(of_notebook("00")[0], title="=1+1")
    monkeypatch.setattr(record, "of_notebook", lambda number: (formula,))
    progress(export=folder / "class.csv")
    assert ",'=1+1," in (folder / "class.csv").read_text()


@pytest.mark.parametrize("name", ["", ".", "/", "class", "progress.json", "05_convolution.ipynb", 5, "a\0.csv"])
def test_an_export_writes_over_nothing_that_is_no_csv(folder, name, monkeypatch):
    monkeypatch.chdir(folder)
    record.note("00.1", True)
    with pytest.raises(ValueError, match="the name of a CSV file"):
        progress(export=name)
    assert [file.name for file in folder.iterdir()] == ["progress.json"]
    assert record.load().keys() == {"00.1"}


def test_the_file_is_plain_json(folder):
    record.note("00.1", True)
    assert json.loads((folder / "progress.json").read_text())["version"] == record.VERSION
