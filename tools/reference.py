"""Fills in the generated parts of docs/: between `<!-- name: begin -->` and `<!-- name: end -->`.

`python tools/reference.py` rewrites the pages; tests/python/test_docs.py fails when they are out of step.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from narrows import units
from narrows.results import columns
from narrows.scenario import reference

ROOT = Path(__file__).resolve().parent.parent
PARAMS = ROOT / "crates/narrows-control/src/rate/brf/params.rs"


@dataclass(frozen=True)
class Parameter:
    """A parameter of BRF."""

    name: str
    """As in a scenario's `params`."""
    unit: str
    """What it takes."""
    literal: str
    """Value in mode `literal`, in TOML."""
    resolved: str
    """Value in mode `resolved`, in TOML."""
    meaning: str
    """From its doc comment."""


_TAKES = {
    "f64": "number",
    "u32": "whole number",
    "usize": "whole number",
    "bool": "true or false",
    "Span": "time",
    "Rate": "rate",
}
_SPAN = {"from_nanos": 1, "from_micros": 1_000, "from_millis": 1_000_000, "from_secs": units.NANOS_PER_SEC}
_FIELD = re.compile(
    r"(?P<doc>(?:^ +/// .*\n)+) +(?P<name>\w+): (?P<type>\w+) = (?P<values>.*);$", re.MULTILINE
)
_CALL = re.compile(r"(?:Span|Rate)::(\w+)\(([\d_]+)\)")


def parameters() -> list[Parameter]:
    """BRF's parameters, read from the Rust source: `/// meaning` and `name: type = literal, resolved;`."""
    source = PARAMS.read_text(encoding="utf-8")
    block = source[source.index("\nparams! {") : source.index("\n}\n\nimpl Default")]
    found = list(_parameters(block))
    written = len(re.findall(r"^ +\w+: .*;$", block, re.MULTILINE))
    if len(found) != written:
        raise ValueError(f"{PARAMS}: {written} parameters, of which {len(found)} are understood")
    return found


def _parameters(block: str) -> Iterator[Parameter]:
    for match in _FIELD.finditer(block):
        lines = [line.strip().removeprefix("///").strip() for line in match["doc"].strip().splitlines()]
        meaning = re.sub(r"\[(`[^`]+`)\]", r"\1", " ".join(lines))
        literal, resolved = (_value(text) for text in match["values"].split(", "))
        yield Parameter(match["name"], _TAKES[match["type"]], literal, resolved, meaning)


def _value(rust: str) -> str:
    """A Rust constant as a scenario spells it."""
    if rust == "Span::ZERO":
        return "0"
    call = _CALL.fullmatch(rust)
    if call is None:
        return rust.replace("_", "")
    number = int(call[2])
    if call[1] == "from_bits_per_sec":
        return f'"{units.format_rate(number)}"'
    return f'"{units.format_duration(number * _SPAN[call[1]])}"'


def brf_parameters() -> str:
    """BRF's parameters as a table."""
    lines = ["| parameter | takes | literal | resolved | meaning |", "| --- | --- | --- | --- | --- |"]
    lines += [
        f"| `{p.name}` | {p.unit} | `{p.literal}` | `{p.resolved}` | {p.meaning} |" for p in parameters()
    ]
    return "\n".join(lines) + "\n"


PARTS = {
    "docs/scenario-reference.md": {"keys": reference.markdown, "brf parameters": brf_parameters},
    "docs/results.md": {"columns": columns.markdown},
}
"""Page to its generated parts."""


def page(path: str) -> str:
    """A page with its generated parts made anew."""
    text = (ROOT / path).read_text(encoding="utf-8")
    for name, make in PARTS[path].items():
        begin, end = f"<!-- {name}: begin -->\n", f"<!-- {name}: end -->"
        head, _, rest = text.partition(begin)
        _, found, tail = rest.partition(end)
        if not found:
            raise ValueError(f"{path} has no place for {name!r}")
        text = f"{head}{begin}\n{make()}\n{end}{tail}"
    return text


if __name__ == "__main__":
    for name in PARTS:
        (ROOT / name).write_text(page(name), encoding="utf-8")
