"""Writes docs/reference/coverage.md, which lists the items of each paper and where they are in Narrows.

`tools/papers/STUDY.toml` lists the items of a paper. The rest of the page comes from the study files.
`python tools/paper_items.py` rewrites the page; tests/python/test_coverage.py fails if it is outdated.
"""

from __future__ import annotations

import re
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows import congestion, markdown, rate
from narrows.studies import Claim, Study, find_study, load_study
from pages import fill

ROOT = Path(__file__).resolve().parent.parent
LISTS = ROOT / "tools" / "papers"
PAGE = ROOT / "docs" / "reference" / "coverage.md"
KINDS = ("algorithm", "experiment", "figure", "table", "claim")
NAMED = ("algorithms", "experiments", "figures", "claims")
FIELDS = {"name", "kind", "at", "says", "see", "lacks", "missing", *NAMED}


@dataclass
class Item:
    """An item of a paper, with the parts of Narrows that belong to it, e.g. experiments and claims."""

    name: str
    kind: str
    experiments: list[str]
    figures: list[str]
    claims: list[str]
    algorithms: list[str] = field(default_factory=list)
    see: str = ""
    lacks: str = ""
    missing: str = ""

    @property
    def is_covered(self) -> bool:
        """Whether anything in Narrows belongs to the item."""
        return bool(self.experiments or self.figures or self.claims or self.algorithms or self.see)

    @property
    def status(self) -> str:
        """The item's status in words: works or missing."""
        if not self.is_covered:
            return f"missing: {self.missing}"
        return f"works; {self.lacks}" if self.lacks else "works"


def items_of(study: Study, rows: Iterable[Mapping[str, Any]]) -> list[Item]:
    """The items of a list, with the experiments, figures and claims of the study that belong to them.

    The key `at` of an item names the item's place in the paper. An experiment belongs to the item if the
    experiment's section cites this place. A figure belongs to the item if its caption cites the place, and a
    claim if its source cites the place. A claim also belongs to the item if its sentence matches the item's
    key `says`.
    """
    items = []
    for row in rows:
        places, says = row.get("at", ""), row.get("says", "")
        paper = [claim for claim in study.claims if claim.group == "paper"]
        claims = [c for c in paper if cites(c.source, places) or (says and re.search(says, c.says, re.I))]
        experiments = [e.id for e in study.experiments if cites(e.section, places)]
        figures = [f.id for f in study.figures if cites(_of_the_paper(f.caption), places)]
        figures += [claim.figure for claim in claims if claim.figure]
        items.append(
            Item(
                name=row.get("name", ""),
                kind=row.get("kind", ""),
                experiments=_once([*row.get("experiments", []), *experiments]),
                figures=_once([*row.get("figures", []), *figures]),
                claims=_once([*row.get("claims", []), *(claim.id for claim in claims)]),
                algorithms=list(row.get("algorithms", [])),
                see=row.get("see", ""),
                lacks=row.get("lacks", ""),
                missing=row.get("missing", ""),
            )
        )
    return items


def cites(text: str, place: str) -> bool:
    """Whether a text cites a place. `4.2, Figure 9a` cites `Figure 9`, but `Figure 90` does not."""
    if not place:
        return False
    found = re.search(rf"(?<![\w.]){re.escape(place)}(?!\d|\.\d)", text)
    kind, _, number = place.rpartition(" ")
    several = kind and re.search(rf"{kind}s (\d+ and )?{re.escape(number)}(?!\d)", text)
    return bool(found or several)


def _of_the_paper(caption: str) -> str:
    """The sentences of a caption that are about the paper. Other sentences may cite figures of Narrows."""
    return " ".join(part for part in re.split(r"(?<=[.:])\s", caption) if "paper" in part)


def _once(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(names))


def problems(study: Study, rows: Iterable[Mapping[str, Any]]) -> list[str]:
    """Problems of a list: unknown names, items without a place, and claims that belong to no item."""
    rows = list(rows)
    items = items_of(study, rows)
    known = {
        "experiment": {experiment.id for experiment in study.experiments},
        "figure": {figure.id for figure in study.figures},
        "claim": {claim.id for claim in study.claims},
        "algorithm": {name for name, _, _ in congestion.names()} | set(rate.catalogue()),
    }
    found = [
        f"{item.name}: no {kind} {name!r}"
        for item in items
        for kind, names in (
            ("experiment", item.experiments),
            ("figure", item.figures),
            ("claim", item.claims),
            ("algorithm", item.algorithms),
        )
        for name in names
        if name not in known[kind]
    ]
    found += [f"{row.get('name')}: no key {key!r}" for row in rows for key in row.keys() - FIELDS]
    found += [f"{item.name}: no kind {item.kind!r}" for item in items if item.kind not in KINDS]
    found += [
        f"{item.name}: expected a place in Narrows, or `missing`"
        for item in items
        if not item.is_covered and not item.missing
    ]
    named = {claim for item in items for claim in item.claims}
    found += [
        f"claim {claim.id}: no item of the paper has its source {claim.source!r}"
        for claim in study.claims
        if claim.group == "paper" and claim.id not in named
    ]
    return found


