"""`narrows study --replace` judges the claims of a study for another algorithm."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from narrows.errors import NarrowsError
from narrows.studies import find_study, load_study
from narrows.studies.replaced import replaced
from narrows.studies.runner import run_study

MINE = """
from narrows.custom import BuiltIn


class Bbr(BuiltIn):
    def __init__(self):
        super().__init__("{name}")
"""


def test_the_sweeps_and_the_claims_name_the_new_algorithm() -> None:
    study = replaced(load_study(find_study("bbr-draft")), "bbr3", "bbr-a")
    assert {claim.a.where["algorithm"] for claim in study.claims} == {"bbr-a"}
    for experiment in study.experiments:
        assert experiment.set['sweep.vary."flows.*.cc"'] == ["bbr-a", "bbr2", "bbr"]
    assert study.summary.endswith("Here bbr-a replaces bbr3: the claims judge bbr-a.")


def test_a_study_with_cases_is_refused() -> None:
    with pytest.raises(NarrowsError, match="--replace: found survey, whose scenarios do not list algorithms"):
        replaced(load_study(find_study("survey")), "cubic", "copa")


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("bbr9", "copa", "--replace: found 'bbr9', expected one of bbr3, bbr2, bbr"),
        ("bbr3", "bbr2", "--replace: found bbr2, which bbr-draft already runs, expected another algorithm"),
    ],
)
def test_a_wrong_replacement_is_one_line(old: str, new: str, said: str) -> None:
    with pytest.raises(NarrowsError) as error:
        replaced(load_study(find_study("bbr-draft")), old, new)
    assert str(error.value).startswith(said)


@pytest.mark.parametrize("value", ["bbr3", "=copa", "bbr3="])
def test_the_option_needs_both_names(value: str, narrows: Callable[..., tuple[int, str, str]]) -> None:
    expected = f"--replace: found {value!r}, expected OLD=NEW, such as bbr3=mine.py:Bbr\n"
    assert narrows("study", "bbr-draft", "--replace", value) == (2, "", expected)


def test_a_class_of_the_user_is_judged_as_the_controller_that_it_wraps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("narrows._native")
    monkeypatch.chdir(tmp_path)
    Path("mine.py").write_text(MINE.format(name="bbr3"), encoding="utf-8")
    study = load_study(find_study("bbr-draft"))
    own = run_study(study, tmp_path / "own", quick=True, only=["D3"], seeds=1)
    new = run_study(
        replaced(study, "bbr3", "mine.py:Bbr"), tmp_path / "new", quick=True, only=["D3"], seeds=1
    )
    verdicts = [
        [(finding.claim.id, finding.verdict) for finding in outcome.findings] for outcome in (own, new)
    ]
    assert verdicts[0] == verdicts[1] != []
    assert new.findings[0].claim.a.where == {"algorithm": f"{tmp_path / 'mine.py'}:Bbr"}
