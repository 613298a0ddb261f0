"""Judges a scenario's expectations for `narrows run`."""

from __future__ import annotations

from pathlib import Path

from rich.console import Console

from narrows.cli.table import Table
from narrows.expect import Verdicts, claims, files, judge_results
from narrows.results import summary
from narrows.results.results import Results
from narrows.results.store import write_output
from narrows.scenario.model import Scenario


class Gate:
    """The expectations of a scenario.

    Raises:
        ScenarioError: if an expectation is not valid.
    """

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        claims(scenario)

    def judge(self, results: Results, junit: Path | None, markdown: Path | None) -> Verdicts:
        """Judge the expectations, and write the verdicts to each file that is given."""
        verdicts = judge_results(self._scenario, results)
        for path, text in ((junit, files.junit), (markdown, files.markdown)):
            if path is not None:
                write_output(path, text(verdicts))
        return verdicts

    def show(self, verdicts: Verdicts, console: Console) -> None:
        """Print the verdicts as a table."""
        table = Table()
        factors = list(dict.fromkeys(name for item in verdicts.judged for name in item.factors))
        for name in [*factors, "expectation"]:
            table.add_name(name)
        table.add_text("measured")
        table.add_text("verdict")
        for item in verdicts.judged:
            at = item.factors
            point = [summary.point_text(at[name]) if name in at else "" for name in factors]
            table.add_row(*point, item.says, item.measured, f"{item.word}: {item.why}")
        console.print()
        table.print(console)
        console.print(verdicts.line)
