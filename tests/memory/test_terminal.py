"""The monitor's block in a terminal, its log, and the watch of another process."""

import ctypes
import io
import json
import os
import re
import subprocess
import sys
import time
from types import SimpleNamespace

import numpy as np
import psutil
import pytest

from dlcourse import viz
from dlcourse.__main__ import main
from dlcourse.memory import Log, Monitor, NotSeen, View, allocator, read_log, terminal, traced_peak, watch
from dlcourse.memory.system import _MallInfo2, family

MIB = 2**20


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def size(monkeypatch):
    def set_to(columns, lines):
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setenv("LINES", str(lines))
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("WT_SESSION", "a terminal of Windows that knows the codes")

    set_to(80, 24)
    return set_to


def looked(times=2, view=None, **options):
    """A monitor that has taken so many samples and shown each."""
    monitor = Monitor(60, **options).start()
    for i in range(times):
        if i:
            monitor._look(whole=True)
        if view is not None:
            view(monitor)
    monitor.on_end = None
    return monitor


def test_a_block_is_renewed_in_place_by_moving_the_cursor_up_by_its_lines(size):
    view = View(Terminal())
    looked(3, view).stop()
    first, second, third = view._file.getvalue().split("\r")[1:]
    lines = first.count("\n")
    assert lines == first.count("\x1b[K") >= 4
    assert [text[: text.index("A") + 1] for text in (second, third)] == [f"\x1b[{lines}A"] * 2
    assert "usage" in first and "resident" in first and "peak" in first


@pytest.mark.parametrize(("columns", "lines"), [(40, 24), (20, 5), (1, 1)])
def test_no_line_of_a_block_is_as_wide_as_the_terminal_and_all_of_it_can_be_seen(size, columns, lines):
    size(columns, lines)
    view = View(Terminal())
    looked(2, view).stop()
    shown = re.sub(r"\x1b\[\d*[AKJ]|\r", "", view._file.getvalue()).split("\n")
    assert max(map(len, shown)) <= max(1, columns - 1)
    assert view._height <= max(1, lines - 2)


def test_a_block_that_has_become_shorter_leaves_no_line_behind(size):
    view = View(Terminal())
    monitor = looked(1, view)
    monitor.problem = "show: KeyError: 'gone'"
    view(monitor)
    monitor.problem = ""
    view(monitor)
    monitor.stop()
    assert view._file.getvalue().endswith("\x1b[J")


@pytest.mark.parametrize("terminal_that_lacks_codes", [False, True])
def test_without_a_terminal_each_observation_is_a_line_without_codes(size, monkeypatch, terminal_that_lacks_codes):
    if terminal_that_lacks_codes:
        monkeypatch.setenv("TERM", "dumb")
    file = Terminal() if terminal_that_lacks_codes else io.StringIO()
    looked(3, View(file, notes={"x": "words"}), trees={"x": np.zeros(10)}).stop()
    assert "\x1b" not in file.getvalue() and "\r" not in file.getvalue()
    lines = file.getvalue().splitlines()
    assert len(lines) == 3
    assert all(line.startswith("memory after ") and "; x 80 B; " in line for line in lines)


def mallinfo2():
    function = ctypes.CDLL(None).mallinfo2
    function.restype, function.argtypes = _MallInfo2, ()
    return function()


@pytest.mark.skipif(allocator() is None, reason="needs glibc 2.33")
def test_usage_is_within_a_point_of_mallinfo2(size):
    held = [np.ones(2**15) for _ in range(200)]
    del held[::3]
    view = View(Terminal())
    monitor = looked(1, view)
    info = mallinfo2()
    monitor.stop()
    shown = float(re.search(r"usage\s+([\d.]+) %", view._file.getvalue())[1])
    assert shown == pytest.approx(100 * (info.uordblks + info.hblkhd) / (info.arena + info.hblkhd), abs=1)


def test_where_the_allocator_cannot_be_asked_the_block_says_so(monkeypatch):
    monkeypatch.setattr(sys.modules["dlcourse.memory.system"], "_function", lambda name: None)
    rows = dict(View(None).rows(looked(1)))
    assert rows["usage"].startswith("not available")


def test_what_is_traced_and_in_no_tree_is_the_rest():
    data = np.zeros(5 * MIB, np.uint8)
    with traced_peak():
        params, saved = np.zeros(3 * MIB, np.uint8), np.zeros(9 * MIB, np.uint8)
        monitor = looked(1, trees={"params": params, "data": data})
        rows = [(name.strip(), text) for name, text in View(None, untraced=("data",)).rows(monitor)]
        monitor.stop()
    names = [name for name, _ in rows if name != "children"]  # of earlier tests
    assert names == ["memory", "usage", "traced", "params", "rest", "data", "resident", "peak"]
    sizes = dict(rows)
    found = [float(sizes[name].split()[0]) for name in ("traced", "params", "rest", "data")]
    assert found == pytest.approx([12, 3, 9, 5], abs=0.1)
    assert all(" MiB" in sizes[name] for name in ("traced", "params", "rest", "data"))
    assert saved.size


