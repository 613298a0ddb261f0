"""Runs the experiments of the course (docs/course/) and writes the results into its pages.

    python tools/course.py            rewrite the pages and their pictures

tests/python/test_course.py fails if a page or a picture is outdated, or if a claim does not hold.

The command `narrows run ... --out results/NN-NAME` in a ```sh block defines the run NAME of its page. Without
`--out`, the run is called `base`. These parts of a page are generated:

- The ```toml block after `<!-- scenario -->` shows the page's scenario.
- A ```text block directly after a ```sh block shows the output of the only command in the ```sh block.
- `<!-- measured: ... -->` lists figures, one per line, as RUN FIGURE NAME. Some figures take a time or a
  limit as a fourth word. "A / B" is the ratio of two figures. The figures replace the bold numbers of the
  next block, in order. A block ends at an empty line.
- The picture `img/PAGE-RUN-flows.svg` or `img/PAGE-RUN-links.svg` is a figure of `narrows report`.

`<!-- holds: ... -->` lists conditions, one per line, such as `base goodput bbr > 10 * base goodput cubic`.
They check statements that the page makes in words.
"""

from __future__ import annotations

import contextlib
import io
import operator
import re
import shlex
import statistics
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path, PurePosixPath

import numpy as np
from narrows import sweep
from narrows.cli.figures import number
from narrows.cli.options import overrides
from narrows.cli.run import show
from narrows.results import summary
from narrows.results.by_run import read_runs
from narrows.results.figures import HEADINGS
from narrows.results.measures.general import convergence
from narrows.results.results import Results
from narrows.results.runs import Run
from narrows.scenario.load import expand, load
from narrows.scenario.notes import notes
from rich.console import Console

ROOT = Path(__file__).resolve().parent.parent
COURSE = ROOT / "docs/course"
WIDTH = 120
"""Columns of the terminal for which outputs are formatted."""
COMPARISONS = {"<": operator.lt, ">": operator.gt, "=": operator.eq}
_RUN = re.compile(r"^```sh\n(?P<commands>.*?)^```\n(?:\n```text\n(?P<output>.*?)^```\n)?", re.M | re.S)
_SCENARIO = re.compile(r"^<!-- scenario -->\n```toml\n(?P<text>.*?)^```$", re.M | re.S)
_MEASURED = re.compile(r"^<!-- measured:(?P<figures>[^>]*?)-->\n(?P<block>(?:.+\n)+)", re.M)
_HOLDS = re.compile(r"^<!-- holds:(?P<claims>.*?)-->$", re.M | re.S)
_BOLD = re.compile(r"\*\*-?\d[\d.]*\*\*")
_PICTURE = re.compile(r"\]\((?P<file>img/[^)]+\.svg)\)")


class CourseError(Exception):
    """A mistake in a page's comments or commands."""


# Figures

SUMMARY = {
    "goodput": "goodput_bps",
    "share": "share",
    "rtt": "rtt_mean_s",
    "rtt-p95": "rtt_p95_s",
    "retransmits": "retransmits",
    "fct": "fct_s",
    "utilisation": "utilisation",
    "queueing": "sojourn_mean_s",
    "queueing-p95": "sojourn_p95_s",
    "drops": "dropped_packets",
    "marks": "marks",
}
"""The summary's figures, by their names on pages. Their units are those of the summary."""


def _flow(run: Run, name: str, quantity: str, after_s: float) -> tuple[np.ndarray, np.ndarray]:
    """Times and values of a flow's samples, from `after_s` on."""
    found = [row for row in run.flows() if run.tables["flows"]["name"][int(row)] == name]
    if not found:
        raise CourseError(f"found no {name}, expected {', '.join(run.names('flows', 'name'))}")
    t, values = run.flow_series(int(found[0]), quantity)
    return t[t >= after_s], values[t >= after_s]


def _window_max(run: Run, name: str, after_s: float) -> float:
    return float(_flow(run, name, "cwnd", after_s)[1].max())


