"""The page of a report: one HTML file that needs no other file."""

from narrows.report.page.render import Page, Section, render

__all__ = ["Page", "Section", "render"]
