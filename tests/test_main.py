"""The command line, run as a person runs it: in a process of its own."""

import json
import os
import subprocess
import sys

import pytest

from dlcourse.__main__ import main


def run(*arguments, cwd):
    return subprocess.run(
        [sys.executable, "-m", "dlcourse", *arguments],
        capture_output=True,
        text=True,
        cwd=cwd,
        timeout=120,
        check=False,
    )


def test_train_prints_the_bill_first_then_accuracy_time_and_both_peaks(tmp_path):
    done = run("train", "mlp", "--epochs", "2", "--workers", "2", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    places = [
        done.stdout.index(word)
        for word in ("params", "predicted peak", "test accuracy", "time", "traced peak", "resident peak")
    ]
    assert places == sorted(places)


def test_train_as_json_is_one_object_with_the_bill_and_the_peaks(tmp_path):
    done = run("train", "mlp", "--epochs", "5", "--json", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    outcome = json.loads(done.stdout)
    assert done.stdout.count("\n") == 1
    assert outcome["test_accuracy"] > 0.8
    assert outcome["parameters"] == 9_610
    assert 0 < outcome["traced_peak"] < outcome["resident_peak"]
    assert outcome["bill"]["totals"]["params"] == 4 * outcome["parameters"]


def test_a_training_goes_on_from_its_checkpoint_as_if_it_had_never_stopped(tmp_path):
    whole = run("train", "mlp", "--epochs", "3", "--json", cwd=tmp_path)
    first = run("train", "mlp", "--epochs", "1", "--json", "--checkpoint", "run", cwd=tmp_path)
    again = run("train", "mlp", "--epochs", "3", "--json", "--checkpoint", "run", "--resume", cwd=tmp_path)
    assert first.returncode == again.returncode == 0, first.stderr + again.stderr
    losses = [json.loads(done.stdout)["test_loss"] for done in (whole, again)]
    assert losses[0] == losses[1]


def test_a_checkpoint_is_not_overwritten_unasked(tmp_path):
    assert run("train", "mlp", "--json", "--checkpoint", "run", cwd=tmp_path).returncode == 0
    before = (tmp_path / "run" / "latest.safetensors").read_bytes()
    refused = run("train", "mlp", "--json", "--checkpoint", "run", cwd=tmp_path)
    assert refused.returncode == 1
    assert "--resume" in refused.stderr
    assert (tmp_path / "run" / "latest.safetensors").read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "mlp", "--epoch", "3"], "did you mean --epochs?"),
        (["train", "mlpp"], "choose from"),
        (["train", "mlp", "--data", "imagenet"], "choose from"),
        (["train", "mlp", "--batch-size", "0"], "whole number of at least 1"),
        (["train", "mlp", "--workers", "two"], "whole number of at least 1"),
        (["train", "mlp", "--seed", "-1"], "whole number of at least 0, got '-1'"),
        (["train", "mlp", "--checkpoint", ""], "must be the name of a file or folder"),
        (["lab", "--port", "99999"], "at most 65535, got '99999'"),
        (["admit", "mlp"], "usage: dlcourse admit MODULE:FUNCTION --budget SIZE [options]"),
        (["train"], "network"),
        (["trane", "mlp"], "choose from"),
        ([], "COMMAND"),
    ],
)
def test_a_wrong_call_says_what_would_be_right_and_ends_with_2(arguments, expected, capsys):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    error = capsys.readouterr().err
    assert expected in error
    assert error.count("\n") == 2, "the reason, and the usage in one line"
    assert "--help names" in error


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["train", "mlp", "--resume"], "--checkpoint"),
        (["train", "mlp", "--checkpoint-every", "5"], "--checkpoint-every needs --checkpoint FOLDER"),
        (["train", "mlp", "--samples", "100"], "--data shapes"),
        (["train", "mlp", "--path", "x"], "cifar10"),
        (["train", "mlp", "--lr", "-1"], "lr"),
        (["train", "mlp", "--data", "cifar10", "--path", "no/such/archive.tar.gz"], "archive.tar.gz"),
    ],
)
def test_what_cannot_be_done_is_one_line_and_ends_with_1(arguments, expected, capsys):
    assert main(arguments) == 1
    error = capsys.readouterr().err
    assert error.startswith("dlcourse: error: ")
    assert expected in error
    assert error.count("\n") == 1