def _window_min(run: Run, name: str, after_s: float) -> float:
    return float(_flow(run, name, "cwnd", after_s)[1].min())


def _window_at(run: Run, name: str, at_s: float) -> float:
    return float(_flow(run, name, "cwnd", at_s - 1e-9)[1][0])


def _cuts(run: Run, name: str, after_s: float) -> np.ndarray:
    """Times at which a flow began to reduce its window."""
    t, window = _flow(run, name, "cwnd", after_s)
    falls = np.diff(window) < 0
    begins = falls & ~np.concatenate([[False], falls[:-1]])
    cuts: np.ndarray = t[1:][begins]
    return cuts


def _intervals(run: Run, name: str, after_s: float) -> np.ndarray:
    """Times between successive cuts of the window, s.

    Raises:
        CourseError: if the window was cut less than twice.
    """
    cuts = _cuts(run, name, after_s)
    if cuts.size < 2:
        raise CourseError(f"found {cuts.size} cuts of the window of {name}, expected at least 2")
    return np.diff(cuts)


def _goodput_from(run: Run, name: str, after_s: float) -> float:
    """Mean goodput from a time to the end of the run, Mbit/s."""
    return float(_flow(run, name, "goodput_bps", after_s + 1e-9)[1].mean()) / 1e6


def _last_fct(run: Run) -> float:
    """Time from the start of the first flow to the end of the last one, ms."""
    starts = run.column("flows", "start_s")
    return 1e3 * float((starts + run.column("flows", "fct_s")).max() - starts.min())


def _queue_max(run: Run, name: str, after_s: float) -> float:
    """Longest queue in the samples, packets."""
    t, packets = run.link_series(run.link(name), "queue_packets")
    return float(packets[t >= after_s].max())


def _queueing_max(run: Run, name: str, _: float) -> float:
    """Longest time that a packet spent in the queue during the measurement interval, ms."""
    return 1e3 * float(run.column("links", "sojourn_max_s")[run.link(name)])


def _min_rtt(run: Run, name: str, after_s: float) -> float:
    """Mean over time of a BBR flow's estimate of the minimum RTT, ms."""
    t, rtt_s = run.traced(name, "min_rtt")
    return 1e3 * float(rtt_s[t >= after_s].mean())


@dataclass(frozen=True)
class Extra:
    """A figure that is not in the summary. It is computed from a run, a name, and a time or limit."""

    of_run: Callable[[Run, str, float], float]
    over_seeds: Callable[[list[float]], float] = statistics.fmean
    is_count: bool = False
    """Whether the figure is printed without decimals."""


EXTRA = {
    "window-max": Extra(_window_max, is_count=True),
    "window-min": Extra(_window_min, is_count=True),
    "window-at": Extra(_window_at, is_count=True),
    "cuts": Extra(lambda run, name, at: float(_cuts(run, name, at).size), is_count=True),
    "cut-interval": Extra(lambda run, name, at: float(_intervals(run, name, at).mean())),
    "cut-interval-min": Extra(lambda run, name, at: float(_intervals(run, name, at).min())),
    "cut-interval-max": Extra(lambda run, name, at: float(_intervals(run, name, at).max())),
    "goodput-from": Extra(_goodput_from),
    "min-rtt": Extra(_min_rtt),
    "queue-max": Extra(_queue_max, is_count=True),
    "queueing-max": Extra(_queueing_max),
    "last-fct": Extra(lambda run, _, __: _last_fct(run), statistics.median),
    "late-runs": Extra(lambda run, _, limit: float(_last_fct(run) > limit), sum, is_count=True),
    "late-flows": Extra(
        lambda run, _, limit: float((1e3 * run.column("flows", "fct_s") > limit).sum()), is_count=True
    ),
    "convergence": Extra(lambda run, name, _: convergence(run, link="bottleneck", flows=name).value),
}
"""Figures that are not in the summary, by their names on pages."""


