"""What the monitor sees, what it costs, and how it ends."""

import io
import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from helpers import blobs

from dlcourse import models, optim
from dlcourse.memory import allocator, trim
from dlcourse.memory import monitor as monitors
from dlcourse.memory.monitor import Monitor
from dlcourse.train import fit

MIB = 2**20


def until(condition, seconds=20.0):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "did not happen in time"
        time.sleep(0.01)


# Python and NumPy's first touches are done before the monitor begins; the array lives one second.
ONE_SECOND = """
import time, numpy as np
from dlcourse.memory import Monitor
np.ones(8 * 2**17)
held = {}
with Monitor(0.2, trees={"held": held}) as monitor:
    held["x"] = np.ones(100 * 2**17)
    time.sleep(1)
    del held["x"]
grown = monitor.peaks["RSS"] - monitor.samples[0].rss
print(grown, monitor.peaks["held"], monitor.samples[-1].kinds["held"], monitor.peaks["allocated"])
"""


def test_an_array_of_100_mib_that_lives_one_second_is_seen_within_5_per_cent():
    done = subprocess.run([sys.executable, "-c", ONE_SECOND], capture_output=True, text=True, timeout=60, check=True)
    grown, held, at_the_end, allocated = done.stdout.split()
    assert 0.95 < int(grown) / (100 * MIB) < 1.05
    assert int(held) == 100 * MIB
    assert int(at_the_end) == 0
    if allocator() is not None:
        assert int(allocated) >= 100 * MIB


def test_children_are_seen():
    code = "import time; x = bytearray(b'1') * (64 * 2**20); print('there', flush=True); time.sleep(60)"
    with Monitor(60) as monitor:
        child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE)
        try:
            child.stdout.readline()
            monitor._look(whole=True)
        finally:
            child.kill()
            child.wait()
            child.stdout.close()
    before, with_child = monitor.samples[0], monitor.samples[1]
    assert with_child.processes == before.processes + 1
    assert with_child.rss - before.rss > 60 * MIB


def test_kinds_count_each_array_once_and_pass_over_numbers():
    x = np.zeros(1000)
    trees = {"params": {"a": {"W": x}}, "slots": {"step": 3, "m": [np.zeros(10), x[:5]]}, "made": lambda: (np.ones(7),)}
    with Monitor(60, trees) as monitor:
        pass
    assert monitor.samples[0].kinds == {"params": 8000, "slots": 80, "made": 56}


def test_a_dict_that_changes_while_it_is_walked_is_walked_again():
    calls = []

    def source():
        calls.append(None)
        if len(calls) < 3:
            raise RuntimeError("dictionary changed size during iteration")
        return np.zeros(10)

    with Monitor(60, {"saved": source}) as monitor:
        pass
    assert monitor.samples[0].kinds == {"saved": 80}
    assert not monitor.problem


def test_a_function_that_fails_is_told_in_the_table_and_the_rest_is_sampled():
    with Monitor(60, {"lost": lambda: missing, "x": np.zeros(10)}) as monitor:  # noqa: F821
        pass
    assert monitor.samples[-1].kinds == {"x": 80}
    assert "lost: NameError" in str(monitor.table())


def test_fit_hands_over_params_and_slots_and_takes_them_back():
    model = models.mlp()
    params = model.init((8, 8, 1), np.random.default_rng(0))
    with Monitor(60) as monitor:
        fit(model, params, blobs(20), optimizer=optim.Adam(), batch_size=10, progress=False, callbacks=[monitor])
    assert monitor.samples[-1].kinds == {"params": 4 * 9610, "slots": 8 * 9610}
    assert monitor._of_fit == {}


def test_peaks_are_marked_as_lower_bounds_and_what_cannot_be_seen_is_said():
    with Monitor(60, {"x": np.zeros(10)}) as monitor:
        pass
    text = str(monitor.table())
    assert "\npeak " in text
    for words in ("lower bound", "lives shorter", "registered arrays", "never written"):
        assert words in text
    assert "<table>" in monitor.table()._repr_html_()


def test_the_table_has_the_first_and_the_last_sample_and_at_most_the_rows_asked_for():
    with Monitor(60) as monitor:
        for _ in range(30):
            monitor._look()
    lines = monitor.table(5).lines
    assert len(lines) == 1 + 5 + 1
    assert lines[1][0] == f"{monitor.samples[0].seconds:.1f}"
    assert lines[-2][0] == f"{monitor.samples[-1].seconds:.1f}"


def test_samples_of_a_long_run_are_thinned_and_the_peak_stays(monkeypatch):
    monkeypatch.setattr(monitors, "MAX_SAMPLES", 20)
    state = {"x": np.zeros(10)}
    with Monitor(60, {"kind": state}) as monitor:
        for step in range(100):
            state["x"] = np.zeros(1000 if step == 17 else 10)
            monitor._look()
    assert len(monitor.samples) <= 21
    assert monitor.samples[0].seconds < monitor.samples[1].seconds
    assert monitor.peaks["kind"] == 8000


def threads():
    return [thread for thread in threading.enumerate() if "of memory" in thread.name]


def test_it_ends_with_an_error_and_leaves_no_thread():
    with pytest.raises(ZeroDivisionError), Monitor(0.01) as monitor:
        1 / 0  # noqa: B018
    assert not monitor.running
    assert threads() == []


def test_a_cell_that_is_run_again_ends_its_older_monitor():
    first = Monitor(0.01, name="cell").start()
    other = Monitor(0.01, name="another").start()
    second = Monitor(0.01, name="cell").start()
    assert (first.running, other.running, second.running) == (False, True, True)
    assert len(threads()) == 2
    second.start()  # the same one, anew
    assert len(second.samples) < 10
    assert second.running
    other.stop()
    second.stop()
    second.stop()
    assert threads() == []


