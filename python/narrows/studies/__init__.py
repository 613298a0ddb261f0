"""A paper's experiments by one command, with each claim of the paper beside what was measured here.

A study is a folder: `study.toml` (experiments and figures), `claims.toml` (what the paper says and what we
expect of our own system), and a scenario file per experiment. Nothing of a particular paper is in this
package: claims and figures name measures from a registry (`measures.py`), and verdicts are computed
(`judge.py`).
"""

from narrows.studies import crowds as _crowds  # noqa: F401  (its measures)
from narrows.studies import printed as _printed  # noqa: F401  (its measures)
from narrows.studies import signalling as _signalling  # noqa: F401  (its measures)
from narrows.studies.judge import Finding, Verdict, judge
from narrows.studies.load import find_study, load_study
from narrows.studies.measures import MEASURES, Measured, measure_run
from narrows.studies.model import Claim, Experiment, FigureSpec, Study
from narrows.studies.run import Run, Runs

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