class Command:
    """A command `narrows run` on a page, with its results."""

    def __init__(self, words: list[str], text: str) -> None:
        """Parses the words of `narrows run`.

        Raises:
            CourseError: if the command has an unknown option.
        """
        self.text = text
        self.scenario, *rest = words
        self.out, self.changes, self.seeds = "", list[str](), None
        for option, value in zip(rest[::2], rest[1::2], strict=True):
            if option == "--set":
                self.changes.append(value)
            elif option == "--seeds":
                self.seeds = int(value)
            elif option == "--out":
                self.out = value
            else:
                raise CourseError(f"found {option} in {text!r}, expected --set, --seeds or --out")
        self.loaded = load(ROOT / self.scenario, overrides(self.changes))
        # The folder `results/01-tenth` of page 1 is the run `tenth`.
        self.name = PurePosixPath(self.out).name.partition("-")[2] or "base"

    @cached_property
    def results(self) -> Results:
        """The results, in memory."""
        return sweep.run(self.loaded, seeds=self.seeds)

    @cached_property
    def runs(self) -> list[Run]:
        """The runs, one for each seed."""
        return list(read_runs(self.results))

    @cached_property
    def _rows(self) -> dict[str, summary.Row]:
        return {row.name: row for row in [*summary.flows(self.results), *summary.links(self.results)]}

    @property
    def output(self) -> str:
        """The text that the command prints."""
        printed = io.StringIO()
        console = Console(file=printed, width=WIDTH, highlight=False, markup=False, emoji=False)
        show(self.results, console)
        for note in notes(expand(self.loaded)):
            console.print(f"note: {note}")
        print(f"tables in {self.out or f'results/{self.loaded.name}'}", file=printed)
        return "".join(f"{line.rstrip()}\n" for line in printed.getvalue().splitlines())

    def value(self, figure: str, name: str, at: float | None) -> tuple[float, str]:
        """A figure in its unit, as a number and as text."""
        if figure in SUMMARY:
            column = SUMMARY[figure]
            if name not in self._rows:
                raise CourseError(f"{self.name}: found no {name}, expected {', '.join(self._rows)}")
            mean, size = self._rows[name].figures[column].mean, HEADINGS[column].size
            return mean / size, number(mean, size)
        if figure not in EXTRA:
            raise CourseError(f"found the figure {figure}, expected {', '.join([*SUMMARY, *EXTRA])}")
        extra = EXTRA[figure]
        limit = self.results.warmup_s if at is None else at
        value = extra.over_seeds([extra.of_run(run, name, limit) for run in self.runs])
        return value, f"{value:.0f}" if extra.is_count else number(value, 1)


# Pages


def _replaced(match: re.Match[str], group: str, text: str) -> str:
    """The matched text, with the text of one group replaced."""
    start, end = match.start(group) - match.start(), match.end(group) - match.start()
    return match[0][:start] + text + match[0][end:]


