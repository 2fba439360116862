import gc
import logging
import signal
import subprocess
import sys
import threading
import time
import warnings
import weakref
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from dlcourse.exercises.check import judge
from dlcourse.exercises.run_limited import TooLong, call, unchanged, within
from dlcourse.exercises.unit import Exercise, Wrong


def double(x):
    return 2 * x


EXERCISE = Exercise(
    id="03.9",
    title="Double",
    reference=double,
    inputs=lambda rng: iter([("three", (np.ones(3),))]),
    hints=("First.", "Last."),
    wrong=(Wrong(lambda x: x, "It has to be doubled."),),
    seconds=1,
)


def test_the_arrays_of_a_function_that_raises_are_let_go():
    class Array(np.ndarray):
        pass

    kept = []

    def fails(x):
        held = np.ones(3).view(Array)
        kept.append(weakref.ref(held))
        raise ValueError

    gc.disable()
    try:
        assert judge(EXERCISE, fails).state == "wrong"
        assert [held() for held in kept] == [None]
    finally:
        gc.enable()


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ({"W": [1]}, {"W": 5}),
        ({"W": [1]}, [1]),
        (np.ones(2), [1, 1]),
        ([3, 4], [3, 5]),
        ([3, 4], [3, 4.0]),
        ("a", "b"),
        (np.ones(2, np.float32), np.ones(2)),
    ],
)
def test_arguments_that_became_something_else_are_changed(before, after):
    assert not unchanged(before, after)
    assert unchanged(before, before) and unchanged([float("nan")], [float("nan")])


def test_a_logger_that_was_set_up_in_it_writes_to_the_page_afterwards(capsys):
    handlers = []

    def logs(x):
        handlers.append(logging.StreamHandler())
        return double(x)

    call(logs, (1,), 10)
    handlers[0].handle(logging.makeLogRecord({"msg": "afterwards"}))
    assert capsys.readouterr().err == "afterwards\n"


def test_a_loop_that_warns_does_not_fill_the_memory():
    def warns(x):
        for i in range(1000):
            warnings.warn(f"number {i}", stacklevel=1)

    assert len(call(warns, (1,), 10).warned) == 20


def endless(x):
    while True:
        pass


def sleeping(x):
    time.sleep(60)


def catching_once(x):
    try:
        time.sleep(60)
    except BaseException:  # noqa: BLE001, S110
        pass
    time.sleep(60)


def asleep_and_stubborn(x):
    while True:
        try:
            time.sleep(60)
        except BaseException:  # noqa: BLE001, S110
            pass


def printing(x):
    while True:
        print("more" * 1000)


def waiting(x):
    lock = threading.Lock()
    with lock:
        lock.acquire()


def with_a_child(x):
    subprocess.run([sys.executable, "-c", "import time; time.sleep(60)"], check=True)


def turning(x):
    try:
        time.sleep(60)
    except BaseException as error:  # the limit becomes another error
        raise ValueError from error


def handing_back(x):
    try:
        time.sleep(60)
    finally:
        return double(x)  # noqa: B012


@pytest.mark.parametrize(
    "function",
    [
        endless,
        sleeping,
        catching_once,
        asleep_and_stubborn,
        printing,
        waiting,
        with_a_child,
        turning,
        handing_back,
    ],
)
def test_a_function_that_does_not_end_is_stopped(function):
    before, trace = threading.active_count(), sys.gettrace()
    start = time.monotonic()
    found = judge(EXERCISE, function)
    assert time.monotonic() - start < 60
    assert "stopped after 1 s" in found.text
    assert threading.active_count() == before
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
    assert sys.gettrace() is trace


def test_a_time_limit_that_is_kept_leaves_no_interrupt_behind():
    for _ in range(200):
        try:
            within(0.001, time.sleep, 0.0005)
        except TooLong:
            pass
    time.sleep(0.01)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


def test_a_time_limit_turns_its_own_interrupt_into_too_long_and_lets_the_readers_pass():
    def interrupted():
        signal.raise_signal(signal.SIGINT)

    with pytest.raises(TooLong):
        within(0.05, time.sleep, 5)
    with pytest.raises(KeyboardInterrupt):
        within(5, interrupted)


def test_in_another_thread_there_is_no_limit_and_no_interrupt():
    found = []

    def run():
        within(0.01, time.sleep, 0.1)
        found.append("ended")

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert found == ["ended"]


@pytest.mark.skipif(sys.platform == "win32", reason="no signal to a thread")
def test_an_interrupt_at_any_moment_leaves_everything_as_it_was():
    def state():
        return sys.stdout, sys.stderr, warnings.showwarning, signal.getsignal(signal.SIGINT), threading.active_count()

    def send(after):
        time.sleep(after)
        signal.pthread_kill(threading.main_thread().ident, signal.SIGINT)

    before, interrupted = state(), 0
    for number in range(200):
        reader = threading.Thread(target=send, args=(number * 2e-5,))
        try:
            reader.start()
            while reader.is_alive():
                assert within(5, double, 2) == 4
            time.sleep(0.01)
        except KeyboardInterrupt:
            interrupted += 1
        reader.join()
        assert state() == before
    assert interrupted == 200


@pytest.mark.skipif(sys.platform == "win32", reason="no shell that ignores an interrupt")
def test_a_course_that_was_started_in_the_background_stops_an_endless_loop_too():
    code = """import signal, threading
assert signal.getsignal(signal.SIGINT) is signal.SIG_IGN
from dlcourse.exercises.run_limited import TooLong, within
def endless():
    while True:
        pass
try:
    within(0.2, endless)
except TooLong as error:
    print(error, signal.getsignal(signal.SIGINT) is signal.SIG_IGN)
"""
    command = ["/bin/sh", "-c", 'trap "" INT; exec "$@"', "sh", sys.executable, "-c", code]  # as `nohup dlcourse lab &`
    run = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout == "it had not ended after 0.2 s True\n"


def test_a_limit_inside_a_limit_ends_as_too_long():
    with pytest.raises(TooLong):
        within(0.2, within, 20, time.sleep, 20)


def test_two_threads_that_check_leave_standard_output_as_it_was():
    before = sys.stdout, sys.stderr, warnings.showwarning
    with ThreadPoolExecutor(4) as pool:
        states = [one.state for one in pool.map(lambda _: judge(EXERCISE, double), range(20))]
    assert states == ["right"] * 20
    assert (sys.stdout, sys.stderr, warnings.showwarning) == before
