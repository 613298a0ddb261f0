"""Tables that fit the terminal.

A table that is wider than the terminal is changed until it fits, without loss of content:

1. Columns of text wrap at words.
2. Columns of figures that do not fit move to further tables below. Each further table repeats the columns
  that name a row.
3. Columns that name a row wrap if they take more than half of the width.
4. If even a single column of figures does not fit next to the names, each row is printed as a list with one
  line for each column.

Without a terminal, each row is one line.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum, auto
from itertools import groupby

from rich import table as rich_table
from rich.cells import cell_len
from rich.console import Console, RenderableType
from rich.segment import Segment, Segments
from rich.text import Text

GAP = 2
"""Spaces between two columns of a table."""
LEAST_NAME = 8
"""Least width of a wrapped column that names a row."""
LEAST_TEXT = 16
"""Least width of a wrapped column of text. A column whose longest word is shorter may be narrower."""
_PIECE = re.compile(r"[^.,:=/ -]*[.,:=/ -]*")
"""A part of a name. The part ends with a character after which a line break is allowed."""

Cell = str | Text


class Kind(Enum):
    """The contents of a column, which determine how the column changes if the table is too wide."""

    NAME = auto()
    """The name of the row. If a table is divided, all parts repeat the name."""
    TEXT = auto()
    """Words, which can wrap."""
    FIGURE = auto()
    """A figure. It never wraps."""


@dataclass(frozen=True, slots=True)
class Size:
    """The width of a column, and how narrow it may become."""

    kind: Kind
    widest: int
    """Width of the column without wrapping."""
    least: int
    """Width with as much wrapping as the column allows."""
    group: str
    """If a table is divided, adjacent columns with the same group stay together."""


def layout(columns: Sequence[Size], width: int) -> list[dict[int, int]]:
    """Choose the tables that show these columns within a width.

    Returns:
        For each table, the widths of its columns by the columns' indices.
    """
    if _taken(column.widest for column in columns) <= width:
        return [{i: column.widest for i, column in enumerate(columns)}]
    names = [i for i, column in enumerate(columns) if column.kind is Kind.NAME]
    others = [i for i in range(len(columns)) if i not in names]
    groups = [list(group) for _, group in groupby(others, key=lambda i: columns[i].group or i)]
    needs = [_taken(columns[i].least for i in group) for group in groups]
    room = min(width // 2, width - max(needs, default=0) - GAP)
    shown = _narrowed({i: columns[i].widest for i in names}, room)
    tables: list[dict[int, int]] = [dict(shown)]
    for group in groups:
        more = {i: columns[i].least for i in group}
        if len(tables[-1]) > len(shown) and _taken([*tables[-1].values(), *more.values()]) > width:
            tables.append(dict(shown))
        tables[-1] |= more
    return [_widened(table, columns, width) for table in tables]


def _taken(widths: Iterable[int]) -> int:
    """Width of adjacent columns with the gaps between them."""
    known = list(widths)
    return sum(known) + GAP * max(0, len(known) - 1)


def _narrowed(widths: dict[int, int], room: int) -> dict[int, int]:
    """Narrow the widest column, until all columns fit or none is wider than `LEAST_NAME`."""
    while _taken(widths.values()) > room and max(widths.values(), default=0) > LEAST_NAME:
        widths[max(widths, key=lambda i: widths[i])] -= 1
    return widths


def _widened(table: dict[int, int], columns: Sequence[Size], width: int) -> dict[int, int]:
    """Give the unused width to the wrapped columns, the narrowest first."""
    while _taken(table.values()) < width:
        wrapped = [i for i, given in table.items() if given < columns[i].widest]
        if not wrapped:
            break
        table[min(wrapped, key=lambda i: table[i])] += 1
    return dict(sorted(table.items()))


class Table:
    """Rows of cells below headings."""

    def __init__(self) -> None:
        self._headings: list[str] = []
        self._kinds: list[Kind] = []
        self._groups: list[str] = []
        self._styles: list[str] = []
        self._rows: list[Sequence[Cell]] = []

    def add_name(self, heading: str = "", *, style: str = "") -> None:
        """Add a column that names the row. The columns that name the row come first."""
        self._add(heading, Kind.NAME, "", style)

    def add_text(self, heading: str = "") -> None:
        """Add a column of words."""
        self._add(heading, Kind.TEXT, "", "")

    def add_figure(self, heading: str, group: str = "") -> None:
        """Add a column of figures.

        If the table is divided, adjacent columns with the same group stay together.
        """
        self._add(heading, Kind.FIGURE, group, "")

    def _add(self, heading: str, kind: Kind, group: str, style: str) -> None:
        self._headings.append(heading)
        self._kinds.append(kind)
        self._groups.append(group)
        self._styles.append(style)

    def add_row(self, *cells: Cell) -> None:
        """Add a row with a cell for each column."""
        self._rows.append(cells)

    def print(self, console: Console) -> None:
        """Print the table, within the width of the console."""
        sizes = [self._size(i) for i in range(len(self._headings))]
        tables = layout(sizes, console.width)
        if any(_taken(widths.values()) > console.width for widths in tables):
            self._print_rows(console)
            return
        for place, widths in enumerate(tables):
            if place > 0:
                console.print()
            _print(console, self._rendered(widths), _taken(widths.values()))

    def _print_rows(self, console: Console) -> None:
        """Print each row as a list of headings with their cells."""
        for place, row in enumerate(self._rows):
            if place > 0:
                console.print()
            for heading, cell in zip(self._headings, row, strict=True):
                words = Text.assemble((heading, "bold"), " " if heading else "", cell, overflow="fold")
                _print(console, words, console.width)

    def _size(self, column: int) -> Size:
        cells = [self._headings[column], *(str(row[column]) for row in self._rows)]
        kind = self._kinds[column]
        widest = max(cell_len(line) for cell in cells for line in cell.split("\n"))
        word = max((cell_len(word) for cell in cells for word in cell.split()), default=0)
        least = min(word, LEAST_TEXT) if kind is Kind.TEXT else widest
        return Size(kind, widest, least, self._groups[column])

    def _rendered(self, widths: dict[int, int]) -> rich_table.Table:
        made = rich_table.Table(
            box=None,
            header_style="bold",
            pad_edge=False,
            show_header=any(self._headings),
        )
        for i, width in widths.items():
            kind = self._kinds[i]
            made.add_column(
                self._shaped(i, self._headings[i], width),
                justify="right" if kind is Kind.FIGURE else "left",
                no_wrap=kind is Kind.FIGURE,
                overflow="fold",
                width=width,
                style=self._styles[i],
            )
        for row in self._rows:
            made.add_row(*(self._shaped(i, row[i], width) for i, width in widths.items()))
        return made

    def _shaped(self, column: int, cell: Cell, width: int) -> Text:
        if isinstance(cell, Text):
            return cell
        return Text(broken(cell, width) if self._kinds[column] is Kind.NAME else cell)


def _print(console: Console, content: RenderableType, width: int) -> None:
    """Print something in lines of at most `width` columns, without trailing spaces."""
    for line in console.render_lines(content, console.options.update(width=width)):
        console.print(Segments([*_stripped(line), Segment.line()]), crop=False)


def _stripped(line: list[Segment]) -> list[Segment]:
    """A line without trailing spaces."""
    while line and not line[-1].text.strip():
        line = line[:-1]
    return [*line[:-1], Segment(line[-1].text.rstrip(), line[-1].style)] if line else line


def broken(name: str, width: int) -> str:
    """A name, divided into lines of at most `width` columns.

    If possible, a line ends after a dot or a similar character.
    """
    lines = []
    for whole in name.split("\n"):
        line = ""
        for piece in _PIECE.findall(whole):
            if line and cell_len(line + piece.rstrip()) > width:
                lines.append(line.rstrip())
                line = ""
            line += piece
        lines.append(line)
    return "\n".join(lines)
