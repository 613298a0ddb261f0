"""Reports: one HTML file that opens without a network, and figures as SVG, PNG and PDF."""

from narrows.report.study import build, single, write

__all__ = ["build", "single", "write"]
