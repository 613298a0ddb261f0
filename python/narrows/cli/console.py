"""Consoles that print names, paths and commands unchanged."""

from __future__ import annotations

import sys

from rich.console import Console

WIDEST = 100_000
"""Width of the console without a terminal, in columns. It exceeds the length of every printed line."""
DEFAULT_WIDTH = 80
"""Number of columns that is assumed for a terminal whose width is unknown."""


def plain(width: int | None = None) -> Console:
    """A console on which brackets are text and not markup, as in ``narrows[report]``.

    Args:
        width: number of columns (None: the number of columns of the terminal; if there is no terminal, no
            line is wrapped).
    """
    if width is None and not sys.stdout.isatty():
        width = WIDEST
    console = Console(width=width, markup=False, emoji=False, highlight=False)
    if console.width < 1:  # COLUMNS=0
        console.width = DEFAULT_WIDTH
    return console
