"""The work of `narrows export`."""

from __future__ import annotations

import copy
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from narrows.errors import NarrowsError, OutputError, choice
from narrows.export import flent, perfetto, qlog
from narrows.export.run import Exported
from narrows.results.arrow import integers
from narrows.results.by_run import read_runs
from narrows.results.datasets.urls import require_folder, url_of
from narrows.results.results import METADATA, Results
from narrows.results.store import write_output
from narrows.results.tables import cannot_write
from narrows.scenario.load import override

FORMATS: dict[str, Callable[[Exported], dict[str, bytes]]] = {
    "perfetto": perfetto.files,
    "flent": flent.files,
    "qlog": qlog.files,
}


def export(form: str, results: Path, wanted: Collection[int], out: Path | None) -> None:
    """Write the files of all runs, or of the runs with the wanted numbers."""
    if form not in FORMATS:
        raise NarrowsError(f"FORMAT: {choice(form, FORMATS)}")
    if out is None and (url := url_of(results)) is not None:
        raise OutputError(f"--out: found nothing, expected a folder for the files of {url}")
    if out is not None:
        require_folder(out, "--out")
    read = Results.read(results)
    folder = out or results / form
    known = integers(read.runs["run"]).tolist()
    for number in wanted:
        if number not in known:
            expected = f"a run of {results}, {min(known)} to {max(known)}"
            raise NarrowsError(f"--run: found {number}, expected {expected}")
    if out is None and not wanted:
        _remove_earlier(folder)
    written = 0
    for exported in _runs(read):
        if wanted and exported.number not in wanted:
            continue
        for name, content in FORMATS[form](exported).items():
            _make(folder)
            write_output(folder / name, content)
            written += 1
    if not written:
        raise NarrowsError(f"{results}: found no flow to export as {form}, expected one with samples")
    print(f"{written} file{'s' * (written != 1)} in {folder}")


def _make(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise cannot_write(folder, error) from None


def _remove_earlier(folder: Path) -> None:
    """Remove the files of an earlier export, which may have exported other results."""
    for path in folder.glob("run-*"):
        try:
            path.unlink()
        except OSError as error:
            raise cannot_write(path, error) from None


def _runs(results: Results) -> Iterator[Exported]:
    date = (results.folder / METADATA).stat().st_mtime if results.folder is not None else 0.0
    rows = results.runs.to_pylist()
    entries = results.metadata.get("entries", [])
    for row, run in zip(rows, read_runs(results), strict=True):
        yield Exported(int(row["run"]), run, _scenario(results.metadata, row), entries, date)


def _scenario(metadata: Mapping[str, Any], row: Mapping[str, Any]) -> Mapping[str, Any]:
    """The scenario, with the segment sizes (`mss`) that the run's factors set."""
    scenario: dict[str, Any] = copy.deepcopy(metadata.get("scenario", {}))
    changes = {key: value for key, value in row.items() if value is not None}
    for case in (scenario.get("sweep") or {}).get("case", []):
        if case.get("name") == row.get("case"):
            changes |= case.get("set", {})
    for key, value in changes.items():
        if key.startswith("flows.") and key.endswith(".mss"):
            override(scenario, key, int(value))
    return scenario
