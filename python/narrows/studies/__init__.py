"""Runs a paper's experiments with one command, and compares each claim of the paper with the measurement.

A study is a folder. It contains `study.toml` (experiments and figures), `claims.toml` (the paper's claims and
our own expectations), and scenario files. Only the package `computed` depends on particular papers, because
it contains their models. Claims and figures refer to measures by their names in `narrows.results.measures`.
`judge.py` computes the verdicts.
"""

from narrows.results.measures import MEASURES, Measured, measure_run
from narrows.results.runs import Run, Runs
from narrows.studies import computed as _computed  # noqa: F401  (its measures)
from narrows.studies import printed as _printed  # noqa: F401  (its measures)
from narrows.studies.judge import Finding, Verdict, judge
from narrows.studies.load import find_study, load_study
from narrows.studies.model import Claim, Experiment, FigureSpec, Study

__all__ = [
    "MEASURES",
    "Claim",
    "Experiment",
    "FigureSpec",
    "Finding",
    "Measured",
    "Run",
    "Runs",
    "Study",
    "Verdict",
    "find_study",
    "judge",
    "load_study",
    "measure_run",
]
