"""A table of bytes: a row a layer, a column a kind; as text and as HTML."""

import html
import re
from dataclasses import dataclass

from dlcourse.units import binary


@dataclass(frozen=True)
class table:
    """`rows` are (name, bytes of each column); a row of totals is added. `notes` stand below; {123} in one is a number
    of bytes."""

    head: str
    columns: list[str]
    rows: list[tuple[str, list[int]]]
    notes: list[str]

    def _cells(self) -> list[list[str]]:
        sums = [sum(column) for column in zip(*(values for _, values in self.rows), strict=True)]
        body = [(name, values) for name, values in self.rows if any(values)]
        lines = [[name, *(binary(v) if v else "" for v in values)] for name, values in [*body, ("total", sums)]]
        return [[self.head, *self.columns], *lines]

    def _notes(self) -> list[str]:
        return [re.sub(r"\{(\d+)\}", lambda match: binary(int(match[1])), note) for note in self.notes]

    def text(self) -> str:
        cells = self._cells()
        widths = [max(len(line[i]) for line in cells) for i in range(len(cells[0]))]
        lines = [
            "  ".join(
                cell.ljust(width) if i == 0 else cell.rjust(width)
                for i, (cell, width) in enumerate(zip(line, widths, strict=True))
            ).rstrip()
            for line in cells
        ]
        rule = "-" * (sum(widths) + 2 * (len(widths) - 1))
        return "\n".join([lines[0], rule, *lines[1:-1], rule, lines[-1], *self._notes()])

    def html(self) -> str:
        def line(cells: list[str], tag: str, style: str = "") -> str:
            first, *others = (html.escape(cell) for cell in cells)
            left = f'<{tag} style="text-align:left">{first}</{tag}>'
            right = "".join(f'<{tag} style="text-align:right">{cell}</{tag}>' for cell in others)
            return f'<tr style="{style}">{left}{right}</tr>'

        head, *body, total = self._cells()
        lines = [line(cells, "td") for cells in body] + [line(total, "td", "font-weight:bold;border-top:1px solid")]
        notes = "<br>".join(map(html.escape, self._notes()))
        return f"<table><thead>{line(head, 'th')}</thead><tbody>{''.join(lines)}</tbody></table><p>{notes}</p>"
