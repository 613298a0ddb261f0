"""`narrows plot`: plot the JSON output of iperf3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrows import extras
from narrows.cli.commands.shared import say
from narrows.errors import OutputError
from narrows.results.iperf3 import WRITTEN, read

if TYPE_CHECKING:
    from narrows.report.iperf3 import Drawn


def plot(
    files: Annotated[
        list[Path],
        typer.Argument(metavar="FILE...", help="Files that iperf3 --json wrote.", show_default=False),
    ],
    out: Annotated[
        Path | None,
        typer.Option(
            "--out",
            metavar="FOLDER",
            help="Folder for the figures (default: the folder of each file).",
            show_default=False,
        ),
    ] = None,
) -> None:
    """Plot the JSON output of iperf3.

    The panels are throughput, data, window, retransmissions, RTT, variance of the RTT, and MTU. Each figure
    is written as PDF, PNG and SVG, with its Vega-Lite specification. Each panel is also written as a PDF of
    its own, such as FILE-cwnd.pdf.
    """
    extras.require("report", "plot")
    from narrows.report import export  # noqa: PLC0415 (charts take a second to load)

    _check_names(files, out)
    ready = [(path, *_drawn(path)) for path in files]
    for path, drawn, left_out in ready:
        folder = out or path.parent
        try:
            written = export.write(drawn.whole, folder, path.stem)
            for part, alone in drawn.each.items():
                written.append(folder / f"{path.stem}-{part}.pdf")
                written[-1].write_bytes(export.pdf(alone))
        except OSError as error:
            raise OutputError(f"{error.filename or folder}: {error.strerror}") from None
        print(", ".join(str(file) for file in written))
        if left_out:
            say(f"{path}: {left_out}")


def _drawn(path: Path) -> tuple[Drawn, str]:
    """The figures for a file, and a line that names the panels for which the file has no data."""
    from narrows.report import iperf3  # noqa: PLC0415

    if path.is_dir():
        raise OutputError(f"{path}: found a folder, expected {WRITTEN}; for results: narrows report {path}")
    trace = read(path)
    try:
        return iperf3.draw(trace), iperf3.missing(trace)
    except OutputError as error:
        raise OutputError(f"{path}: {error}") from None


def _check_names(files: list[Path], out: Path | None) -> None:
    """Check that no figure would overwrite another figure or a file.

    The names of the figures for a file begin with this file's name.
    """
    from narrows.report import export, iperf3  # noqa: PLC0415

    ends = [f".{suffix}" for suffix in export.SUFFIXES]
    ends += [f"-{quantity.file}.pdf" for quantity in iperf3.QUANTITIES]
    given = {path.resolve(): path for path in files}
    seen: dict[Path, Path] = {}
    for path in files:
        for target in ((out or path.parent).resolve() / f"{path.stem}{end}" for end in ends):
            other = seen.setdefault(target, path)
            if other is not path:
                raise OutputError(
                    f"{path}: its figures would overwrite those of {other}; use different file names, or "
                    "separate calls with different --out"
                )
            if lost := given.get(target):
                raise OutputError(
                    f"{lost}: a figure of {path} would overwrite it, expected a different file name, or "
                    "another --out"
                )
