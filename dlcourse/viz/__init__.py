"""Every picture and widget of the course. Each function returns a picture that a cell shows as its last expression."""

from dlcourse.viz.arrays import sizes, strip
from dlcourse.viz.bench import seconds_against_bytes
from dlcourse.viz.bill import bill, timeline
from dlcourse.viz.course import course_map
from dlcourse.viz.monitor import LiveMonitor, monitor
from dlcourse.viz.rulers import heap, looks, rulers
from dlcourse.viz.style import COLOURS, picture, use
from dlcourse.viz.training import Dashboard, confusion, curves, filters, pictures

__all__ = [
    "COLOURS",
    "Dashboard",
    "LiveMonitor",
    "bill",
    "confusion",
    "course_map",
    "curves",
    "filters",
    "heap",
    "looks",
    "monitor",
    "picture",
    "pictures",
    "rulers",
    "seconds_against_bytes",
    "sizes",
    "strip",
    "timeline",
    "use",
]
