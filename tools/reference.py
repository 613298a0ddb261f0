"""Fills in the generated parts of docs/: between `<!-- name: begin -->` and `<!-- name: end -->`.

`python tools/reference.py` rewrites the pages; tests/python/test_docs.py fails when they are out of step.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from narrows import congestion, markdown, units
from narrows.results import columns
from narrows.scenario import reference
from pages import fill

ROOT = Path(__file__).resolve().parent.parent
PARAMS = ROOT / "crates/narrows-control/src/rate/brf/params.rs"


@dataclass(frozen=True)
class Parameter:
    """A parameter of BRF."""

    name: str
    """As in a scenario's `params`."""
    unit: str
    """The unit or the type of its value."""
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
    "Share": "word",
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
        word = re.fullmatch(r"Share::(\w+)", rust)
        return f'"{word[1].lower()}"' if word else rust.replace("_", "")
    number = int(call[2])
    if call[1] == "from_bits_per_sec":
        return f'"{units.format_rate(number)}"'
    return f'"{units.format_duration(number * _SPAN[call[1]])}"'


_PUBLIC = re.compile(
    r"(?P<doc>(?:^ +/// .*\n)+)(?:^ +#\[.*\n)* +pub (?P<name>\w+): (?P<type>[\w<>]+),$", re.MULTILINE
)
# A field on a line of its own, or one of several between braces.
_DEFAULT = re.compile(
    r"(?:^ +|\{ |, )(?P<name>\w+): (?P<value>[^,\n]+?)(?:,$|(?=, \w+: )| \}$)", re.MULTILINE
)
OTHERS = ("pacec", "rcp", "xcp", "bdr", "obp")
"""Rate controllers whose parameters are a plain structure with an `impl Default`."""


def plain_parameters(kind: str) -> Iterator[Parameter]:
    """Parameters of a rate controller from its `params.rs`: fields with doc comments, and their defaults."""
    source = (PARAMS.parent.parent / kind / "params.rs").read_text(encoding="utf-8")
    fields = source[source.index("pub struct Params {") : source.index("impl Default for Params")]
    block = source[source.index("impl Default for Params") : source.index("impl Params {")]
    defaults = {match["name"]: match["value"] for match in _DEFAULT.finditer(block)}
    for match in _PUBLIC.finditer(fields):
        lines = [line.strip().removeprefix("///").strip() for line in match["doc"].strip().splitlines()]
        meaning = re.sub(r"\[(`[^`]+`)\]", r"\1", " ".join(lines))
        rust = _constant(defaults[match["name"]])
        if "::" in rust and _CALL.fullmatch(rust) is None:
            rust = f'"{re.sub(r"(?<!^)(?=[A-Z])", "-", rust.rpartition("::")[2]).lower()}"'
        value = "-" if rust == "None" else _value(rust)
        takes = _TAKES.get(match["type"].removeprefix("Option<").removesuffix(">"), "word")
        yield Parameter(match["name"], takes, value, value, meaning)


def _constant(rust: str) -> str:
    """The value of `module::NAME` of the rate controllers; other expressions are returned unchanged."""
    named = re.fullmatch(r"(\w+)::([A-Z][A-Z0-9_]+)", rust)
    if named is None:
        return rust
    files = (PARAMS.parent.parent / named[1]).glob("*.rs")
    source = "".join(file.read_text(encoding="utf-8") for file in files)
    value = re.search(rf"const {named[2]}: \w+ = (.*);", source)
    if value is None:
        raise ValueError(f"{rust}: no such constant")
    return value[1]


def other_parameters() -> str:
    """Parameters of the other rate controllers, a table each."""
    parts = []
    for kind in OTHERS:
        rows = [(f"`{p.name}`", p.unit, f"`{p.resolved}`", p.meaning) for p in plain_parameters(kind)]
        table = markdown.table(["parameter", "takes", "default", "meaning"], rows)
        parts.append(f"### Parameters of {kind}\n\n{table}\n")
    return "\n".join(parts)


