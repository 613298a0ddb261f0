"""Narrows: simulate, verify, deploy and study congestion control.

import narrows

scenario = narrows.loads('''
duration = "10s"

[topology]
kind = "dumbbell"
rate = "50mbit"
rtt = "30ms"

[[flows]]
cc = "cubic"

[[flows]]
cc = "bbr"
''')
results = narrows.run(scenario, seeds=2)
for flow in results.flows.select(["run", "name", "goodput_bps"]).to_pylist():
    print(flow)

`narrows.load("my.toml")` reads a scenario from a file. Tables are Arrow tables. With the extra `pandas`,
`results.pandas("flows")` gives a pandas frame.
"""

import os
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from narrows.errors import NarrowsError, OutputError, ScenarioError
    from narrows.results.results import Results
    from narrows.scenario.load import load, loads
    from narrows.scenario.model import Scenario
    from narrows.sweep import run

__all__ = ["NarrowsError", "OutputError", "Results", "Scenario", "ScenarioError", "load", "loads", "run"]

if os.environ.get("NARROWS_NATIVE"):
    from narrows import extension

    extension.use()

_MODULES = {
    "NarrowsError": "narrows.errors",
    "OutputError": "narrows.errors",
    "Results": "narrows.results.results",
    "Scenario": "narrows.scenario.model",
    "ScenarioError": "narrows.errors",
    "load": "narrows.scenario.load",
    "loads": "narrows.scenario.load",
    "run": "narrows.sweep",
}
"""For each public name, the module that defines it. A module is imported when one of its names is first used,
so that the command starts fast."""


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module 'narrows' has no attribute {name!r}")
    value = getattr(import_module(_MODULES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
