"""Finds properties of a scenario that readers of its results should know.

For example, flows lack the rates or marks that they need, or all flows start at the same time.
"""

from __future__ import annotations

from collections.abc import Iterable

from narrows import _native
from narrows.scenario import hub
from narrows.scenario.load import Run


def notes(runs: Iterable[Run]) -> list[str]:
    """Notes for readers of the results.

    There is a sentence for each congestion controller that needs rates or marks but gets none, and for each
    preset. Another sentence is about flows that start at the same time.
    """
    # Runs of a point differ only in their seeds.
    points = {id(run.point): run.point for run in runs}.values()
    return _native.scenario_notes([point.checked for point in points], hub.needed(points))
