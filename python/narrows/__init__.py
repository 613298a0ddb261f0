"""Narrows: simulate, verify, deploy and study congestion control.

import narrows

scenario = narrows.load("scenarios/two-flows.toml")
results = narrows.run(scenario, seeds=10)
print(results.pandas("flows"))
"""

from narrows.errors import NarrowsError, OutputError, ScenarioError
from narrows.results.results import Results
from narrows.scenario.load import load, loads
from narrows.scenario.model import Scenario
from narrows.sweep import run

__all__ = ["NarrowsError", "OutputError", "Results", "Scenario", "ScenarioError", "load", "loads", "run"]
