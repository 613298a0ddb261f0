"""`narrows plot`: plot the JSON output of iperf3."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from narrows import extras
from narrows.cli.commands.shared import say
from narrows.errors import OutputError

if TYPE_CHECKING:
    from narrows.report.figure import Figure


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

    The panels are throughput, data, window, retransmissions, RTT and its variance. Each figure is written as
    PDF, PNG and SVG, with its Vega-Lite specification.
    """
    extras.require("report", "plot")
    from narrows.report import export  # noqa: PLC0415 (charts take a second to load)

    _check_names(files, out)
    drawn = [(path, *_drawn(path)) for path in files]
    for path, figure, left_out in drawn:
        folder = out or path.parent
        try:
            written = export.write(figure, folder, path.stem)
        except OSError as error:
            raise OutputError(f"{error.filename or folder}: {error.strerror}") from None
        print(", ".join(str(file) for file in written))
        if left_out:
            say(f"{path}: {left_out}")


def _drawn(path: Path) -> tuple[Figure, str]:
    """The figure, and a line that names its missing panels."""
    from narrows.report import iperf3  # noqa: PLC0415

    if path.is_dir():
        raise OutputError(
            f"{path}: found a folder, expected {iperf3.WRITTEN}; for results: narrows report {path}"
        )
    trace = iperf3.read(path)
    try:
        return iperf3.draw(trace), iperf3.missing(trace)
    except OutputError as error:
        raise OutputError(f"{path}: {error}") from None


def _check_names(files: list[Path], out: Path | None) -> None:
    """Check that no figure would overwrite another figure or a file. A figure has the name of its file."""
    from narrows.report import export  # noqa: PLC0415

    given = {path.resolve(): path for path in files}
    seen: dict[Path, Path] = {}
    for path in files:
        other = seen.setdefault((out or path.parent).resolve() / path.stem, path)
        if other is not path:
            raise OutputError(
                f"{path}: its figures would overwrite those of {other}; use different file names, or "
                "separate calls with different --out"
            )
        for suffix in export.SUFFIXES:
            if lost := given.get((out or path.parent).resolve() / f"{path.stem}.{suffix}"):
                raise OutputError(
                    f"{lost}: a figure of {path} would overwrite it, expected a different file name, or "
                    "another --out"
                )
