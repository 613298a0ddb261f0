"""The work of `narrows study`."""

from __future__ import annotations

import re
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

import typer
from rich.console import Console
from rich.text import Text

from narrows import extras, sweep
from narrows.backends import Performs
from narrows.cli import options as cli_options
from narrows.cli.commands.shared import INTERRUPTED, On, say
from narrows.cli.console import plain
from narrows.cli.run import real_stacks, say_stopped
from narrows.cli.table import Table
from narrows.data.folder import existing_folder
from narrows.errors import NarrowsError, found
from narrows.executors import Executor
from narrows.results.datasets.urls import require_folder
from narrows.signals import terminable
from narrows.studies.judge import Finding, Verdict
from narrows.studies.load import find_study, known_studies, load_study
from narrows.studies.model import Study
from narrows.studies.published import published, run_published
from narrows.studies.readings import by_reading, words_of
from narrows.studies.real import run_on_both
from narrows.studies.replaced import replaced
from narrows.studies.runner import Outcome, Real, Say, chosen, run_study

if TYPE_CHECKING:
    from narrows.cache import Cached


class _Options(TypedDict):
    """The options that all kinds of runs of a study have."""

    quick: bool
    only: list[str]
    seeds: int | None
    jobs: int | None
    reuse: bool
    say: Say


_STYLE = {Verdict.REPRODUCED: "green", Verdict.NOT_REPRODUCED: "red", Verdict.UNJUDGED: "yellow"}


def study(
    name: str | None,
    out: Path | None,
    only: list[str],
    seeds: int | None,
    jobs: int | None,
    executor: str,
    on: On,
    data: Path | None,
    *,
    quick: bool,
    reuse: bool,
    figures: bool,
    as_published: bool = False,
    simulator: Cached | None = None,
    replace: str | None = None,
) -> None:
    """Run a study, write its report and print the verdicts; list the studies if `name` is None."""
    if name is None:
        console = plain()
        for known in known_studies():
            console.print(f"{known}: {load_study(find_study(known)).title}")
        return
    if out is not None:
        require_folder(out, "--out", "a study also writes pages and figures")
    loaded = load_study(find_study(name))
    if replace is not None:
        loaded = _with(loaded, replace, on)
    if as_published and on is On.SIM:
        raise NarrowsError(f"--as-published: found --on {on}, expected --on kernel or vm")
    if data is not None and on is not On.SIM:
        raise NarrowsError(
            f"--data: found --on {on}, expected --on sim, because only simulations use recorded traces"
        )
    # Check the extra's modules before the runs, because runs take long.
    extras.require("report", "study")
    # Import drawing libraries late: they are slow, and `narrows --help` does not need them.
    from narrows.report import write  # noqa: PLC0415

    named = _folder(loaded, quick, on, as_published, replace or "")
    folder = out if out is not None else Path("results") / named
    maker = cli_options.executor(executor, jobs, on)
    options = _Options(quick=quick, only=only, seeds=seeds, jobs=jobs, reuse=reuse, say=say)
    try:
        with terminable():
            outcome = _run(loaded, folder, on, existing_folder(data), as_published, maker, simulator, options)
    except KeyboardInterrupt as stopped:  # includes sweep.Interrupted, whose text has the progress
        came = f": {stopped}" if isinstance(stopped, sweep.Interrupted) else ""
        kept = "transfers and attempts" if as_published else "experiments"
        say(f"interrupted{came}; --reuse continues after the finished {kept}")
        if isinstance(stopped, sweep.Interrupted):
            say_stopped(stopped)
        raise typer.Exit(INTERRUPTED) from None
    report = write(outcome, folder, files=figures, say=say)
    _show(outcome, plain())
    print(f"report in {report}")
    cli_options.say_cached(simulator)


def _with(loaded: Study, replace: str, on: On) -> Study:
    """The study after the replacement of an algorithm (`--replace`)."""
    old, sign, new = replace.partition("=")
    if not (old and sign and new):
        raise NarrowsError(f"--replace: found {found(replace)}, expected OLD=NEW, such as bbr3=mine.py:Bbr")
    if on is not On.SIM:
        raise NarrowsError(f"--replace: found --on {on}, expected --on sim")
    return replaced(loaded, old, new)


def _folder(loaded: Study, quick: bool, on: On, as_published: bool, replace: str) -> str:
    slug = re.sub(r"[^\w.-]+", "-", replace)
    parts = ["as-published"] * as_published + [str(on)] * (on is not On.SIM) + ["quick"] * quick
    return "-".join([loaded.id, *([slug] if slug else []), *parts])


def _run(
    loaded: Study,
    folder: Path,
    on: On,
    data: Path | None,
    as_published: bool,
    executor: Executor | None,
    simulator: Cached | None,
    options: _Options,
) -> Outcome:
    """Run the study in the simulator, or both on real stacks and in the simulator, or as published."""
    # Validate names before booting a guest.
    if as_published:
        published(loaded, options["only"])
    else:
        chosen(loaded, options["only"])
    backend = real_stacks(on)
    if backend is None:
        return run_study(loaded, folder, data=data, executor=executor, backend=simulator, **options)
    if not as_published:
        return run_on_both(loaded, folder, backend, **options)
    assert isinstance(backend, Performs)
    return run_published(loaded, folder, backend, **options)


def _show(outcome: Outcome, console: Console) -> None:
    """Print the verdicts as a table."""
    table = Table()
    table.add_name("claim")
    headings = ["says", "paper", "verdict"]
    readings = outcome.study.readings
    headings += [words_of(readings)[1]] if outcome.second else []
    headings += [outcome.real.where] if outcome.real else []
    for heading in headings:
        table.add_text(heading)
    second = {finding.claim.id: finding for finding in outcome.second}
    others = {finding.claim.id: finding for finding in outcome.real.findings} if outcome.real else {}
    for finding in outcome.findings:
        cells = [_verdict(finding)]
        if second:
            cells.append(_verdict(second.get(finding.claim.id)))
        if outcome.real:
            cells.append(_verdict(others.get(finding.claim.id)))
        table.add_row(finding.claim.id, finding.claim.says, finding.claim.value, *cells)
    table.print(console)
    for reading, group in by_reading(outcome.findings, outcome.second, readings):
        if group:
            verdicts = Counter(finding.verdict for finding in group)
            counts = ", ".join(f"{verdicts[verdict]} {verdict.value}" for verdict in Verdict)
            console.print(f"claims of the paper{f', {reading}' if reading else ''}: {counts}")
    for note in outcome.notes:
        console.print(note)
    if outcome.real:
        _show_real(outcome.real, console)


def _verdict(finding: Finding | None) -> Text:
    if finding is None:
        return Text()
    why = "; ".join(filter(None, [finding.grade, finding.why]))
    return Text.assemble((finding.words, _STYLE[finding.verdict]), "\n", (why, "dim"))


def _show_real(real: Real, console: Console) -> None:
    """Print for each experiment how real stacks agree with the simulation, and the parts that did not run."""
    for identity, comparison in real.comparisons.items():
        judged = sum(pair.judged for pair in comparison.pairs)
        within = judged - len(comparison.large)
        doubtful = sum(bool(run.doubts) for run in real.runs[identity])
        doubts = f"; do not trust {doubtful} of {len(real.runs[identity])} runs" if doubtful else ""
        console.print(f"{identity}: {within} of {judged} figures within their tolerance{doubts}")
    for identity, sentences in real.left_out.items():
        for sentence in sentences:
            console.print(f"{identity}: {sentence}")
