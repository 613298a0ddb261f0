"""The report of a study."""

from __future__ import annotations

import csv
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

from altair.utils.schemapi import debug_mode

from narrows.report import folder, network, page
from narrows.report.claims import both_tallies, claim_rows, tally
from narrows.report.figure import VALIDATE, Figure
from narrows.report.kinds import draw
from narrows.report.overview import overview
from narrows.report.paper import paper_table
from narrows.report.real import agreement, side_by_side
from narrows.report.tables import Table, sentence
from narrows.results.measures import MEASURES, measure_run
from narrows.results.runs import COMPUTED, PRINTED, Run, Runs
from narrows.scenario.load import expand
from narrows.scenario.resolve import survey
from narrows.studies.choices import with_input
from narrows.studies.identical import same_in_experiment, same_in_two
from narrows.studies.load import checked, read_scenario
from narrows.studies.model import Experiment, FigureSpec, Study
from narrows.studies.readings import words_of
from narrows.studies.runner import Outcome

Say = Callable[[str], None]
OVERVIEW = "overview"
"""Section of the figure that compares algorithms in all experiments."""


def figures(outcome: Outcome) -> dict[str, list[Figure]]:
    """The overview, and the figures of each experiment that ran. Figures without data are left out."""
    drawn: dict[str, list[Figure]] = {}
    with debug_mode(VALIDATE):
        whole = overview(outcome)
        if whole is not None:
            drawn[OVERVIEW] = [whole]
        for identity in outcome.runs:
            drawn[identity] = _network(outcome.study, outcome.study.experiment(identity))
        for spec in outcome.study.figures:
            sides = [(spec, outcome.runs)]
            if outcome.real is not None:
                real = outcome.real
                sides = [
                    (_titled(spec, "", "simulation"), outcome.runs),
                    (_titled(spec, f"-{real.backend}", real.side), real.runs),
                ]
            for shown, runs in sides:
                found = _runs_of(spec, outcome, runs)
                if found:
                    figure = draw(shown, found)
                    if figure.panels:
                        drawn[spec.experiment].append(figure)
    return drawn


def _network(study: Study, experiment: Experiment) -> list[Figure]:
    """The network of an experiment's first run. Other runs may have other rates and delays."""
    if not experiment.scenario:
        return []
    scenario = checked(study, experiment, read_scenario(study.folder, experiment))
    return [network.figure(f"network-{experiment.id}", survey(expand(scenario, 1)[0].scenario))]


def _runs_of(spec: FigureSpec, outcome: Outcome, runs: dict[str, Runs]) -> Runs | None:
    """The runs that a figure shows (None: they were not run)."""
    if not spec.free:
        return runs.get(spec.experiment)
    varied = outcome.varied.get(spec.experiment, {}).get(spec.free)
    if varied is None or spec.experiment not in runs:
        return None
    return with_input(outcome.study.free_input(spec.experiment, spec.free), runs[spec.experiment], varied)


def _titled(spec: FigureSpec, suffix: str, words: str) -> FigureSpec:
    """The figure of one side, with the side's name in its id and title."""
    return spec.model_copy(update={"id": spec.id + suffix, "title": f"{spec.title} ({words})"})


def build(outcome: Outcome) -> str:
    """The report of a study as one HTML file."""
    return _page(outcome, figures(outcome))


def write(outcome: Outcome, out: Path, *, files: bool = True, say: Say = lambda _: None) -> Path:
    """Write `out`/report.html, measures and claims as CSV and, with `files`, the files of each figure."""
    drawn = figures(outcome)
    out.mkdir(parents=True, exist_ok=True)
    target = out / "report.html"
    target.write_text(_page(outcome, drawn), encoding="utf-8")
    _write_measures(outcome, out / "measures.csv")
    _write_claims(outcome, out / "claims.csv")
    if files:
        titles = {OVERVIEW: "Overview"} | {
            experiment.id: f"{experiment.id} {experiment.title}" for experiment in outcome.study.experiments
        }
        shown = [(figure, titles[identity]) for identity, group in drawn.items() for figure in group]
        folder.replace(shown, out / "figures", "study", say)
    return target


