"""The page that lists the items of the papers is current."""

from __future__ import annotations

from typing import Any

import pytest
from narrows.studies import Claim, find_study, load_study
from test_docs import generator, native

pytestmark = native
BRF = load_study(find_study("brf"))


@pytest.fixture(scope="module")
def tool() -> Any:
    return generator("paper_items")


@pytest.fixture
def rows(tool: Any) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = tool.lists()["brf"][2]
    return found


def test_every_paper_has_a_list_and_the_page_is_current(tool: Any) -> None:
    lists = tool.lists()
    assert set(lists) == {"brf", "bbr-gain", "pacec", "bdr", "survey"}
    wrong = [
        f"{name}: {line}" for name, (study, _, rows) in lists.items() for line in tool.problems(study, rows)
    ]
    assert wrong == []
    assert tool.PAGE.read_text() == tool.page(), "outdated: run make reference"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"figures": ["nothing"]}, "X: no figure 'nothing'"),
        ({"claims": ["C99"]}, "X: no claim 'C99'"),
        ({"experiments": ["E99"]}, "X: no experiment 'E99'"),
        ({"algorithms": ["brff"]}, "X: no algorithm 'brff'"),
        ({"see": "x", "seee": "x"}, "X: no key 'seee'"),
        ({"see": "x", "kind": "picture"}, "X: no kind 'picture'"),
        ({}, "X: expected a place in Narrows, or `missing`"),
    ],
)
def test_an_item_that_names_nothing_is_found(
    change: dict[str, Any], said: str, tool: Any, rows: list[dict[str, Any]]
) -> None:
    assert tool.problems(BRF, [*rows, {"kind": "figure", "name": "X", **change}]) == [said]


def test_a_claim_that_no_item_names_is_found(tool: Any, rows: list[dict[str, Any]]) -> None:
    claim = BRF.claims[0].model_copy(update={"id": "C99", "source": "4.9, Figure 99"})
    more = BRF.model_copy(update={"claims": [*BRF.claims, claim]})
    assert tool.problems(more, rows) == ["claim C99: no item of the paper has its source '4.9, Figure 99'"]
    assert tool.problems(more, [*rows, {"kind": "figure", "name": "F", "at": "Figure 99"}]) == []
    ours = claim.model_copy(update={"group": "ours"})
    assert tool.problems(BRF.model_copy(update={"claims": [*BRF.claims, ours]}), rows) == []


def test_an_item_is_missing_only_as_long_as_the_study_lacks_it(tool: Any) -> None:
    row = {"kind": "claim", "name": "X", "says": "snails", "missing": "no study has it"}
    (item,) = tool.items_of(BRF, [row])
    assert item.status == "missing: no study has it"
    snails: Claim = BRF.claims[0].model_copy(update={"id": "M", "says": "Snails are first."})
    (item,) = tool.items_of(BRF.model_copy(update={"claims": [snails]}), [row])
    assert item.status == "works" and item.claims == ["M"]


@pytest.mark.parametrize(
    ("text", "place", "cited"),
    [
        ("4.2, Figure 9a", "Figure 9", True),
        ("4.2, Figure 9a", "4.2", True),
        ("Figure 90", "Figure 9", False),
        ("5.3, Figures 11 and 12", "Figure 12", True),
        ("5.3, Figures 11 and 12", "Figure 11", True),
        ("5.3, Figures 11 and 12", "Figure 1", False),
        ("4.2.1", "4.2", False),
        ("14.2", "4.2", False),
        ("4.2", "", False),
    ],
)
def test_a_place_is_cited_by_its_whole_number(text: str, place: str, cited: bool, tool: Any) -> None:
    assert tool.cites(text, place) is cited


def test_claims_in_a_row_are_one_range(tool: Any) -> None:
    order = ["C1", "C2a", "C2b", "C3", "C4"]
    assert tool.ranges(["C1", "C2a", "C2b", "C4"], order) == ["C1 to C2b", "C4"]
    assert tool.ranges(["C2b", "C1"], order) == ["C1", "C2b"]
