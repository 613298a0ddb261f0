"""Reports: one HTML file that opens without a network, and figures as SVG, PNG and PDF.

The drawing libraries are an optional extra and slow to import, so a function is imported when it is first
used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from narrows import extras

if TYPE_CHECKING:
    from narrows.report.results_page import single
    from narrows.report.study import build, write

__all__ = ["build", "single", "write"]

_PLACES = {"build": "study", "single": "results_page", "write": "study"}


def __getattr__(name: str) -> Any:
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    extras.require("report", f"narrows.report.{name}")
    return getattr(import_module(f"{__name__}.{_PLACES[name]}"), name)
