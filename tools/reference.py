"""Fills in the generated parts of docs/: between `<!-- name: begin -->` and `<!-- name: end -->`.

`python tools/reference.py` rewrites the pages; tests/python/test_docs.py fails if a page is outdated.
"""

from pathlib import Path

from narrows import congestion, markdown, rate
from narrows.parameters import Parameter
from narrows.results import columns
from narrows.scenario import schema
from pages import fill

ROOT = Path(__file__).resolve().parent.parent


def rate_parameters() -> str:
    """Parameters of the rate controllers, with a table for each controller."""
    parts = []
    for row in rate.catalogue().values():
        by_mode = bool(row.literal)
        rows = []
        for p in row.parameters.values():
            defaults = [f"`{p.spelled(p.default)}`"]
            if by_mode:
                defaults.insert(0, f"`{p.spelled(row.literal.get(p.name, p.default))}`")
            rows.append((f"`{p.name}`", _expected(p), *defaults, p.meaning, p.source))
        modes = ["literal", "resolved"] if by_mode else ["default"]
        table = markdown.table(["parameter", "takes", *modes, "meaning", "source"], rows)
        parts.append(f"### Parameters of {row.name}\n\n{table}\n")
    return "\n".join(parts)


_MOST_ABSENT = 3


def congestion_parameters() -> str:
    """Parameters of each congestion controller: a table, or the differences from an earlier controller."""
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
            less = f" (except {', '.join(absent)})" if absent else ""
            parts.append(f"The parameters of `{like.name}`{less}{', and these:' if own else '.'}\n")
        if own:
            rows = [
                (f"`{p.name}`", _expected(p), f"`{p.spelled(p.default)}`", p.meaning, p.source) for p in own
            ]
            parts.append(markdown.table(["parameter", "takes", "default", "meaning", "source"], rows) + "\n")
        earlier.append(row)
    return "\n".join(parts)


def kernel_parameters() -> str:
    """The parameters that can also be set in the kernel's modules."""
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
    """The presets, and the algorithm and parameters that each preset selects."""
    rows = [
        (f"`{name}`", f"`{congestion.spelled(row, preset)}`")
        for name, row, preset in congestion.names()
        if preset is not None
    ]
    return markdown.table(["preset", "stands for"], rows) + "\n"


def _is_like(row: congestion.Algorithm, other: congestion.Algorithm) -> bool:
    """Whether the page lists only an algorithm's differences from `other`, because most parameters agree."""
    absent = len(other.parameters.keys() - row.parameters.keys())
    return absent <= _MOST_ABSENT and len(_shared(row, other)) > len(row.parameters) // 2


def _shared(one: congestion.Algorithm, other: congestion.Algorithm) -> set[str]:
    """Parameters that both algorithms have with the same default and the same properties."""
    return {name for name, p in one.parameters.items() if other.parameters.get(name) == p}


def _expected(parameter: Parameter) -> str:
    """The values that a parameter takes, with their unit."""
    words = parameter.expected.removeprefix("a ")
    return f"{words}; {parameter.unit}" if parameter.unit else words


PARTS = {
    "docs/reference/scenario-reference.md": {
        "keys": schema.markdown,
        "rate parameters": rate_parameters,
    },
    "docs/reference/congestion-controllers.md": {
        "presets": presets,
        "kernel parameters": kernel_parameters,
        "parameters": congestion_parameters,
    },
    "docs/reference/results.md": {"columns": columns.markdown},
}
"""Generated parts of each page."""


def page(path: str) -> str:
    """The text of a page, with its parts generated again."""
    text = (ROOT / path).read_text(encoding="utf-8")
    for name, make in PARTS[path].items():
        text = fill(text, name, make())
    return text


if __name__ == "__main__":
    for name in PARTS:
        (ROOT / name).write_text(page(name), encoding="utf-8")
