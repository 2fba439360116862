"""For all tests: hypothesis draws the same examples in every run, without a limit of time for one of them; and an
interrupt is heard, also if the tests were started in the background."""

import signal

import pytest
from hypothesis import settings

settings.register_profile("dlcourse", derandomize=True, deadline=None, database=None)
settings.load_profile("dlcourse")


@pytest.fixture(scope="session", autouse=True)
def interrupts_are_heard():
    """A shell starts what runs in the background (`nohup make test &`) with SIGINT ignored, and children inherit that."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)
