"""A memory test that is exact: the peak of a block against a budget."""

import contextlib
import sys
import types
from collections.abc import Iterator

from dlcourse.memory.holders import Walk, made_at, traced_lines
from dlcourse.memory.roots import local_names, roots
from dlcourse.memory.rulers import Traced, traced_array_bytes, traced_peak
from dlcourse.units import binary, parse

SHOWN = 8  # arrays in a message


@contextlib.contextmanager
def assert_peak(budget: int | str) -> Iterator[Traced]:
    """`with assert_peak("10 MiB"): …`, or `@assert_peak("10 MiB")` over a test: fails where the block's peak by the
    exact ruler, beyond what was there before it, is over the budget.

    The peak is the same in every run but for what code allocates when it runs for the first time, up to some KiB: call
    it once before. Raises AssertionError with the peak, the budget and the arrays that are alive at the end of the
    block, the largest first; an error in the block comes out as it is; ValueError for a budget that is no size.
    """
    limit = parse(budget)
    with traced_lines():
        with traced_peak() as traced:
            yield traced
        if traced.peak > limit:
            sizes = f"{binary(traced.peak)} ({traced.peak:,} bytes), {binary(traced.peak - limit)} over {binary(limit)}"
            raise AssertionError(f"the peak is {sizes}\n{_alive(traced, _caller())}")


def _alive(traced: Traced, frame: types.FrameType | None) -> str:
    """What is alive of the block, by size and name."""
    names = [] if frame is None else [*local_names(frame).items(), *frame.f_globals.items()]
    walk = Walk([*names, *roots()])
    found = [(array, made_at(array)) for array in walk.arrays]
    arrays = sorted(((array, place) for array, place in found if place), key=lambda pair: -pair[0].nbytes)
    lines = [
        f"  {binary(array.nbytes):>8}  {''.join(walk.words(walk.path(array)))}  {array.shape} {array.dtype}, made at {place}"
        for array, place in arrays[:SHOWN]
    ]
    nameless = traced_array_bytes() - sum(array.nbytes for array, _ in arrays)
    if nameless > 0:
        lines.append(f"  {binary(nameless):>8}  in arrays that no name leads to")
    gone = traced.peak - max(0, traced.kept)
    return "\n".join(["alive at the end of the block:", *(lines or ["  no array"]), f"freed before it: {binary(gone)}"])


def _caller() -> types.FrameType | None:
    """The frame of the block, above those of this file and of contextlib."""
    frame: types.FrameType | None = sys._getframe()
    while frame is not None and frame.f_code.co_filename in (__file__, contextlib.__file__):
        frame = frame.f_back
    return frame