class Page:
    """A page of the course, with the runs of its commands."""

    def __init__(self, path: Path) -> None:
        """Reads a page."""
        self.path = path
        self.text = path.read_text(encoding="utf-8")
        self.runs: dict[str, Command] = {}
        for block in _RUN.finditer(self.text):
            for line in block["commands"].replace("\\\n", " ").splitlines():
                words = shlex.split(line)
                if words[:2] == ["narrows", "run"]:
                    command = Command(words[2:], line)
                    if command.name in self.runs:
                        raise CourseError(f"{path.name}: found two commands for {command.name}")
                    self.runs[command.name] = command

    def generated(self) -> str:
        """The page's text, with up-to-date generated parts."""
        text = _SCENARIO.sub(self._scenario, self.text)
        text = _RUN.sub(self._output, text)
        return _MEASURED.sub(self._figures, text)

    def broken(self) -> list[str]:
        """The claims of the page that do not hold."""
        claims = [
            line.strip() for block in _HOLDS.finditer(self.text) for line in block["claims"].splitlines()
        ]
        return [f"{self.path.name}: {claim}" for claim in claims if claim and not self._holds(claim)]

    def pictures(self) -> dict[Path, str]:
        """The page's pictures: the SVG text for each file."""
        from narrows.report import export, style  # noqa: PLC0415 (charts need the extra `report`)
        from narrows.report.kinds.time import single_run  # noqa: PLC0415

        drawn = {}
        for match in _PICTURE.finditer(self.text):
            name, _, kind = (
                PurePosixPath(match["file"]).stem.removeprefix(f"{self.path.stem}-").rpartition("-")
            )
            # Reset the styles, so that a picture does not depend on the pictures that were drawn before it.
            with style.own_looks():
                figures = {figure.id: figure for figure in single_run(self._run(name).runs[0])}
                drawn[self.path.parent / match["file"]] = export.svg(figures[kind])
        return drawn

    def _run(self, name: str) -> Command:
        if name not in self.runs:
            raise CourseError(f"{self.path.name}: found the run {name}, expected {', '.join(self.runs)}")
        return self.runs[name]

    def _scenario(self, match: re.Match[str]) -> str:
        scenario = next(iter(self.runs.values())).scenario
        return _replaced(match, "text", (ROOT / scenario).read_text(encoding="utf-8"))

    def _output(self, match: re.Match[str]) -> str:
        if match["output"] is None:
            return match[0]
        (command,) = [run for run in self.runs.values() if run.text in match["commands"]]
        return _replaced(match, "output", command.output)

    def _figures(self, match: re.Match[str]) -> str:
        wanted = [line.strip() for line in match["figures"].splitlines() if line.strip()]
        if len(found := _BOLD.findall(match["block"])) != len(wanted):
            raise CourseError(
                f"{self.path.name}: found {len(found)} bold figures, expected {len(wanted)}: {wanted}"
            )
        texts = iter([self._ratio(line)[1] for line in wanted])
        return _replaced(match, "block", _BOLD.sub(lambda _: f"**{next(texts)}**", match["block"]))

    def _ratio(self, text: str) -> tuple[float, str]:
        """The value and the text of a figure, or of the ratio of two figures."""
        parts = [self._figure(part) for part in text.split(" / ")]
        if len(parts) == 1:
            return parts[0]
        ratio = parts[0][0] / parts[1][0]
        return ratio, f"{ratio:.2g}"

    def _figure(self, text: str) -> tuple[float, str]:
        run, figure, name, *at = text.split()
        return self._run(run).value(figure, name, float(at[0]) if at else None)

    def _holds(self, claim: str) -> bool:
        sides = re.fullmatch(r"(.+) ([<>=]) (.+)", claim)
        if sides is None:
            raise CourseError(f"{self.path.name}: found the claim {claim!r}, expected A < B, A > B or A = B")
        return bool(COMPARISONS[sides[2]](self._side(sides[1]), self._side(sides[3])))

    def _side(self, text: str) -> float:
        """The value of one side of a claim: a number, a figure, or a number times a figure."""
        factor, times, figure = text.rpartition(" * ")
        with contextlib.suppress(ValueError):
            return float(figure)
        return (float(factor) if times else 1.0) * self._ratio(figure)[0]


def pages() -> list[Path]:
    """The pages with experiments, in order."""
    return sorted(COURSE.glob("[0-9]*.md"))


def main() -> int:
    """Rewrite all pages and pictures."""
    broken = []
    for path in pages():
        page = Page(path)
        path.write_text(page.generated(), encoding="utf-8")
        for file, svg in page.pictures().items():
            file.parent.mkdir(exist_ok=True)
            file.write_text(svg, encoding="utf-8")
        broken += page.broken()
    for claim in broken:
        print(f"does not hold: {claim}", file=sys.stderr)
    return 1 if broken else 0


if __name__ == "__main__":
    sys.exit(main())
