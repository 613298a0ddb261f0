"""The page of the docs about a validation: method, errors and their causes. All functions are pure."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from narrows import markdown
from narrows.report.style import look
from narrows.validate import causes as known_causes
from narrows.validate import grid, judge, measures
from narrows.validate.causes import Cause
from narrows.validate.runner import Finding, Outcome

_COMPARED = (*judge.TARGETS, "window")
"""Figures with a table of their own."""
_METHOD = Path(__file__).with_name("method.md")
"""The first part of the page, with placeholders for the measurements."""
_NS3 = Path(__file__).with_name("ns3") / "method.md"
"""The description of the method for ns-3. The page contains it if ns-3 was measured."""


@dataclass(frozen=True)
class Picture:
    """A figure on the page."""

    file: str
    """Path of the file, relative to the page's folder."""
    caption: str


def render(
    outcome: Outcome,
    causes: Sequence[Cause],
    release: str,
    other: str = "",
    picture: Picture | None = None,
    overview: Picture | None = None,
) -> str:
    """The page in Markdown.

    Args:
        outcome: results of the runs.
        causes: explanations of large errors.
        release: version of Narrows.
        other: name and version of the other simulator (empty: none).
        picture: figure of windows under the same losses, if any.
        overview: figure of the errors of all cells, if any.
    """
    findings = outcome.findings
    parts = [_head(outcome, release, other), "## Results", _verdicts(findings)]
    if picture:
        parts += ["### Under the same losses", _SAME.format(file=picture.file, caption=picture.caption)]
    parts += ["### By flows on the bottleneck", _KINDS, _by_kind(findings, bool(other))]
    parts += ["### By algorithm", _TELLS, _medians(findings, bool(other))]
    if overview:
        parts += [f"{overview.caption}\n\n![Errors of each algorithm in each cell]({overview.file})"]
    parts += [f"### Beyond {judge.BEYOND}", _large(findings, causes)]
    for figure, title in zip(
        _COMPARED, ("Goodput: error", "Mean RTT: error", "Window distance"), strict=True
    ):
        parts += [f"### {title}, cell by cell", _UNITS.format(what=title), _matrix(findings, figure)]
    if outcome.failed:
        why = [f"- `{name}`: {reason}" for name, reason in outcome.failed.items()]
        parts += ["### Not counted", "\n".join(why)]
        if outcome.marked:
            parts += [_MARKED, _counted_out(outcome.marked)]
    return "\n\n".join(parts) + "\n"


_SAME = (
    "A single flow loses the same packets on both sides, so its window can be compared directly. "
    "{caption} The figure shows the first seconds after the warm-up. No parameter is fitted.\n\n"
    "![The window of each algorithm over time, on Linux and simulated]({file})"
)
_TELLS = (
    "Medians of the absolute errors over the tested flows of all cells, in percent. "
    "*Worst* is the largest error in goodput, with its cell."
)
_MARKED = (
    "Figures of the disturbed runs, and of the simulator in the same cells. A disturbed run may be right, "
    "but its figures do not depend on the algorithm alone. The medians exclude these runs."
)
_UNITS = "{what} in percent. A dash means that the algorithm was not run or the figure is not defined."
_KINDS = (
    "Medians of the absolute errors, in percent. A single flow is one reproducible experiment. A run of two "
    "flows is one of many possible runs, so the error of a median over a few real runs is partly chance."
)


def _head(outcome: Outcome, release: str, other: str) -> str:
    ask, findings = outcome.ask, outcome.findings
    groups = judge.by_algorithm(findings)
    counts = {name: len({f.cell.name for f in rows}) for name, rows in groups.items()}
    most = max(counts.values(), default=0)
    fewer = ", ".join(f"{look(n).label} {count}" for n, count in counts.items() if count < most)
    unsound = sum(outcome.unsound.values())
    total = len(grid.full())
    missing = "all of them were run" if most == total else f"the other {total - most} were **not run**"
    return (
        _METHOD.read_text(encoding="utf-8")
        .format(
            dates=" to ".join(outcome.dates) or "unknown",
            kernels=", ".join(f"Linux {kernel}" for kernel in outcome.kernels) or "an unknown kernel",
            backend=outcome.backend,
            release=release,
            other=f"; for comparison {other}" if other else "",
            ns3=_beside(findings) if other else "",
            repetitions=_span(f.real.runs for f in findings),
            seeds=ask.seeds,
            duration=ask.duration,
            algorithms=", ".join(look(name).label for name in groups) or "none",
            cells=most,
            full=total,
            most="each algorithm" if not fewer else f"most algorithms (fewer: {fewer})",
            missing=missing,
            levels=_levels(findings),
            beyond=judge.BEYOND,
            command=_command(outcome, bool(other)),
            unsound=f"| disturbed runs, left out | {unsound} |\n" if unsound else "",
        )
        .rstrip()
    )


