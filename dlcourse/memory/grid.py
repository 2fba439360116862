"""Lines of cells, as text and as HTML: what every table here that is not a bill is shown with."""

import html
from collections.abc import Sequence
from dataclasses import dataclass

Lines = Sequence[Sequence[str]]


def text(lines: Lines, notes: Sequence[str] = (), *, left: int = 1) -> str:
    """The first line is the head. The first `left` columns stand at the left, the others at the right."""
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]

    def one(line: Sequence[str]) -> str:
        cells = enumerate(zip(line, widths, strict=True))
        return "  ".join(x.ljust(width) if i < left else x.rjust(width) for i, (x, width) in cells).rstrip()

    rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
    return "\n".join([one(lines[0]), rule, *map(one, lines[1:]), *notes])


def as_html(lines: Lines, notes: Sequence[str] = (), *, left: int = 1) -> str:
    """The same as a table."""

    def one(line: Sequence[str], tag: str) -> str:
        sides = ["left" if i < left else "right" for i in range(len(line))]
        cells = [
            f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            for side, cell in zip(sides, line, strict=True)
        ]
        return f"<tr>{''.join(cells)}</tr>"

    body = "".join(one(line, "td") for line in lines[1:])
    below = "<br>".join(map(html.escape, notes))
    return f"<table><thead>{one(lines[0], 'th')}</thead><tbody>{body}</tbody></table><p>{below}</p>"


@dataclass(frozen=True)
class Table:
    """Lines of cells with a head, and what stands below them."""

    lines: Lines
    notes: Sequence[str] = ()

    def __str__(self) -> str:
        return text(self.lines, self.notes)

    def _repr_html_(self) -> str:
        return as_html(self.lines, self.notes)

    __repr__ = __str__