def brf_parameters() -> str:
    """BRF's parameters as a table."""
    rows = [(f"`{p.name}`", p.unit, f"`{p.literal}`", f"`{p.resolved}`", p.meaning) for p in parameters()]
    return markdown.table(["parameter", "takes", "literal", "resolved", "meaning"], rows) + "\n"


_MOST_ABSENT = 3


def congestion_parameters() -> str:
    """Parameters of the congestion controllers: a table each, or the differences from an earlier one's."""
    parts: list[str] = []
    earlier: list[congestion.Algorithm] = []
    for row in congestion.catalogue().values():
        if not row.parameters:
            continue
        alike = [other for other in earlier if _is_like(row, other)]
        like = max(alike, key=lambda other: len(_shared(row, other)), default=row)
        shared = _shared(row, like) if alike else set()
        parts.append(f"### {row.name}\n")
        own = [p for p in row.parameters.values() if p.name not in shared]
        if like is not row:
            absent = [f"`{name}`" for name in like.parameters if name not in row.parameters]
            less = f" except {', '.join(absent)}" if absent else ""
            parts.append(f"The parameters of `{like.name}`{less}{', and these:' if own else '.'}\n")
        if own:
            rows = [
                (f"`{p.name}`", _expected(p), f"`{p.spelled(p.default)}`", p.meaning, p.source) for p in own
            ]
            parts.append(markdown.table(["parameter", "takes", "default", "meaning", "source"], rows) + "\n")
        earlier.append(row)
    return "\n".join(parts)


def kernel_parameters() -> str:
    """Parameters that the kernel's modules have."""
    rows = []
    for row in congestion.catalogue().values():
        if row.linux is None or row.linux.module is None:
            continue
        pairs = [
            f"`{p.name}`" + ("" if p.module.parameter == p.name else f" (`{p.module.parameter}`)")
            for p in row.parameters.values()
            if p.module is not None
        ]
        if pairs:
            rows.append((f"`{row.name}`", f"`{row.linux.module}`", ", ".join(pairs)))
    return markdown.table(["`cc`", "module", "parameter (the module's name, if it differs)"], rows) + "\n"


def presets() -> str:
    """The presets, and the parameters that they stand for."""
    rows = [
        (f"`{name}`", f"`{congestion.spelled(row, preset)}`")
        for name, row, preset in congestion.names()
        if preset is not None
    ]
    return markdown.table(["preset", "stands for"], rows) + "\n"


def _is_like(row: congestion.Algorithm, other: congestion.Algorithm) -> bool:
    """Whether a list of differences from another algorithm is shorter than a table."""
    absent = len(other.parameters.keys() - row.parameters.keys())
    return absent <= _MOST_ABSENT and len(_shared(row, other)) > len(row.parameters) // 2


def _shared(one: congestion.Algorithm, other: congestion.Algorithm) -> set[str]:
    """Parameters that are the same in both, with the same default."""
    return {name for name, p in one.parameters.items() if other.parameters.get(name) == p}


def _expected(parameter: congestion.Parameter) -> str:
    """The values that a parameter takes, with their unit."""
    words = parameter.expected.removeprefix("a ")
    return f"{words}; {parameter.unit}" if parameter.unit else words


PARTS = {
    "docs/reference/scenario-reference.md": {
        "keys": reference.markdown,
        "brf parameters": brf_parameters,
        "other parameters": other_parameters,
    },
    "docs/reference/congestion-controllers.md": {
        "presets": presets,
        "kernel parameters": kernel_parameters,
        "parameters": congestion_parameters,
    },
    "docs/reference/results.md": {"columns": columns.markdown},
}
"""Page to its generated parts."""


def page(path: str) -> str:
    """A page with its parts generated again."""
    text = (ROOT / path).read_text(encoding="utf-8")
    for name, make in PARTS[path].items():
        text = fill(text, name, make())
    return text


if __name__ == "__main__":
    for name in PARTS:
        (ROOT / name).write_text(page(name), encoding="utf-8")