def _beside(findings: Sequence[Finding]) -> str:
    """The method for ns-3, and the number of its crashes."""
    ran = {(f.algorithm, f.cell.name): f.other.runs if f.other else 0 for f in findings}
    most = max(ran.values(), default=0)
    text = "\n" + _NS3.read_text(encoding="utf-8").rstrip()
    crashed = sum(most - runs for runs in ran.values())
    if crashed:
        who = ", ".join(dict.fromkeys(look(name).label for (name, _), runs in ran.items() if runs < most))
        text += f"\n  {crashed} of its {most * len(ran)} runs are missing: ns-3 crashed ({who})."
    return text


def _levels(findings: Sequence[Finding]) -> str:
    """For each factor, the levels that were run."""
    cells = {finding.cell for finding in findings}
    factors: dict[str, set[float]] = {
        "{} Mbit/s": {cell.rate for cell in cells},
        "RTT {} ms": {cell.rtt for cell in cells},
        "{} BDP": {cell.buffer for cell in cells},
        "loss {} %": {cell.loss for cell in cells},
    }
    said = [
        words.format(", ".join(f"{level:g}" for level in sorted(each))) for words, each in factors.items()
    ]
    kinds = [kind for kind in grid.Flows if kind in {cell.flows for cell in cells}]
    return "; ".join([*said, f"flows {', '.join(kinds)}"])


def _command(outcome: Outcome, other: bool) -> str:
    """The command that produced the outcome of this page."""
    ask = outcome.ask
    subset = next((name for name, cells in grid.SUBSETS.items() if set(cells()) == set(ask.cells)), "")
    cells = f"--cells {subset or ','.join(cell.name for cell in ask.cells)}"
    measure = ("sudo " if outcome.backend == "kernel" else "") + f"narrows validate --on {outcome.backend}"
    seeds, length = f"--seeds {ask.seeds}", f"--duration {ask.duration}"
    rest = "--ns3 " * other + "--write docs/explanation/validation.md"
    if not outcome.recorded:
        return _wrapped(measure, cells, f"--repetitions {ask.repetitions} {seeds} {length}", rest)
    repetitions = max((f.real.runs for f in outcome.findings), default=1)
    first = _wrapped(measure, cells, f"--repetitions {repetitions} {length} --record FILE")
    second = _wrapped("narrows validate --on recorded --recording FILE", cells, seeds, rest)
    return f"{first}   # hours\n$ {second}"


def _wrapped(*words: str) -> str:
    return " \\\n    ".join(words)


def _span(numbers: Iterable[int]) -> str:
    """One number if all numbers are equal, else the smallest and the largest number."""
    each = sorted(set(numbers)) or [0]
    return str(each[0]) if len(each) == 1 else f"{each[0]} to {each[-1]}"


def _verdicts(findings: list[Finding]) -> str:
    rows = []
    for verdict in judge.verdicts(findings):
        who = f" ({look(verdict.worst).label})" if verdict.worst else ""
        met = "met" if verdict.met else "**missed**"
        rows.append([verdict.words + who, judge.percent(verdict.target), judge.percent(verdict.found), met])
    lines = [markdown.table(["target", "at most", "found", ""], rows, "lrrl")]
    inside = [judge.within(finding, "goodput_bps") for finding in findings if not finding.cell.same_losses]
    if inside:
        lines += [
            "",
            f"For {len(inside)} flows, the lost packets can differ between the simulator and the real stacks "
            f"(all flows except single flows with random loss). For {sum(inside)} of these flows, the median "
            "goodput of the real runs is within the range of the simulated runs.",
        ]
    chance = [f for f in findings if f.cell.loss and not f.cell.same_losses]
    alike = measures.median(judge.same_seeds(finding, "goodput_bps") for finding in chance)
    if not math.isnan(alike):
        lines += [
            "",
            f"With random loss and two flows ({len(chance)} figures), the median error in goodput is "
            f"{judge.percent(judge.size(chance, 'goodput_bps'))}. With only those simulated runs that have "
            f"the same seeds as the real runs, the median error is {judge.percent(alike)}. All algorithms "
            "share these few seeds, so the errors of the algorithms tend to have the same sign.",
        ]
    return "\n".join(lines)


def _by_kind(findings: list[Finding], other: bool) -> str:
    figures = [(figure, judge.TITLES[figure]) for figure in _COMPARED]
    heads = ["", "flows", *(title for _, title in figures)]
    heads += [f"ns-3: {title}" for _, title in figures] if other else []
    lines = []
    kinds: dict[str, list[Finding]] = {}
    for finding in findings:
        words = f"`{finding.cell.flows}`" + (f", {finding.flow}" if len(finding.cell.tested) > 1 else "")
        kinds.setdefault(words, []).append(finding)
    for words, rows in kinds.items():
        cells = [words, str(len(rows)), *(_bare(judge.size(rows, figure)) for figure, _ in figures)]
        if other:
            cells += [_bare(measures.median(abs(f.other_errors[key]) for f in rows)) for key, _ in figures]
        lines.append(cells)
    return markdown.table(heads, lines, "lr")


