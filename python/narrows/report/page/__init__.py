"""The page: one HTML file with everything in it."""

from narrows.report.page.render import Page, Section, render

__all__ = ["Page", "Section", "render"]
