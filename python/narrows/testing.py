"""A pytest plugin. Its fixture `narrows_run` runs scenarios and asserts on their results.

    def test_two_flows_share_the_link(narrows_run):
        run = narrows_run("two-flows.toml", seeds=5)
        run.expect("jain", above=0.9)
        run.expect("goodput", args={"flows": "a"}, at_least="20mbit")

Installing Narrows makes the fixture available to every test.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

# Every session of pytest imports this module, so slow imports are in functions.
# ruff: noqa: PLC0415
if TYPE_CHECKING:
    from narrows.expect import Verdicts
    from narrows.results.results import Results
    from narrows.scenario.model import Scenario


class Expecting:
    """The results of a scenario, for assertions."""

    def __init__(self, scenario: Scenario, results: Results) -> None:
        self.scenario = scenario
        self.results = results

    def expect(self, measure: str | None = None, **keys: Any) -> Verdicts:
        """Assert that an expectation is met.

        Args:
            measure: name of a measure (default: all expectations of the scenario, [[expect]]).
            keys: the other keys of an [[expect]] table, e.g. `args={"flows": "a"}, at_least="20mbit"`.

        Raises:
            AssertionError: if an expectation is not met or cannot be judged.
            ScenarioError: if a key or value is wrong.
        """
        from narrows.errors import NarrowsError
        from narrows.expect import judge_results
        from narrows.scenario.model import Scenario

        __tracebackhide__ = True
        scenario = self.scenario
        if measure is not None:
            raw = scenario.raw() | {"expect": [{"measure": measure, **keys}]}
            scenario = Scenario(**raw).with_source(scenario.source)
        elif keys:
            raise TypeError("keys of an expectation need a measure")
        elif not scenario.expect:
            raise NarrowsError(f"{scenario.source}: found no [[expect]], expected at least one")
        verdicts = judge_results(scenario, self.results)
        if not verdicts.are_met:
            raise AssertionError("\n".join(verdicts.lines))
        return verdicts


class Runner:
    """Runs scenarios."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def __call__(
        self,
        scenario: str | Path | Scenario,
        *,
        seeds: int | None = None,
        override: Mapping[str, Any] | None = None,
        on: str = "sim",
    ) -> Expecting:
        """Run a scenario with all its variations and seeds, after a check that its [[expect]] is valid.

        Args:
            scenario: the path of its file, relative to the test's file; TOML text with several lines; or a
                scenario.
            seeds: number of seeds (default: the scenario's).
            override: values by dotted key, which replace values of the file or the text.
            on: the backend: sim, kernel or vm.

        Raises:
            ScenarioError: if a run is not possible, or if an expectation is not valid.
            NarrowsError: for an unknown backend, or if this machine or user does not meet its requirements.
        """
        from narrows import sweep
        from narrows.cli.commands.shared import On
        from narrows.cli.run import real_stacks
        from narrows.errors import NarrowsError, choice
        from narrows.expect import claims
        from narrows.scenario.load import load, loads
        from narrows.scenario.model import Scenario

        if on not in list(On):
            raise NarrowsError(f"on: {choice(on, On)}")
        if isinstance(scenario, str) and "\n" in scenario:
            loaded = loads(scenario, overrides=override)
        elif isinstance(scenario, Scenario):
            if override:
                raise TypeError("found override with a scenario, expected it only with a file or a text")
            loaded = scenario
        else:
            loaded = load(self._folder / scenario, override)
        claims(loaded)
        return Expecting(loaded, sweep.run(loaded, seeds=seeds, backend=real_stacks(On(on))))


@pytest.fixture
def narrows_run(request: pytest.FixtureRequest) -> Runner:
    """Run scenarios, and assert on their results."""
    return Runner(request.path.parent)