def _medians(findings: list[Finding], other: bool) -> str:
    heads = ["algorithm", "flows", *judge.TITLES.values(), "worst"]
    heads += [f"ns-3: {judge.TITLES[figure]}" for figure in _COMPARED] if other else []
    lines = []
    for name, rows in {**judge.by_algorithm(findings), "": findings}.items():
        worst = max(rows, key=_goodput_error)
        cells = [look(name).label if name else "**all**", str(len(rows))]
        cells += [_bare(judge.size(rows, figure)) for figure in judge.TITLES]
        cells.append(f"{_bare(worst.errors['goodput_bps'], sign=True)} `{_where(worst)}`")
        if other:
            for figure in _COMPARED:
                cells.append(_bare(measures.median(abs(f.other_errors[figure]) for f in rows)))
        lines.append(cells)
    return markdown.table(heads, lines, "lr")


def _large(findings: list[Finding], causes: Sequence[Cause]) -> str:
    large = judge.large(findings)
    if not large:
        return f"No error in goodput or mean RTT is larger than {judge.BEYOND}."
    rows = []
    found: list[Cause] = []
    for finding, figure, error in large:
        scale, unit = (1e6, "Mbit/s") if figure == "goodput_bps" else (1e-3, "ms")
        low, high = (value / scale for value in finding.real.range(figure))
        real = f"{finding.real.median(figure) / scale:.2f} {unit} ({low:.2f} to {high:.2f})"
        least, most = (value / scale for value in finding.model.range(figure))
        simulated = f"{finding.model.median(figure) / scale:.2f} ({least:.2f} to {most:.2f})"
        alike = finding.model.of(finding.real.seeds).median(figure)
        same = "-" if math.isnan(alike) else f"{alike / scale:.2f}"
        cause = known_causes.find(list(causes), finding, figure)
        if cause is not None and cause not in found:
            found.append(cause)
        said = "**not explained**" if cause is None else str(found.index(cause) + 1)
        what = [look(finding.algorithm).label, f"`{_where(finding)}`", judge.TITLES[figure]]
        cells = [*what, real, simulated, same]
        rows.append([*cells, _bare(error, sign=True) + " %", said])
    heads = ["algorithm", "cell", "figure", "real", "simulated", "same seeds", "error", "cause"]
    lines = [markdown.table(heads, rows, "lllrrrrl")]
    if found:
        lines += ["", "Causes, with the evidence for them:", ""]
    lines += [f"{i}. {each.cause}. *{each.known}.*" for i, each in enumerate(found, start=1)]
    return "\n".join(lines)


def _counted_out(findings: list[Finding]) -> str:
    """A table that compares the disturbed runs with the simulator."""
    rows = []
    for finding in findings:
        cells = [look(finding.algorithm).label, f"`{_where(finding)}`"]
        for figure, scale in (("goodput_bps", 1e6), ("rtt_mean_s", 1e-3)):
            cells.append(f"{finding.real.median(figure) / scale:.2f}")
            cells.append(f"{_bare(finding.errors[figure], sign=True)} %")
        rows.append(cells)
    heads = ["algorithm", "cell", "real, Mbit/s", "error", "real mean RTT, ms", "error"]
    return markdown.table(heads, rows, "llr")


def _matrix(findings: list[Finding], figure: str) -> str:
    """A table of cells by algorithms."""
    names = list(judge.by_algorithm(findings))
    places: dict[str, dict[str, float]] = {}
    for finding in findings:
        places.setdefault(_where(finding), {})[finding.algorithm] = finding.errors[figure]
    rows = []
    for place, errors in places.items():
        cells = [_bare(errors.get(name, math.nan), sign=figure != "window") for name in names]
        rows.append([f"`{place}`", *cells])
    return markdown.table(["cell", *(look(name).label for name in names)], rows, "lr")


def _goodput_error(finding: Finding) -> float:
    """The absolute error, as a key for sorting. An undefined error is smaller than all other errors."""
    found = abs(finding.errors["goodput_bps"])
    return -1.0 if math.isnan(found) else found


def _where(finding: Finding) -> str:
    return finding.cell.name + (f"/{finding.flow}" if len(finding.cell.tested) > 1 else "")


def _bare(value: float, *, sign: bool = False) -> str:
    """The value in percent without the sign %. Large values are bold."""
    text = judge.percent(value, sign=sign, unit="")
    return f"**{text}**" if sign and abs(value) > judge.WORST_CELL else text