def _page(outcome: Outcome, drawn: dict[str, list[Figure]]) -> str:
    study = outcome.study
    shown = {figure.id for group in drawn.values() for figure in group}
    numbers = {identity: i + 1 for i, identity in enumerate(f.id for group in drawn.values() for f in group)}
    sections = [page.Section(OVERVIEW, "Overview", "", "", drawn[OVERVIEW])] if OVERVIEW in drawn else []
    sections += [
        page.Section(
            experiment.id,
            f"{experiment.id}  {experiment.title}",
            experiment.section,
            experiment.text,
            drawn[experiment.id],
            tables=_tables(outcome, experiment),
            remarks=_remarks(outcome, experiment),
        )
        for experiment in study.experiments
        if experiment.id in drawn
    ]
    paper = [finding for finding in outcome.findings if finding.claim.group == "paper"]
    ours = [finding for finding in outcome.findings if finding.claim.group == "ours"]
    used = {spec.args["y"] for spec in study.figures if "y" in spec.args}
    used |= {name for spec in study.figures for name, _ in _measures_of(spec)}
    used |= {claim.measure for claim in study.claims}
    used |= {column.measure for table in study.tables for column in table.columns}
    real = outcome.real
    others = real.findings if real is not None else []
    notes = [*outcome.notes, *(sentence(text) for text in same_in_two(outcome.runs))]
    if real is not None:
        notes += [
            f"{identity} was not run {real.where}: {' '.join(left_out)}"
            for identity, left_out in real.left_out.items()
            if identity not in real.runs
        ]
    if outcome.quick:
        notes.insert(
            0,
            "This is a quick run, with fewer seeds, shorter runs and fewer points than the full study. "
            "Intervals are wide, and verdicts may differ from those of the full study.",
        )
    return page.render(
        page.Page(
            study.title,
            study.summary,
            f"{study.paper.title}. {study.paper.venue}." if study.paper else "",
            sections,
            tallies=both_tallies(paper, outcome.second, study.readings),
            readings=[reading.forms for reading in study.readings],
            reading_words=words_of(study.readings),
            claims=claim_rows(paper, shown, others, outcome.second),
            own=claim_rows(ours, shown, others),
            real=agreement(outcome) if real is not None else None,
            side=real.side if real is not None else "",
            tally_real=tally([finding for finding in others if finding.claim.group == "paper"]),
            notes=notes,
            resolutions=[*study.resolutions, *_choices(study)],
            scenarios=list(outcome.scenarios.items()),
            facts=_facts(outcome),
            measures=[
                (m.title, m.unit, m.source, (m.function.__doc__ or "").strip())
                for name, m in MEASURES.items()
                if name in used
            ],
            numbers=numbers,
            warmup_s=None if outcome.on == "sim" else 0.0,
        )
    )


def _tables(outcome: Outcome, experiment: Experiment) -> list[Table]:
    specs = [spec for spec in outcome.study.tables if spec.experiment == experiment.id]
    tables = [*(paper_table(spec, outcome) for spec in specs), side_by_side(experiment, outcome)]
    return [table for table in tables if table is not None]


def _remarks(outcome: Outcome, experiment: Experiment) -> list[str]:
    """Remarks on identical runs, differences between simulation and real stacks, and missing real runs."""
    same = [sentence(text) for text in same_in_experiment(outcome.runs[experiment.id])]
    if outcome.real is None:
        return same
    return [
        *same,
        *experiment.kernel.explained,
        *outcome.real.left_out.get(experiment.id, []),
    ]


def _facts(outcome: Outcome) -> list[tuple[str, str]]:
    groups = [*outcome.runs.values(), *(runs for found in outcome.varied.values() for runs in found.values())]
    runs = [run for group in groups for run in group if not {PRINTED, COMPUTED} & run.tables.keys()]
    seeds = sorted({run.seed for run in runs})
    facts = [
        ("Narrows", outcome.version),
        ("Mode", "quick" if outcome.quick else "full"),
        ("Runs", f"{len(runs):,}"),
        ("Seeds", f"{seeds[0]} to {seeds[-1]}" if seeds else "none"),
    ]
    if outcome.on == "sim":
        facts.append(("Events", f"{outcome.events:,}"))
    else:
        facts.append((f"iperf3, {outcome.on}", f"Linux {outcome.kernel}"))
    if outcome.wall_s > 0:
        facts.append(("Simulation time", f"{outcome.wall_s:,.1f} s of one core"))
    if outcome.real is not None:
        real = [run for group in outcome.real.runs.values() for run in group]
        facts.append((f"Runs on Linux {outcome.real.kernel}", f"{len(real):,}"))
    return facts


