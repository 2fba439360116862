"""For all tests: hypothesis draws the same examples in every run, without a limit of time for one of them."""

from hypothesis import settings

settings.register_profile("dlcourse", derandomize=True, deadline=None, database=None)
settings.load_profile("dlcourse")
