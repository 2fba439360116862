"""The table that everything here is shown with, as text and as HTML."""

import html
from collections.abc import Sequence
from dataclasses import dataclass


class Shown:
    """A base for what is shown as a table: a subclass has `_table()`."""

    def _table(self) -> "Table":
        raise NotImplementedError

    def __str__(self) -> str:
        return str(self._table())

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return self._table()._repr_html_()


@dataclass(frozen=True, repr=False)
class Table:
    """Lines of cells, of which the first is the head.

    notes: lines below the table. left: so many columns stand at the left, the others at the right.
    total: the last line is a sum, and set off from the others. rule: a rule stands below the head, in the text.
    """

    lines: Sequence[Sequence[str]]
    notes: Sequence[str] = ()
    left: int = 1
    total: bool = False
    rule: bool = True

    def __str__(self) -> str:
        widths = [max(map(len, column)) for column in zip(*self.lines, strict=True)]
        text = []
        for line in self.lines:
            cells = enumerate(zip(line, widths, strict=True))
            text.append("  ".join(x.ljust(w) if i < self.left else x.rjust(w) for i, (x, w) in cells).rstrip())
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        if self.rule:
            text.insert(1, rule)
        if self.total:
            text.insert(-1, rule)
        return "\n".join([*text, *self.notes])

    __repr__ = __str__

    def _repr_html_(self) -> str:
        def row(line: Sequence[str], tag: str, style: str = "") -> str:
            cells = ""
            for i, cell in enumerate(line):
                side = "left" if i < self.left else "right"
                cells += f'<{tag} style="text-align:{side}">{html.escape(cell)}</{tag}>'
            return f"<tr{style}>{cells}</tr>"

        body = [row(line, "td") for line in self.lines[1:]]
        if self.total:
            body[-1] = row(self.lines[-1], "td", ' style="font-weight:bold;border-top:1px solid"')
        below = f"<p>{'<br>'.join(map(html.escape, self.notes))}</p>" if self.notes else ""
        return f"<table><thead>{row(self.lines[0], 'th')}</thead><tbody>{''.join(body)}</tbody></table>{below}"