def test_the_family_of_a_process_is_that_which_psutil_finds():
    code = "import subprocess, sys; subprocess.run([sys.executable, '-c', 'print(1, flush=True); input()'])"
    child = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    try:
        child.stdout.readline()
        found = family()
        this = psutil.Process()
        assert found[0] == this
        assert set(found[1:]) == set(this.children(recursive=True))
        assert len(found) >= 3
    finally:
        child.communicate(b"\n")


# The log.


def test_a_log_is_a_line_of_json_an_observation_and_is_read_back(tmp_path):
    path = tmp_path / "run.jsonl"
    log = Log(path)
    monitor = looked(3, View(None, log), trees={"params": np.zeros(1000)})
    log.close()
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    assert len(lines) == 3
    assert all(line["kinds"] == {"params": 8000} and line["pid"] == os.getpid() for line in lines)
    read = read_log(path)
    assert read.samples == monitor.samples
    assert read.peaks == monitor.peaks
    monitor.stop()
    assert "params" in str(read.table())
    drawing = viz.monitor_log(path)
    assert "params reached 7.81 KiB" in drawing.alt
    assert drawing.svg.count("<polyline") == 2


def test_a_second_run_is_added_and_the_last_one_is_read(tmp_path):
    path = tmp_path / "run.jsonl"
    for times in (4, 2):
        log = Log(path)
        looked(times, View(None, log)).stop()
        log.close()
    assert path.read_text().count("\n") == 6
    assert len(read_log(path).samples) == 2


def test_a_line_without_its_end_is_passed_over_and_the_next_run_begins_a_line(tmp_path):
    path = tmp_path / "run.jsonl"
    log = Log(path)
    looked(2, View(None, log)).stop()
    log.close()
    path.write_text(path.read_text() + '{"time": 17')
    assert len(read_log(path).samples) == 2
    log = Log(path)
    looked(1, View(None, log)).stop()
    log.close()
    assert [set(json.loads(line)) >= {"rss", "usage"} for line in path.read_text().splitlines()] == [True] * 3


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "holds no observation"),
        ("seconds,rss\n1,2\n", "line 1: no observation of a monitor: 'seconds,rss'"),
        ('{"time": 1}\n', "line 1: no observation"),
        ("[1]\n", "line 1"),
    ],
)
def test_a_file_that_is_no_log_is_not_read_and_the_line_is_named(tmp_path, text, words):
    path = tmp_path / "notes.txt"
    path.write_text(text)
    with pytest.raises(ValueError, match=words):
        read_log(path)


def test_a_file_of_something_else_is_not_written_to(tmp_path):
    path = tmp_path / "thesis.txt"
    path.write_text("Chapter 1")
    with pytest.raises(ValueError, match="no log of a monitor"):
        Log(path)
    assert path.read_text() == "Chapter 1"
    with pytest.raises(OSError, match="no"):
        Log(tmp_path / "no" / "folder.jsonl")


def test_a_line_that_the_disk_has_no_room_for_is_taken_back(tmp_path, monkeypatch):
    path = tmp_path / "run.jsonl"
    log, write = Log(path), os.write
    view = View(None, log)
    monitor = looked(1, view)
    with monkeypatch.context() as full:
        full.setattr(os, "write", lambda file, data: write(file, data[:20]))
        monitor._look(whole=True)
        view(monitor)
    monitor._look(whole=True)
    view(monitor)
    monitor.stop()
    assert len(read_log(path).samples) == 2
    with pytest.raises(OSError, match="1 observations are not in this log"):
        log.close()


KILLED = """
import sys
from dlcourse.memory import Log, Monitor, View
view = View(None, Log(sys.argv[1]))
monitor = Monitor(60).start()
while True:
    monitor._look()
    view(monitor)
"""


@pytest.mark.skipif(os.name == "nt", reason="kills as Unix does")
def test_a_killed_process_leaves_whole_lines(tmp_path):
    path = tmp_path / "run.jsonl"
    child = subprocess.Popen([sys.executable, "-c", KILLED, str(path)])
    while not path.exists() or path.stat().st_size < 50_000:
        time.sleep(0.02)
        assert child.poll() is None
    child.kill()
    child.wait()
    text = path.read_text()
    assert text.endswith("\n")
    assert all(json.loads(line)["rss"] > 0 for line in text.splitlines())


# The commands.


def test_train_shows_its_memory_by_kind_and_writes_the_log(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "mlp", "--epochs", "2", "--monitor", "0.01", "--monitor-log", "run.jsonl"]) == 0
    out = capsys.readouterr().out
    assert "\x1b" not in out
    last = [line for line in out.splitlines() if line.startswith("memory after ")][-1]
    for words in ("epoch 2, step 30 of 30", "params 37.5 KiB", "slots 75.1 KiB", "rest ", "data ", "resident "):
        assert words in last
    read = read_log("run.jsonl")
    assert {"params": 4 * 9610, "slots": 8 * 9610}.items() <= read.samples[-1].kinds.items()
    assert main(["train", "mlp", "--monitor-log", "run.jsonl", "--json"]) == 0
    assert capsys.readouterr().out.count("\n") == 1
    assert 1 <= len(read_log("run.jsonl").samples) <= len(read.samples)


