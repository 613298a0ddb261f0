"""The work of `narrows export`."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator
from pathlib import Path

from narrows.errors import NarrowsError, OutputError
from narrows.export import flent, perfetto, qlog
from narrows.export.run import Exported
from narrows.results.arrow import integers
from narrows.results.by_run import read_runs
from narrows.results.datasets.urls import url_of
from narrows.results.results import METADATA, Results
from narrows.results.store import write_output
from narrows.results.tables import cannot_write

FORMATS: dict[str, Callable[[Exported], dict[str, bytes]]] = {
    "perfetto": perfetto.files,
    "flent": flent.files,
    "qlog": qlog.files,
}


def export(format_: str, results: Path, wanted: Collection[int], out: Path | None) -> None:
    """Write the files of all runs, or of those with the wanted numbers."""
    if out is None and (url := url_of(results)) is not None:
        raise OutputError(f"--out: found nothing, expected a folder for the files of {url}")
    read = Results.read(results)
    folder = out or results / format_
    chosen = [exported for exported in _runs(read) if not wanted or exported.number in wanted]
    known = integers(read.runs["run"]).tolist()
    for number in wanted:
        if number not in known:
            raise NarrowsError(f"--run: found {number}, expected a run of {results}, 0 to {max(known)}")
    written = 0
    for exported in chosen:
        for name, content in FORMATS[format_](exported).items():
            _make(folder)
            write_output(folder / name, content)
            written += 1
    if not written:
        raise NarrowsError(f"{results}: found no flow to export as {format_}, expected one with samples")
    print(f"{written} file{'s' * (written != 1)} in {folder}")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from None


def _runs(results: Results) -> Iterator[Exported]:
    date = (results.folder / METADATA).stat().st_mtime if results.folder is not None else 0.0
    numbers = integers(results.runs["run"]).tolist()
    for number, run in zip(numbers, read_runs(results), strict=True):
        yield Exported(number, run, results.metadata.get("scenario", {}), date)
