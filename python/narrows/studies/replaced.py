"""Replaces an algorithm of a study by another algorithm, which the study's claims will then judge."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from narrows.congestion import class_file
from narrows.errors import NarrowsError, choice
from narrows.studies.load import read_scenario
from narrows.studies.model import Experiment, Study, instead

FACTOR = "algorithm"


def replaced(study: Study, old: str, new: str) -> Study:
    """The study with `new` instead of `old`, in the sweeps of its experiments and in its claims.

    Args:
        study: the study.
        old: an algorithm that the experiments vary.
        new: a controller by name, or FILE.py:CLASS. A relative path starts at the current folder.

    Raises:
        NarrowsError: if no experiment varies `old`, or if an experiment already varies `new`.
    """
    spelled = _absolute(new)
    known = dict.fromkeys(value for experiment in study.experiments for value in _values(study, experiment))
    if not known:
        raise NarrowsError(
            f"--replace: found {study.id}, whose scenarios do not list algorithms in [sweep.vary], "
            "expected a study such as bbr-draft"
        )
    if old not in known:
        raise NarrowsError(f"--replace: {choice(old, known)}")
    if spelled in known:
        raise NarrowsError(
            f"--replace: found {new}, which {study.id} already runs, expected another algorithm"
        )
    experiments = [_replaced(study, experiment, old, spelled) for experiment in study.experiments]
    return study.model_copy(
        update={
            "experiments": experiments,
            "claims": [instead(claim, FACTOR, old, spelled) for claim in study.claims],
            "summary": f"{study.summary.rstrip()}\n\nHere {new} replaces {old}: the claims judge {new}.",
        }
    )


def _absolute(name: str) -> str:
    """The name of a controller, with an absolute path if it is a class in a file."""
    named = class_file(name)
    return name if named is None else f"{Path(named[0]).absolute()}:{named[1]}"


def _values(study: Study, experiment: Experiment) -> list[Any]:
    """The algorithms that an experiment varies by a key of its scenario."""
    key = experiment.factors.get(FACTOR)
    if not experiment.scenario or key is None:
        return []
    values = read_scenario(study.folder, experiment)["sweep"].get("vary", {}).get(key, [])
    return values if isinstance(values, list) else []


def _replaced(study: Study, experiment: Experiment, old: str, new: str) -> Experiment:
    values = _values(study, experiment)
    if old not in values:
        return experiment
    key = f'sweep.vary."{experiment.factors[FACTOR]}"'
    others = [new if value == old else value for value in values]
    return experiment.model_copy(update={"set": experiment.set | {key: others}})
