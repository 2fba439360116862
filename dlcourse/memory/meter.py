"""Measure a block by both rulers, and say what the difference between them is made of: `meter`, `%peak` and `%%peak`."""

import ast
import contextlib
import gc
import sys
import time
from collections.abc import Iterator
from types import CodeType
from typing import Any

from dlcourse.memory.system import Allocator, ResidentGrowth, allocator, measure_resident
from dlcourse.memory.traced import Measured, TracedPeak, block, traced_peak
from dlcourse.units import binary

MIB = 2**20
SMALL_OBJECT_BYTES = 512  # the largest of those that Python keeps in arenas of its own and not in malloc's
EXACT = "--exact"
SETTLE_SECONDS = 0.02  # for the kernel's own threads to send what they have: what they allocate would be counted


class Reading(Measured):
    """What `meter` measured, in bytes beyond the beginning of the block; there once the block has ended.

    requested: the traced peak, arrays and Python's own objects; kept: what was still there at the end. Both are exact.
    resident: the peak of what the system saw, read from `ruler`; a `lower_bound` where the system cannot tell.
    why: what the difference is made of, in words. To read a measurement that failed raises RuntimeError with `problem`.
    """

    requested: int
    kept: int
    resident: int
    ruler: str
    lower_bound: bool
    why: str

    @property
    def exact(self) -> str:
        """The line of the exact ruler, the same in every run of code that works on arrays of a MiB or more. What code
        leaves that runs for the first time, and other threads, are some hundred bytes: they are not shown."""
        if self.problem:
            return self.problem
        least = 4096  # less is Python's own, and another time another one
        peak, kept = (binary(n) if abs(n) >= least else "under 4 KiB" for n in (self.requested, self.kept))
        return f"requested   peak {peak}, at the end {kept}"

    def __str__(self) -> str:
        if self.problem:
            return self.problem
        bound = ", a lower bound" if self.lower_bound else ""
        return f"{self.exact}\nsystem saw  peak {binary(self.resident)} ({self.ruler}{bound})\ndifference  {self.why}"


@block
def meter() -> Iterator[Reading]:
    """`with meter() as m: …` measures the block by both rulers; `print(m)` afterwards shows them and their difference.

    Both rulers see the whole process, all its threads. Blocks may stand inside one another. If the block fails, the
    reading is filled in all the same. Loops in Python run slower inside, since each allocation is traced. Raises
    RuntimeError if tracing was ended inside the block.
    """
    reading = Reading()
    gc.collect()
    malloc, blocks = allocator(), sys.getallocatedblocks()
    try:
        with measure_resident() as seen, traced_peak(collect=False) as counted:
            yield reading
    finally:
        reading.problem = counted.problem
        if not reading.problem:
            reading.requested, reading.kept = counted.peak, counted.kept
            reading.resident, reading.ruler, reading.lower_bound = seen.peak, seen.ruler, seen.lower_bound
            reading.why = _why(counted, seen, malloc, allocator(), sys.getallocatedblocks() - blocks)


def _why(
    traced: TracedPeak, grown: ResidentGrowth, before: Allocator | None, after: Allocator | None, blocks: int
) -> str:
    """The parts of the difference that can be told, from what grew between the ends of the block."""
    if grown.lower_bound:
        return f"cannot be told: the process had more before, and {sys.platform} keeps one peak for its whole life"
    mapped, anonymous = (
        (getattr(grown.after, kind) or 0) - (getattr(grown.before, kind) or 0) for kind in ("mapped", "anonymous")
    )
    others = 0  # resident, and neither from malloc nor one of Python's small objects
    if before is not None and after is not None:
        others = anonymous - max(after.allocated - before.allocated, 0) - max(blocks, 0) * SMALL_OBJECT_BYTES
    held = None if before is None else before.allocated - before.used
    return explain(traced.peak, grown.peak, mapped=mapped, others=others, overhead=traced.overhead, held=held)