def part(study: Study, rows: Iterable[Mapping[str, Any]]) -> str:
    """The page's part about a paper: its items, its claims, and what the study adds to the paper."""
    items = items_of(study, rows)
    sections = [
        markdown.table(
            [kind, "where", "state"],
            [(item.name, _where(study, item), item.status) for item in items if item.kind == kind],
        )
        for kind in KINDS
        if any(item.kind == kind for item in items)
    ]
    paper = [claim for claim in study.claims if claim.group == "paper"]
    sections.append(f"Each claim of the paper in `narrows study {study.id}`:\n")
    sections.append(
        markdown.table(
            ["claim", "source", "says", "where", "state"],
            [(c.id, c.source, _cell(c.says), _place(c), _cell(_judged(study, c))) for c in paper],
        )
    )
    used = {name for item in items for name in [*item.experiments, *item.figures]}
    more = [f"{e.id} ({e.title})" for e in study.experiments if e.id not in used]
    more += [f"`{figure.id}`" for figure in study.figures if figure.id not in used]
    ours = [claim.id for claim in study.claims if claim.group == "ours"]
    if more:
        sections.append(f"Beyond the paper: {', '.join(more)}.\n")
    if ours:
        order = [claim.id for claim in study.claims]
        sections.append(f"Our own expectations: {', '.join(ranges(ours, order))}.\n")
    return "\n\n".join(section.strip() for section in sections) + "\n"


def _where(study: Study, item: Item) -> str:
    folder = f"../../python/narrows/studies/library/{study.id}"
    parts = [f"[{name}]({folder}/{study.experiment(name).file})" for name in item.experiments]
    parts += [f"`{name}`" for name in [*item.figures, *item.algorithms]]
    parts += ranges(item.claims, [claim.id for claim in study.claims])
    parts += [item.see] if item.see else []
    return ", ".join(parts)


def ranges(names: Iterable[str], order: Sequence[str]) -> list[str]:
    """The names, with three or more consecutive names shortened to a range such as `C1 to C4`."""
    runs: list[list[str]] = []
    for name in sorted(names, key=order.index):
        if runs and order.index(name) == order.index(runs[-1][-1]) + 1:
            runs[-1].append(name)
        else:
            runs.append([name])
    return [text for run in runs for text in (run if len(run) < 3 else [f"{run[0]} to {run[-1]}"])]


def _place(claim: Claim) -> str:
    return f"{claim.experiment}, `{claim.figure}`" if claim.figure else claim.experiment


def _judged(study: Study, claim: Claim) -> str:
    if claim.cannot:
        return f"cannot be judged: {claim.cannot}"
    free = [item.id for item in study.experiment(claim.experiment).free if item.key]
    return f"judged, also with other values of {' and '.join(free)}" if free else "judged"


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def lists() -> dict[str, tuple[Study, str, list[dict[str, Any]]]]:
    """For each list, its study, the short name of the study's paper, and the rows of the list."""
    found = {}
    for path in sorted(LISTS.glob("*.toml")):
        table = tomllib.loads(path.read_text(encoding="utf-8"))
        found[path.stem] = (load_study(find_study(table["study"])), table["name"], table["items"])
    return found


def page() -> str:
    """The page, with the part about each paper generated again."""
    text = PAGE.read_text(encoding="utf-8")
    for name, (study, _, rows) in lists().items():
        text = fill(text, name, part(study, rows))
    return text


def all_problems() -> list[str]:
    """Problems of the lists of all papers."""
    return [f"{name}: {line}" for name, (study, _, rows) in lists().items() for line in problems(study, rows)]


if __name__ == "__main__":
    wrong = all_problems()
    for line in wrong:
        print(line, file=sys.stderr)
    if not wrong:
        PAGE.write_text(page(), encoding="utf-8")
    sys.exit(1 if wrong else 0)
