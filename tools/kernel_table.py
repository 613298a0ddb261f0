"""Fills the table of docs/explanation/kernel-vs-simulation.md from `narrows study brf --on kernel`.

narrows study brf --on kernel --out results/brf-kernel && python tools/kernel_table.py results/brf-kernel
"""

import sys
from pathlib import Path

from narrows import markdown
from narrows.report.style import look
from narrows.results.compare import TOLERANCES, Pair, compare
from narrows.results.factors import factor
from narrows.results.figures import HEADINGS
from narrows.results.results import Results
from narrows.studies import find_study, load_study
from narrows.studies.model import Experiment
from pages import fill

PAGE = Path(__file__).resolve().parent.parent / "docs" / "explanation" / "kernel-vs-simulation.md"
FIGURES = {"goodput_bps": "goodput", "rtt_mean_s": "mean RTT"}
"""Figures of a flow."""
HEAD = ["experiment", "case", "flow"]
HEAD += [head for title in FIGURES.values() for head in (f"{title}, simulated", "kernel", "difference")]


def point(pair: Pair, experiment: Experiment) -> str:
    """The factors of a point in words."""
    names = {key: name for name, key in experiment.factors.items()}
    words = []
    for key, value in pair.factors.items():
        name, found = names.get(key), factor(value)
        if name == "algorithm":
            words.append(look(str(found)).label)
        elif name == "loss" and isinstance(found, float):
            words.append(f"{100 * found:g} % loss")
        elif name == "buffer" and isinstance(found, float):
            words.append(f"{found:,.0f} packets")
    return ", ".join(words)


def cells(pair: Pair) -> list[str]:
    """The values of simulator and kernel, and their difference. It is bold if it exceeds the tolerance."""
    difference = f"{100 * pair.difference:+.1f} %".replace("+0.0", "0.0").replace("-0.0", "0.0")
    if pair.judged and not pair.a and pair.b:
        difference = "from 0"
    if pair.large:
        difference = f"**{difference}**"
    size = HEADINGS[pair.figure].size
    return [f"{pair.a / size:.1f}", f"{pair.b / size:.1f}", difference]


def table(results: Path) -> tuple[str, str]:
    """The table as Markdown, and how many of its figures are within the tolerance."""
    study, lines, every = load_study(find_study("brf")), [], []
    for folder in sorted((results / "kernel").iterdir()):
        experiment = study.experiment(folder.name)
        found = compare(Results.read(results / "sim" / folder.name), Results.read(folder))
        rows: dict[tuple[str, str], dict[str, Pair]] = {}
        for pair in found.pairs:
            if pair.entity == "flow" and pair.figure in FIGURES:
                rows.setdefault((point(pair, experiment), pair.name), {})[pair.figure] = pair
        for (words, flow), pairs in rows.items():
            both = [cell for figure in FIGURES for cell in cells(pairs[figure])]
            lines.append([experiment.id, words, flow, *both])
            every.append(pairs)
    counts = []
    for figure in FIGURES:
        near = sum(not pairs[figure].large for pairs in every)
        counts.append(f"{figure}: {near} of {len(every)} within {100 * TOLERANCES[figure]:g} %")
    return markdown.table(HEAD, lines, "lllr"), "; ".join(counts)


def main() -> None:
    """Fills the page, and prints how many figures are within the tolerance."""
    made, counts = table(Path(sys.argv[1]))
    PAGE.write_text(fill(PAGE.read_text(encoding="utf-8"), "kernel", f"{made}\n"), encoding="utf-8")
    print(counts)


if __name__ == "__main__":
    main()
