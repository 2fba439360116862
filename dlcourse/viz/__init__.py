"""Pictures by form: a function draws a form (lines, bars, cells, …), and what is special to one picture stands in its
notebook. Each returns a picture that a cell shows as its last expression."""

from dlcourse.viz.bars import bars
from dlcourse.viz.bill import bill, timeline
from dlcourse.viz.cells import cells, strip
from dlcourse.viz.course import course_map
from dlcourse.viz.images import images
from dlcourse.viz.lines import curves, lines
from dlcourse.viz.live import Dashboard, LiveMonitor, monitor, monitor_log
from dlcourse.viz.matrix import matrix
from dlcourse.viz.points import points, seconds_against_bytes
from dlcourse.viz.style import COLOURS, INK, MAIN, REST, SECOND, canvas, picture, title, use

# fmt: off
__all__ = [
    "COLOURS", "INK", "MAIN", "REST", "SECOND", "Dashboard", "LiveMonitor", "bars", "bill", "canvas", "cells",
    "course_map", "curves", "images", "lines", "matrix", "monitor", "monitor_log", "picture", "points",
    "seconds_against_bytes", "strip", "timeline", "title", "use",
]
# fmt: on
