"""Experiments that are computed from a paper's equations instead of simulated.

A model is a function that returns runs. An experiment names the model and its arguments. If the experiment
also has a scenario, the factor `by` distinguishes the computed runs from the simulated runs.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace

from narrows.errors import ScenarioError, choice
from narrows.results.runs import Run, Runs
from narrows.studies.computed.curves import gain_curves
from narrows.studies.computed.fluid_runs import gain_fluid
from narrows.studies.model import Computed, Experiment

BY = "by"
"""The factor that tells computed runs from simulated runs."""
MODEL, SIMULATION = "model", "simulation"
"""Values of the factor `BY`."""

MODELS: dict[str, Callable[..., list[Run]]] = {"gain-curves": gain_curves, "gain-fluid": gain_fluid}


def check(wanted: Computed) -> None:
    """Check the names of the model and of its arguments, without solving the model.

    Raises:
        ScenarioError: for an unknown or missing name. The error's key is relative to the experiment's table.
    """
    if wanted.model not in MODELS:
        raise ScenarioError(choice(wanted.model, MODELS), "computed.model")
    names = inspect.signature(MODELS[wanted.model]).parameters
    for name in wanted.args:
        if name not in names:
            raise ScenarioError(choice(name, names), "computed.args")
    lacking = [name for name, one in names.items() if one.default is one.empty and name not in wanted.args]
    if lacking:
        raise ScenarioError(f"expected the argument {lacking[0]!r}", "computed.args")


def compute(wanted: Computed) -> list[Run]:
    """Compute the runs of a model. `check` must have accepted the names first.

    Raises:
        ScenarioError: for a value that the model does not accept. The error's key is relative to the
            experiment's table.
    """
    try:
        return MODELS[wanted.model](**wanted.args)
    except (TypeError, ValueError) as error:
        raise ScenarioError(str(error), "computed.args") from None


def with_computed(experiment: Experiment, measured: Runs, by: str = SIMULATION) -> Runs:
    """The runs of an experiment, and the runs of its model if the experiment has a model.

    Args:
        experiment: the experiment.
        measured: the experiment's simulated runs, or its runs on real stacks.
        by: the value of the factor `by` for the measured runs.
    """
    if experiment.computed is None:
        return measured
    try:
        runs = compute(experiment.computed)
    except ScenarioError as error:
        raise error.at(f"experiments.{experiment.id}").in_source("study.toml") from None
    if not experiment.scenario:
        return Runs(runs)
    sides = [(by, measured), (MODEL, runs)]
    return Runs(replace(run, factors={**run.factors, BY: name}) for name, side in sides for run in side)
