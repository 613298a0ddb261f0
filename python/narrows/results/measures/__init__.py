"""Measures of runs, by name.

The import of this package registers all measures that use only a run's tables.
"""

from narrows.results.measures import allocation, crowds, general, iperf3, phases, queues, signalling, states
from narrows.results.measures.registry import (
    MEASURES,
    Measure,
    Measured,
    arguments,
    choices,
    find_measure,
    measure,
    measure_run,
)

__all__ = [
    "MEASURES",
    "Measure",
    "Measured",
    "allocation",
    "arguments",
    "choices",
    "crowds",
    "find_measure",
    "general",
    "iperf3",
    "measure",
    "measure_run",
    "phases",
    "queues",
    "signalling",
    "states",
]
