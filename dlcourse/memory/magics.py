"""The magics of `%load_ext dlcourse`: `%peak` and `%%peak` measure a line or a cell by both rulers.

IPython is not imported here: its shell is handed in, and has all that is needed.
"""

import ast
import contextlib
import time
from types import CodeType
from typing import Any

from dlcourse.memory.meter import meter

EXACT = "--exact"
SETTLE = 0.02  # seconds for the kernel's own threads to send what they have: what they allocate would be counted


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
        option, code = (line, cell) if cell is not None else _option(line)
        if option.strip() not in ("", EXACT) or not code.strip():
            wanted = "%peak [--exact] CODE" if cell is None else "%%peak [--exact] above the code"
            raise _shown(ValueError(f"expected {wanted}, got {line.strip()!r}"), [f"UsageError: expected {wanted}"])
        return _run(shell, code, only_exact=option.strip() == EXACT)

    # What IPython's decorators no_var_expand and output_can_be_silenced set: {x} stays code, and ";" hides the value.
    peak._ipython_magic_no_var_expand = True  # type: ignore[attr-defined]
    peak._ipython_magic_output_can_be_silenced = True  # type: ignore[attr-defined]
    shell.register_magic_function(peak, "line_cell", "peak")


def _option(line: str) -> tuple[str, str]:
    first, _, rest = line.strip().partition(" ")
    return (EXACT, rest) if first == EXACT else ("", line)


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
    time.sleep(SETTLE)
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
