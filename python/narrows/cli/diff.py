"""The work of `narrows diff`."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

import typer
from rich.console import Console

from narrows import extras, metrics
from narrows.cli.commands.shared import say
from narrows.cli.console import plain
from narrows.cli.options import checked_seed, overrides
from narrows.cli.table import Table
from narrows.diff import DIFFERENT, Diff, Side, engines, files, parse_ask, read_side, words
from narrows.diff import diff as compare
from narrows.errors import NarrowsError, OutputError, found
from narrows.results.datasets.urls import url_of
from narrows.results.store import write_output
from narrows.scenario.load import load

CHANGED = 1
"""Exit code if a change was found."""


@dataclass(frozen=True)
class Request:
    """The runs to make with the engines of two git revisions.

    If the request has no scenarios, nothing runs, and the two sides are existing folders of results.
    """

    scenarios: Sequence[Path]
    override: Sequence[str]
    seed: int | None
    seeds: int | None
    jobs: int | None
    keep: Path | None


@dataclass(frozen=True)
class Outputs:
    """The files to write, and the form of the output."""

    as_json: bool
    every: bool
    markdown: Path | None
    page: Path | None


def diff(
    base: str,
    head: str,
    request: Request,
    measures: Sequence[str],
    confidence: float | None,
    outputs: Outputs,
    *,
    exact: bool,
) -> None:
    """Compare two sides, print the changes, and exit with 1 if anything changed."""
    confidence = metrics.CONFIDENCE if confidence is None else confidence
    if not 0.5 <= confidence < 1:
        raise NarrowsError(f"--confidence: found {found(confidence)}, expected at least 0.5 and less than 1")
    if outputs.page is not None:
        if outputs.page.suffix.lower() != ".html":
            raise OutputError(
                f"--out: found {found(outputs.page.name)}, expected a name that ends with .html"
            )
        extras.require("report", "diff --out")
    asks = [parse_ask(text) for text in measures]
    with _sides(base, head, request) as (first, second):
        result = compare(first, second, asks, confidence)
    if outputs.page is not None:
        from narrows.diff.page import render  # noqa: PLC0415 (charts take a second to load)

        write_output(outputs.page, render(result))
    if outputs.markdown is not None:
        write_output(outputs.markdown, files.markdown(result))
    if outputs.as_json:
        print(json.dumps(files.as_data(result), indent=2, allow_nan=False))
    else:
        show(result, plain(), every=outputs.every)
        if outputs.page is not None:
            print(f"page in {outputs.page}")
    if result.is_changed or (exact and not result.is_identical):
        raise typer.Exit(CHANGED)


@contextmanager
def _sides(base: str, head: str, request: Request) -> Iterator[tuple[Side, Side]]:
    """The results of both sides.

    Results that this call makes for git revisions are removed at the end, unless `request.keep` names a
    folder for them.
    """
    if not request.scenarios:
        for option, value in (
            ("--seed", request.seed),
            ("--seeds", request.seeds),
            ("--set", request.override or None),
            ("--jobs", request.jobs),
            ("--keep", request.keep),
        ):
            if value is not None:
                raise NarrowsError(
                    f"{option}: found no --scenario, expected one, because this option applies only to runs"
                )
        yield read_side(Path(base), url_of(base) or ""), read_side(Path(head), url_of(head) or "")
        return
    if request.seed is not None:
        checked_seed(request.seed)
    changed = overrides(list(request.override), request.seed)
    names = [load(path, changed).name for path in request.scenarios]
    for name in names:
        if names.count(name) > 1:
            raise NarrowsError(f"--scenario: found two scenarios named {name}, expected different names")
    keep = request.keep
    # The folder must be empty, because all results in it are read as results of this call.
    if keep is not None and keep.exists() and (not keep.is_dir() or any(keep.iterdir())):
        raise NarrowsError(f"--keep: found {found(str(keep))}, expected a new or empty folder")
    clone = engines.find_clone(Path.cwd())
    commits = [engines.find_commit(clone, revision) for revision in (base, head)]
    built = [engines.build(clone, commit, say) for commit in commits]
    options = engines.Options(tuple(request.override), request.seed, request.seeds, request.jobs)
    with TemporaryDirectory(prefix="narrows-diff-") as temporary:
        folder = request.keep or Path(temporary)
        sides = []
        for side, revision, commit, engine in zip(
            ("base", "head"), (base, head), commits, built, strict=True
        ):
            for name, path in zip(names, request.scenarios, strict=True):
                say(f"running {path} with {revision}")
                engine.run(path, folder / side / name, options)
            sides.append(read_side(folder / side, f"{revision} ({commit[:8]})"))
        yield sides[0], sides[1]


def show(result: Diff, console: Console, *, every: bool) -> None:
    """Print the changed figures (`every`: all figures), and notes about the runs and the statistics."""
    rows = [
        (part, item) for part in result.parts for item in part.compared if every or item.outcome in DIFFERENT
    ]
    console.print(f"BASE: {result.base}, HEAD: {result.head}")
    if rows:
        factors = list(dict.fromkeys(name for _, item in rows for name in item.series.factors))
        several = any(part.name for part, _ in rows) and len(result.parts) > 1
        table = Table()
        for name in [*(["scenario"] if several else []), *factors, "flow or link", "figure"]:
            table.add_name(name)
        for heading in ("base", "head", "change %"):
            table.add_figure(heading)
        table.add_text(f"{words.percent(result.confidence)} interval")
        table.add_figure("p")
        table.add_text("outcome")
        for part, item in rows:
            at = item.series.factors
            table.add_row(
                *([part.name] if several else []),
                *(words.factor_text(at, factor) for factor in factors),
                words.entity(item),
                *words.cells(item),
            )
        table.print(console)
    console.print(words.headline(result))
    for note in words.notes(result):
        console.print(note)
