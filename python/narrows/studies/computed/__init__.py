"""Experiments that are computed from a paper's equations instead of simulated.

A model is a function that returns runs. An experiment names it with its arguments. If the experiment also has
a scenario, the factor `by` tells the computed runs from the simulated ones.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

from narrows.errors import NarrowsError, hint
from narrows.results.runs import Run, Runs
from narrows.studies.computed.curves import gain_curves
from narrows.studies.computed.fluid_runs import gain_fluid
from narrows.studies.model import Computed, Experiment

BY = "by"
"""The factor that says how a run was obtained."""
MODEL, SIMULATION = "model", "simulation"
"""Its values."""

MODELS: dict[str, Callable[..., list[Run]]] = {"gain-curves": gain_curves, "gain-fluid": gain_fluid}


def compute(wanted: Computed) -> list[Run]:
    """The runs of a model.

    Raises:
        NarrowsError: for a model or an argument that does not exist.
    """
    if wanted.model not in MODELS:
        raise NarrowsError(f"no model {wanted.model!r}{hint(wanted.model, MODELS)}")
    try:
        return MODELS[wanted.model](**wanted.args)
    except (TypeError, ValueError) as error:
        raise NarrowsError(f"model {wanted.model}: {error}") from None


def with_computed(experiment: Experiment, simulated: Runs) -> Runs:
    """The simulated runs of an experiment, and the runs of its model, if it has one."""
    if experiment.computed is None:
        return simulated
    runs = compute(experiment.computed)
    if not experiment.scenario:
        return Runs(runs)
    sides = [(SIMULATION, simulated), (MODEL, runs)]
    return Runs(replace(run, factors={**run.factors, BY: by}) for by, side in sides for run in side)