def _write_measures(outcome: Outcome, path: Path) -> None:
    """Write a row per run and measure that a figure or claim uses, to check numbers without the page."""
    wanted: dict[str, list[tuple[str, dict[str, Any]]]] = {}
    for claim in outcome.study.claims:
        wanted.setdefault(claim.experiment, []).append((claim.measure, dict(claim.args)))
    for spec in outcome.study.figures:
        wanted.setdefault(spec.experiment, []).extend(_measures_of(spec))
    for table_ in outcome.study.tables:
        columns = [(column.measure, dict(column.args)) for column in table_.columns]
        wanted.setdefault(table_.experiment, []).extend(columns)
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            ["on", "experiment", "factors", "seed", "measure", "arguments", "unit", "value", "lower_bound"]
        )
        sides = [(outcome.on, outcome.runs)]
        if outcome.real is not None:
            sides.append((outcome.real.backend, outcome.real.runs))
        for side, found in sides:
            for identity, runs in found.items():
                unique = {(name, _text(args)): (name, args) for name, args in wanted.get(identity, [])}
                varied = outcome.varied.get(identity, {}) if runs is outcome.runs[identity] else {}
                for group in (runs, *varied.values()):
                    rows = _measure_rows(identity, group, list(unique.values()))
                    table.writerows([side, *row] for row in rows)


def _measure_rows(identity: str, runs: Runs, wanted: list[tuple[str, dict[str, Any]]]) -> list[list[Any]]:
    found = []
    for run in runs:
        for name, args in wanted:
            measured = measure_run(name, run, **args)
            value = "" if math.isnan(measured.value) else f"{measured.value:.9g}"
            found.append(
                [
                    identity,
                    _text(run.factors),
                    run.seed,
                    name,
                    _text(args),
                    MEASURES[name].unit,
                    value,
                    int(measured.censored),
                ]
            )
    return found


def _measures_of(spec: FigureSpec) -> list[tuple[str, dict[str, Any]]]:
    found = []
    for key, args in (("y", "measure"), ("y", "y_args"), ("x", "x_args")):
        name = spec.args.get(key)
        if name in MEASURES and (args in spec.args or (args == "measure" and "y_args" not in spec.args)):
            found.append((str(name), dict(spec.args.get(args, {}))))
    # A ranking has a measure for each column. A heat map's columns are names of factors.
    columns = [column for column in spec.args.get("columns", []) if isinstance(column, dict)]
    return found + [(str(column["y"]), dict(column.get("measure", {}))) for column in columns]


def _text(items: Any) -> str:
    return "; ".join(f"{key}={value}" for key, value in items.items())


def _write_claims(outcome: Outcome, path: Path) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        table = csv.writer(file)
        table.writerow(
            [
                "claim",
                "on",
                "reading",
                "group",
                "source",
                "says",
                "paper",
                "factors",
                "mean",
                "low",
                "high",
                "seeds",
                "unit",
                "verdict",
                "case_verdict",
                "why",
            ]
        )
        twofold = {finding.claim.id for finding in outcome.second}
        first, second = words_of(outcome.study.readings)
        sides = [
            (outcome.on, first if finding.claim.id in twofold else "", finding)
            for finding in outcome.findings
        ]
        sides += [(outcome.on, second, finding) for finding in outcome.second]
        if outcome.real is not None:
            sides += [(outcome.real.backend, "", finding) for finding in outcome.real.findings]
        for side, reading, finding in sides:
            claim = finding.claim
            for case in finding.cases:
                interval = case.interval
                numbers = [f"{value:.6g}" for value in (interval.mean, interval.low, interval.high)]
                table.writerow(
                    [
                        claim.id,
                        side,
                        reading,
                        claim.group,
                        claim.source,
                        claim.says,
                        claim.value,
                        _text(dict(case.factors)),
                        *numbers,
                        interval.n,
                        finding.unit,
                        finding.words,
                        finding.words_of(case.verdict),
                        case.why,
                    ]
                )


def _choices(study: Study) -> list[str]:
    """Returns a sentence on each input that the paper does not give."""
    return [
        f"{experiment.id}, {item.id}: {item.why} Ours: {item.ours}. "
        f"In full simulated studies, claims are also judged with {' and '.join(map(str, item.others))}."
        for experiment in study.experiments
        for item in experiment.free
    ]


__all__ = ["Run", "build", "figures", "write"]
