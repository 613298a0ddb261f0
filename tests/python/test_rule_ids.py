"""Exactly one heading of the reference defines each rule id (BRF-60, PAC-3b, TV-D1)."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
RULES = ROOT / "docs/reference/rules"

SETS = ("BRF", "BBR", "BBR2", "BBR3", "GAIN", "BBQ", "PAC", "RCP", "XCP", "OBP", "BDR", "SUR", "TV")
"""Prefixes of rule ids. Headings of the rule pages define these ids."""

FOREIGN = {
    *("GPL", "LGPL", "BSD", "MPL", "LICENSE", "APACHE"),  # licences
    *("UTF", "SHA", "ISO", "OC", "TR"),  # standards and reports
    *("R1", "R2"),  # links of a topology, named by their ends
    "GFC",  # the ATM Forum's generic fairness configurations, a topology
}
"""Prefixes of other names that look like rule ids."""

ID = re.compile(r"(?<![\w-])([A-Z][A-Z0-9]+)-([A-Z]?\d+[a-z]?)(?![\w-]|\.\d)")
MORE = re.compile(r"(?:,| and| to|\.\.) ?(\d+)(?![\w.%])")
"""The continuation of an id in an abbreviated list or range: `BRF-12 to 14`, `GAIN-3, 4`."""
TEST = re.compile(rf"\bfn ({'|'.join(SETS)})_([A-Z]?\d+)_", re.IGNORECASE)
HEADING = re.compile(r"^#+ ([A-Z][A-Z0-9]+-[A-Z]?\d+[a-z]?)$", re.MULTILINE)
METRIC = re.compile(r"^\|.*$", re.MULTILINE)
HINT = "is defined on no page of docs/reference/rules (if it is no rule, add its prefix to FOREIGN)"
TEXT = {".rs", ".py", ".c", ".h", ".toml", ".md", ".html", ".js", ".yml", ".yaml", ".sh", ".json"}


def ids(text: str) -> Iterator[tuple[str, int]]:
    """Each rule id in a text, and its position."""
    for match in ID.finditer(text):
        if match[1] not in FOREIGN:
            yield f"{match[1]}-{match[2]}", match.start()
    for match in TEST.finditer(text):
        yield f"{match[1]}-{match[2]}".upper(), match.start()


def abbreviated(text: str) -> Iterator[tuple[str, int]]:
    """Lists and ranges whose later ids have no prefix, so that a search for these ids would miss them."""
    for match in ID.finditer(text):
        if match[1] in SETS and MORE.match(text, match.end()):
            yield match[0], match.start()


def tree() -> Iterator[tuple[str, str]]:
    tracked = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name in tracked.splitlines():
        path = ROOT / name
        if path.suffix not in TEXT or path == Path(__file__):
            continue
        if path.is_file():
            yield name, path.read_text(encoding="utf-8")


def definitions() -> dict[str, list[str]]:
    """The headings or table rows that define each id."""
    found: dict[str, list[str]] = {}
    for page in sorted(RULES.glob("*.md")):
        for match in HEADING.finditer(page.read_text(encoding="utf-8")):
            found.setdefault(match[1], []).append(page.name)
    for page in sorted((ROOT / "docs").rglob("metrics.md")):
        metrics = page.read_text(encoding="utf-8").partition("`narrows.metrics`")[2]
        for row in METRIC.findall(metrics):
            for name in set(re.findall(r"MET-\d+", row)):
                found.setdefault(name, [page.name])
    return found


def undefined(files: Iterator[tuple[str, str]], known: set[str]) -> list[str]:
    return [
        f"{name}:{text.count(chr(10), 0, at) + 1}: {found} {HINT}"
        for name, text in files
        for found, at in ids(text)
        if found not in known
    ]


def test_every_id_in_the_tree_is_defined() -> None:
    known = definitions()
    assert len(known) > 200
    assert undefined(tree(), set(known)) == []


def test_no_id_is_defined_twice() -> None:
    assert {name: pages for name, pages in definitions().items() if len(pages) > 1} == {}


def test_every_prefix_has_a_row_on_the_index() -> None:
    index = (RULES / "index.md").read_text(encoding="utf-8")
    prefixes = {name.split("-")[0] for name in definitions()}
    assert prefixes == {*SETS, "MET"}
    assert [prefix for prefix in sorted(prefixes) if f"`{prefix}-n`" not in index] == []


@pytest.mark.parametrize(
    "text",
    [
        "/// The gate (BRF-999).",
        "# PAC-3c",
        "fn tv_z9_of_nothing() {",
        "source = 'MET-999'",
        "SURVEY-12",
        "PACE-2",
    ],
)
def test_an_invented_id_is_reported_with_its_line(text: str) -> None:
    (message,) = undefined(iter([("a.rs", f"\n{text}\n")]), set(definitions()))
    assert message.startswith("a.rs:2: ")


def test_sections_of_unpublished_specifications_are_not_cited() -> None:
    stale = re.compile(
        r"\bSUR \d+\.\d+|\b(?:BBR|BDR|BRF|PACEC|GAIN) sections? \d|\.md, section|project's specification"
    )
    assert [f"{name}: {match[0]}" for name, text in tree() for match in stale.finditer(text)] == []


def test_lists_of_ids_name_each_id() -> None:
    found = [
        f"{name}:{text.count(chr(10), 0, at) + 1}: {short}"
        for name, text in tree()
        for short, at in abbreviated(text)
    ]
    assert found == []