def explain(requested: int, resident: int, *, mapped: int, others: int, overhead: int, held: int | None) -> str:
    """Why `resident` is not `requested`, in words. Parts under 1 MiB and under 5 % of the larger are left out.

    What the system saw and nobody requested: pages of files `mapped` in the block, memory that `others` than Python and
    malloc mapped, the `overhead` of tracemalloc's notes. `held`: free memory in the allocator's hands before; None: not known.
    """
    least = max(MIB, max(requested, resident) // 20)
    if abs(resident - requested) < least:
        return "less than 1 MiB or 5 %"
    parts = [
        (mapped, "more are pages of mapped files (a library that was loaded, a memory map)"),
        (others, "more come from outside of Python and malloc, such as BLAS's buffers (the first product makes them)"),
        (overhead, "more are tracemalloc's own notes about many small objects"),
    ]
    said = [f"{binary(size)} {what}" for size, what in parts if size >= least]
    missing = requested - resident + sum(size for size, _ in parts if size >= least)
    if missing >= least:
        said.append(_less(missing, held, least))
    elif -missing >= least:
        said.append(f"{binary(-missing)} more for a time: pages of mapped files, or what code in C took for itself")
    return "; ".join(said)


def _less(missing: int, held: int | None, least: int) -> str:
    lazy = "never written: the system gives a page when it is first touched"
    if held is None:
        return f"{binary(missing)} found room in memory that the allocator held free, or were {lazy}"
    if held < least:
        return f"{binary(missing)} were {lazy}"
    if missing - held < least:
        return f"{binary(missing)} found room in the {binary(held)} that the allocator held free, or were {lazy}"
    return f"{binary(missing - held)} or more were {lazy}; the allocator held {binary(held)} free, to be used again"


# The magics of `%load_ext dlcourse`. IPython is not imported here: its shell is handed in, and has all that is needed.


def register(shell: Any) -> None:
    """Make `%peak` and `%%peak` known to an IPython shell."""

    def peak(line: str, cell: str | None = None) -> Any:
        """Run code once, in the notebook's own names, and print its peak of memory by both rulers.

        %peak [--exact] CODE        one line
        %%peak [--exact]            the cell below

        requested: array bytes and Python's own small objects that were alive at once, beyond the beginning; exact.
        system saw: by how much the resident size rose. Then what the difference is made of. With --exact the first line
        only, which is the same in every run and can be compared. The last expression is shown as in any cell; its
        display is not measured. Code that fails shows its traceback as usual, and its reading.
        """
        option, code = line, cell
        if code is None:
            first, _, rest = line.strip().partition(" ")
            option, code = (EXACT, rest) if first == EXACT else ("", line)
        if option.strip() not in ("", EXACT) or not code.strip():
            wanted = "%peak [--exact] CODE" if cell is None else "%%peak [--exact] above the code"
            raise _shown(ValueError(f"expected {wanted}, got {line.strip()!r}"), [f"UsageError: expected {wanted}"])
        return _run(shell, code, only_exact=option.strip() == EXACT)

    # What IPython's decorators no_var_expand and output_can_be_silenced set: {x} stays code, and ";" hides the value.
    peak._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]
    peak._ipython_magic_output_can_be_silenced = True  # type: ignore[attr-defined]
    shell.register_magic_function(peak, "line_cell", "peak")


def _run(shell: Any, code: str, only_exact: bool) -> Any:
    # The empty line stands for that of the magic: so a traceback has the cell's own line numbers.
    source = "\n" + shell.transform_cell(code)
    name = shell.compile.cache(source, shell.displayhook.prompt_count)
    try:
        body, last = _compiled(shell, source, name)
    except SyntaxError as error:
        if _awaits(shell, source, name):
            why = "%peak cannot run await, async for or async with outside a function: take `with meter():` in a plain cell"
            raise _shown(ValueError(why), [f"UsageError: {why}"]) from None
        # For a SyntaxError that is raised while a cell runs, IPython shows every frame of its own. This one has the name.
        same_name = type(type(error).__name__, (Exception,), {})
        lines = shell.SyntaxTB.structured_traceback(type(error), error, [])
        raise _shown(same_name(str(error)), lines) from None
    names = shell.user_ns
    value = None
    time.sleep(SETTLE_SECONDS)
    try:
        with meter() as reading:
            exec(body, names)  # noqa: S102  the reader's own cell
            if last is not None:
                value = eval(last, names)
    except BaseException as error:
        tb = error.__traceback__
        _shown(error, shell.InteractiveTB.structured_traceback(type(error), error, tb and tb.tb_next, tb_offset=0))
        raise
    finally:
        print(reading.exact if only_exact else reading)
    return value


def _compiled(shell: Any, source: str, name: str) -> tuple[CodeType, CodeType | None]:
    """-> the statements, and the expression at their end whose value a cell shows, if there is one."""
    tree = shell.transform_ast(shell.compile.ast_parse(source, filename=name))
    last = None
    if tree.body and isinstance(tree.body[-1], ast.Expr):
        last = shell.compile(ast.Expression(tree.body.pop().value), name, "eval")
    return shell.compile(tree, name, "exec"), last


def _awaits(shell: Any, source: str, name: str) -> bool:
    """Whether the code is right but for an await outside a function. A plain cell runs such code, where autoawait is on:
    it hands the code to the kernel's loop, which waits for this magic and so cannot run it."""
    try:
        flags = shell.compile.flags | ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
        compile(source, name, "exec", flags, dont_inherit=True)
    except SyntaxError:
        return False
    return bool(shell.autoawait)


def _shown(error: BaseException, lines: list[str]) -> BaseException:
    """Let IPython show these lines for `error`, and not the frames of the way through its magics."""
    with contextlib.suppress(AttributeError):  # a class with slots: then the frames are shown
        error._render_traceback_ = lambda: lines  # type: ignore[attr-defined]
    return error