def test_wrong_calls_of_the_monitor_are_one_line(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["train", "mlp", "--monitor", "1", "--json"]) == 1
    assert "--monitor-log FILE" in capsys.readouterr().err
    assert main(["train", "mlp", "--monitor-log", "no/folder/x"]) == 1
    assert "no/folder/x" in capsys.readouterr().err
    for seconds in ("0", "-1", "soon", "nan", "1e300"):
        with pytest.raises(SystemExit) as ended:
            main(["train", "mlp", "--monitor", seconds])
        assert ended.value.code == 2
        assert "a number of seconds, more than 0" in capsys.readouterr().err


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="Linux has it")
def test_a_full_disk_ends_no_training_and_is_told_at_its_end(capsys):
    assert main(["train", "mlp", "--monitor-log", "/dev/full"]) == 1
    told = capsys.readouterr()
    assert "test accuracy" in told.out
    assert re.fullmatch(r"dlcourse: error: /dev/full: .*; \d+ observations are not in this log\n", told.err)


SLEEPS = """
import subprocess, sys
x = bytearray(b"1") * (30 * 2**20)
child = subprocess.Popen([sys.executable, "-c", "x = bytearray(b'1') * (20 * 2**20); print(1, flush=True); input()"])
child.wait()
"""


@pytest.fixture
def other():
    process = subprocess.Popen([sys.executable, "-c", SLEEPS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    process.stdout.readline()
    yield process
    if process.poll() is None:
        process.communicate("\n")


def test_a_process_of_another_is_watched_until_it_ends_and_its_children_are_summed(
    other, tmp_path, capsys, monkeypatch
):
    seen, ask = [], terminal._ended

    def ended(process):
        if len(seen) < 1:
            seen.append(None)
            return False
        other.communicate("\n")
        return ask(process)

    monkeypatch.setattr(terminal, "_ended", ended)
    assert main(["watch", str(other.pid), "--every", "0.05", "--log", str(tmp_path / "log")]) == 0
    out = capsys.readouterr().out.splitlines()
    assert f"process {other.pid}" in out[0] and "pages of files" in out[0] and "usage" not in out[0]
    assert out[-1].startswith(f"process {other.pid} has ended. Peaks, with its children: RSS ")
    sample = read_log(tmp_path / "log").samples[0]
    assert sample.processes == 2
    assert sample.own.rss > 30 * MIB
    assert sample.rss - sample.own.rss > 20 * MIB
    assert ". 1 line over " in viz.monitor_log(tmp_path / "log").alt
    if sys.platform == "linux":
        assert "; children 1: " in out[0] and " by PSS" in out[0]
        assert sample.pss - sample.own.pss > 20 * MIB
        assert sample.own.uss <= sample.own.pss <= sample.own.rss


def test_a_process_that_has_ended_or_never_was_is_one_line_and_2(capsys):
    child = subprocess.Popen([sys.executable, "-c", ""])
    while psutil.Process(child.pid).status() != psutil.STATUS_ZOMBIE and os.name != "nt":
        time.sleep(0.01)
    for zombie in (True, False):
        if not zombie:
            child.wait()
        assert main(["watch", str(child.pid)]) == 2
        error = capsys.readouterr().err
        assert error.count("\n") == 1
        assert f"process {child.pid}" in error and "has ended" in error
    assert main(["watch", str(10**20)]) == 2
    assert "there is no process" in capsys.readouterr().err


def test_a_process_that_is_not_ours_to_see_is_one_line_and_2(other, monkeypatch, capsys):
    def denied(self):
        raise psutil.AccessDenied(self.pid)

    monkeypatch.setattr(psutil.Process, "memory_full_info", denied)
    assert main(["watch", str(other.pid)]) == 2
    error = capsys.readouterr().err
    assert re.fullmatch(rf"dlcourse: error: process {other.pid} is not ours to see.*\n", error)
    with pytest.raises(NotSeen):
        watch(other.pid, View(None))


def test_a_process_without_memory_is_not_watched_in_silence(other, monkeypatch, capsys):
    nothing = SimpleNamespace(rss=0, vms=0, uss=0, pss=0)  # as of a thread of the kernel
    monkeypatch.setattr(psutil.Process, "memory_full_info", lambda self: nothing)
    assert main(["watch", str(other.pid)]) == 2
    assert "has no memory of its own" in capsys.readouterr().err


def test_no_log_is_begun_for_a_process_that_is_not_there(tmp_path, capsys):
    assert main(["watch", "2147483647", "--log", str(tmp_path / "log")]) == 2
    assert not (tmp_path / "log").exists()


@pytest.mark.parametrize("pid", ["0", "-3", "init"])
def test_a_pid_is_a_whole_number(pid, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["watch", pid])
    assert ended.value.code == 2
    assert "usage: dlcourse watch" in capsys.readouterr().err
