"""The work of `narrows report`."""

from __future__ import annotations

from pathlib import Path

from narrows import extras
from narrows.errors import OutputError, found
from narrows.results.datasets.urls import url_of
from narrows.results.results import REPORT, Results
from narrows.results.store import write_output


def report(results: Path, out: Path | None, figures: Path | None) -> None:
    """Write the page, and the figures as files if `figures` is a folder."""
    if out is not None and out.suffix.lower() != ".html":
        raise OutputError(f"--out: found {found(out.name)}, expected a name that ends with .html")
    extras.require("report", "report")
    from narrows.report import single  # noqa: PLC0415 (charts take a second to load)

    if out is None and (url := url_of(results)) is not None:
        raise OutputError(f"--out: found nothing, expected a file for the report of {url}")
    read = Results.read(results)
    try:
        html = single(read, files=figures)
    except OSError as error:
        raise OutputError(f"{error.filename or figures}: {error.strerror}") from None
    target = out or results / REPORT
    write_output(target, html)
    print(f"report in {target}" + (f", figures in {figures}" if figures is not None else ""))
