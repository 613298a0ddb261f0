"""Fills the tables of docs/explanation/survey.md from `narrows study survey`, simulated or `--on vm`.

narrows study survey --out results/survey && python tools/survey_table.py results/survey
"""

import csv
import statistics
import sys
from collections import defaultdict
from pathlib import Path

from narrows import markdown
from narrows.report.kinds.ranking import Place, places
from narrows.report.style import look
from narrows.results.by_run import read_runs
from narrows.results.results import Results
from narrows.studies import Runs, find_study, load_study
from pages import fill

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "survey.md"
FIGURES = {
    "S2": "alone-ranking",
    "S2-loss": "alone-by-loss",
    "S3": "beside-ranking",
    "S3-loss": "beside-by-loss",
    "S4": "fast-ranking",
    "S4-loss": "fast-by-loss",
    "S5": "fast-beside-ranking",
}
"""For each part of the page, the study's figure with the ranking.

The name of a part begins with the id of an experiment. Some names continue with a hyphen and a factor.
"""
PLUS_MINUS = "\N{PLUS-MINUS SIGN}"


def runs_of(results: Path, experiment: str) -> Runs:
    """The results of an experiment of the survey."""
    study = load_study(find_study("survey"))
    return read_runs(Results.read(results / "results" / experiment), study.experiment(experiment).factors)


def experiment_of(part: str) -> str:
    """The experiment whose results fill a part of the page."""
    return part.partition("-")[0]


def cell(place: Place) -> str:
    """A mean, its interval, and the places in the ranking that the interval allows."""
    mean, half = place.interval.mean, place.interval.half_width
    digits = 1 if abs(mean) >= 10 else 2 if abs(mean) >= 1 else 3
    where = f"{place.best}" if place.best == place.worst else f"{place.best}-{place.worst}"
    return f"{mean:.{digits}f} {PLUS_MINUS} {half:.{digits}f} ({where})"


def table(results: Path, part: str) -> str:
    """A ranking as Markdown, sorted by its first figure. Each figure has its interval and places."""
    study = load_study(find_study("survey"))
    (spec,) = [figure for figure in study.figures if figure.id == FIGURES[part]]
    runs = runs_of(results, experiment_of(part))
    columns = spec.args["columns"]
    ranked = [places(runs, column, spec.args.get("without", [])) for column in columns]
    titles = [
        TITLES.get(str(column["y"]), "") if "title" not in column else column["title"] for column in columns
    ]
    rows = []
    for place in ranked[0]:
        cells = [
            next((cell(other) for other in column if other.algorithm == place.algorithm), "-")
            for column in ranked
        ]
        rows.append([look(place.algorithm).label, *cells])
    return markdown.table(["", *titles], rows, "lr")


REAL = (
    ("S2", "loss=0.0", "goodput", "", "alone, Mbit/s"),
    ("S2", "loss=0.0", "rtt", "", "RTT, ms"),
    ("S2", "loss=0.01", "goodput", "", "1 % loss, Mbit/s"),
    ("S3", "loss=0.0", "share", "of=tested", "share against CUBIC"),
)
"""Columns of the table for real stacks: experiment, point, measure and its arguments, and heading."""


def beside_real(measures: Path) -> str:
    """A table with the means of real runs next to the means and ranges of simulated runs."""
    found: dict[tuple[str, ...], list[float]] = defaultdict(list)
    with measures.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            controller, *_, loss = row["factors"].split("; ")
            key = (row["experiment"], loss, row["measure"], row.get("arguments", ""))
            found[(controller.partition("=")[2], row["on"], *key)].append(float(row["value"]))
    names = sorted({key[0] for key in found if key[1] != "sim"} - {"alone"})
    heads = ["", *(head for *_, title in REAL for head in (f"{title}: Linux", "simulated"))]
    rows = []
    for name in names:
        cells = []
        for *key, _ in REAL:
            real, simulated = found.get((name, "vm", *key)), found.get((name, "sim", *key))
            if not real or not simulated:
                cells += ["-", "-"]
                continue
            mean, low, high = statistics.mean(simulated), min(simulated), max(simulated)
            digits = 2 if high <= 1 else 1
            cells.append(f"{statistics.mean(real):.{digits}f}")
            cells.append(f"{mean:.{digits}f} ({low:.{digits}f} to {high:.{digits}f})")
        rows.append([look(name).label, *cells])
    return markdown.table(heads, rows, "lr")


TITLES = {
    "normalised_power": "power",
    "goodput": "goodput, Mbit/s",
    "queueing_delay": "RTT above the empty path's, mean, ms",
    "drop_rate": "dropped, %",
    "jain": "Jain's index",
}


def main() -> None:
    """Fills the page with the experiments that were run."""
    text = PAGE.read_text(encoding="utf-8")
    for part in FIGURES:
        if (Path(sys.argv[1]) / "results" / experiment_of(part) / "runs.parquet").is_file():
            text = fill(text, part, f"{table(Path(sys.argv[1]), part)}\n")
    if (Path(sys.argv[1]) / "vm").is_dir():
        text = fill(text, "vm", f"{beside_real(Path(sys.argv[1]) / 'measures.csv')}\n")
    PAGE.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
