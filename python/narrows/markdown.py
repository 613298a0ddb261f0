"""Tables in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

_RULES = {"l": "---", "r": "---:"}


def table(heads: Sequence[str], rows: Iterable[Sequence[object]], align: str = "") -> str:
    """A table in Markdown, without a final newline.

    Args:
        heads: heading of each column.
        rows: cells of each row.
        align: a letter for each column, `l` (left) or `r` (right). The last letter also applies to all
            further columns (default: all left).
    """
    letters = (align or "l").ljust(len(heads), align[-1:] or "l")
    lines = [heads, [_RULES[letter] for letter in letters], *rows]
    return "\n".join(f"| {' | '.join(map(str, line))} |".replace("|  |", "| |") for line in lines)
