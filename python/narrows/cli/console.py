"""Consoles that print names, paths and commands unchanged."""

from __future__ import annotations

from rich.console import Console

from narrows.cli.figures import WIDEST


def plain(width: int | None = WIDEST) -> Console:
    """A console on which brackets are text and not markup, as in ``narrows[report]``.

    Args:
        width: columns. By default lines are not cut at the terminal's width. None stands for the terminal's
            width; without a terminal, each row of a table then stays one line.
    """
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    if width is None and not console.is_terminal:
        return plain()
    return console