def test_its_thread_does_not_keep_a_process_alive():
    code = "from dlcourse.memory import Monitor; Monitor(0.01).start()"
    subprocess.run([sys.executable, "-c", code], timeout=60, check=True)


class Terminal(io.StringIO):
    def isatty(self):
        return True


def test_text_is_renewed_in_place_in_a_terminal():
    file = Terminal()
    with Monitor(0.01, {"x": np.zeros(10)}, show="text", file=file) as monitor:
        until(lambda: file.getvalue().count("\r") >= 3)
    assert monitor.samples
    text = file.getvalue()
    assert text.count("\n") == 1
    assert text.endswith("\n")
    assert all("x 80 B" in line and "lower bound" in line for line in text.strip().split("\r") if line)


def test_text_in_a_file_is_the_last_line_alone():
    file = io.StringIO()
    with Monitor(0.01, show="text", file=file) as monitor:
        until(lambda: len(monitor.samples) > 3)
    assert file.getvalue().count("\n") == 1
    assert "\r" not in file.getvalue()


def test_samples_take_less_than_2_per_cent_of_a_training():
    model = models.small_cnn()
    params = model.init((8, 8, 1), np.random.default_rng(0))
    began = time.perf_counter()
    with Monitor(0.05) as monitor:  # ten times as often as it is by itself
        while time.perf_counter() - began < 2:
            fit(model, params, blobs(200), optimizer=optim.Adam(), batch_size=50, progress=False, callbacks=[monitor])
    assert len(monitor.samples) >= 3
    assert monitor.cost < 0.02 * (time.perf_counter() - began)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"interval": 0}, "more than 0"),
        ({"interval": None}, "a number of seconds, more than 0, got None"),
        ({"interval": float("inf")}, "a thread waits"),
        ({"interval": 1e12}, "a thread waits"),
        ({"interval": float("nan")}, "more than 0, got nan"),
        ({"show": "html"}, '"text"'),
    ],
)
def test_a_wrong_setting_is_refused(arguments, words):
    with pytest.raises(ValueError, match=words):
        Monitor(**arguments)


def fails(*_, **__):
    raise KeyError("in the monitor")


@pytest.mark.parametrize("where", ["file", "stdout", "sampler", "on_sample", "on_end"])
def test_what_fails_in_the_monitor_is_told_and_the_blocks_own_error_stands(where, monkeypatch):
    ended, file = [], io.StringIO()
    options = {"show": "text", "file": None if where == "stdout" else file}
    options |= {"on_sample": fails} if where == "on_sample" else {}
    with pytest.raises(ZeroDivisionError), Monitor(0.01, on_end=ended.append, **options) as monitor:
        if where == "file":
            file.close()
        elif where == "stdout":
            monkeypatch.setattr(sys, "stdout", None)
        elif where == "sampler":
            monkeypatch.setattr(monitors, "sizes_of", fails)
        elif where == "on_end":
            monitor.on_end = lambda monitor: (ended.append(monitor), fails())
        if where != "on_end":
            until(lambda: monitor.problem or where in ("file", "stdout"))
        time.sleep(0.05)
        1 / 0  # noqa: B018
    assert ended == [monitor]
    assert monitor.problem.startswith({"file": "show", "stdout": "show", "sampler": "sampling"}.get(where, where))
    assert monitors._running == {}
    assert threads() == []
    assert f"problem: {monitor.problem}" in str(monitor.table())


def test_sampling_goes_on_after_a_look_that_failed(monkeypatch):
    with Monitor(0.01) as monitor:
        with monkeypatch.context() as patched:
            patched.setattr(monitors, "sizes_of", fails)
            until(lambda: monitor.problem)
        count = len(monitor.samples)
        until(lambda: len(monitor.samples) > count + 2)


def test_before_the_first_sample_there_is_a_line_and_a_table():
    assert "no sample yet" in Monitor().line()
    assert "no sample yet" in str(Monitor().table())


def test_the_peak_without_pages_of_files_is_known_on_linux():
    with Monitor(60) as monitor:
        pass
    assert ("anonymous" in monitor.peaks) == (sys.platform == "linux")


# The allocator.


@pytest.mark.skipif(allocator() is None, reason="needs glibc 2.33")
def test_usage_falls_to_half_where_every_second_block_is_freed():
    code = """
import numpy as np
from dlcourse.memory import allocator, trim
x = np.ones(2**21); del x                      # 16 MiB: from here on smaller arrays lie in the heap
before = allocator()
blocks = [np.ones(2**17) for _ in range(100)]  # 1 MiB each
full = allocator()
del blocks[::2]
half = allocator()
given_back = trim()
print(full.used - before.used, half.used - before.used, half.allocated - full.allocated, full.usage, half.usage, given_back)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    full, half, allocated, usage, usage_of_half, given_back = done.stdout.split()
    assert 100 * MIB <= int(full) < 102 * MIB
    assert 50 * MIB <= int(half) < 52 * MIB
    assert abs(int(allocated)) < 3 * MIB
    assert float(usage) > 0.85
    assert 0.4 < float(usage_of_half) < 0.65
    assert given_back == "True"


def test_where_there_is_no_such_allocator_the_table_says_so(monkeypatch):
    monkeypatch.setattr(sys.modules["dlcourse.memory.system"], "_function", lambda name: None)
    assert allocator() is None
    assert trim() is False
    with Monitor(60) as monitor:
        pass
    assert monitor.samples[0].usage is None
    text = str(monitor.table())
    assert "not available here: allocated, used" in text
    assert "not available" in monitor.line()