def test_a_reader_that_goes_away_ends_a_command_quietly(tmp_path):
    for arguments, codes in ((["train", "mlp"], {141}), (["doctor"], {141}), (["--help"], {0, 141})):
        reading, writing = os.pipe()
        os.close(reading)
        done = subprocess.run(
            [sys.executable, "-m", "dlcourse", *arguments], stdout=writing, stderr=subprocess.PIPE, text=True,
            cwd=tmp_path, timeout=120, check=False,
        )  # fmt: skip
        os.close(writing)
        assert done.returncode in codes  # argparse itself passes over an error of its help
        assert "Pipe" not in done.stderr and "pipe" not in done.stderr


@pytest.mark.skipif(sys.platform == "win32", reason="a shell of Unix closes the stream")
@pytest.mark.parametrize("closed", ["1", "2", "1 2"])
def test_training_goes_on_where_the_shell_has_closed_a_stream(tmp_path, closed):
    closing = " ".join(f"{stream}>&-" for stream in closed.split())
    command = ["sh", "-c", f'exec "$0" -m dlcourse train mlp --checkpoint run {closing}', sys.executable]
    done = subprocess.run(command, capture_output=True, text=True, cwd=tmp_path, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "run" / "latest.safetensors").exists()
    assert ("test accuracy" in done.stdout) == ("1" not in closed)


def test_an_interrupted_training_says_what_stands_and_how_to_go_on(tmp_path, monkeypatch, capsys):
    from dlcourse import train

    def interrupted(*_arguments, **_options):
        raise KeyboardInterrupt

    monkeypatch.setattr(train, "evaluate", interrupted)
    folder = str(tmp_path / "run")
    assert main(["train", "mlp", "--json", "--checkpoint", folder]) == 130
    error = capsys.readouterr().err
    assert f"the last checkpoint in {folder} stands" in error and "--resume" in error
    monkeypatch.setattr(train, "fit", interrupted)
    assert main(["train", "mlp", "--json", "--checkpoint", f"{folder}2"]) == 130
    assert "before the first checkpoint" in capsys.readouterr().err
    assert main(["train", "mlp", "--json"]) == 130
    assert capsys.readouterr().err == "dlcourse: stopped\n"


@pytest.mark.parametrize("encoding", ["ascii", "cp437", "cp1251"])
def test_a_terminal_that_lacks_a_sign_gets_another_one_and_no_traceback(tmp_path, encoding):
    environment = {**os.environ, "PYTHONIOENCODING": encoding}
    for arguments in (["train", "--help"], ["bench", "--help"], ["admit", "mlp", "--budget", "1GiB\u00d7"]):
        command = [sys.executable, "-m", "dlcourse", *arguments]
        done = subprocess.run(command, capture_output=True, env=environment, cwd=tmp_path, timeout=120, check=False)
        assert b"Traceback" not in done.stderr, done.stderr
        assert done.returncode == (2 if arguments[0] == "admit" else 0)


def test_a_picture_that_cannot_be_written_is_told_before_anything_is_measured(monkeypatch, capsys):
    from dlcourse.bench import runner

    monkeypatch.setattr(runner, "run", lambda *_a, **_o: pytest.fail("measured first"))
    assert main(["bench", "--only", "step mlp", "--picture", "no/such/folder/x.png"]) == 1
    assert "no/such/folder/x.png: its folder is not there" in capsys.readouterr().err


def test_a_log_gets_no_progress_bar(tmp_path):
    done = run("train", "mlp", "--epochs", "2", cwd=tmp_path)
    assert "\r" not in done.stderr
