"""Reports: one HTML file that opens without a network, and figures as SVG, PNG and PDF."""

from narrows.report.single import single
from narrows.report.study import build, write

__all__ = ["build", "single", "write"]
