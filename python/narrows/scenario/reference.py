"""Makes the reference of scenario files, with a row per key, from the models and their docstrings."""

from __future__ import annotations

import inspect
import json
import types
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Annotated, Any, Literal, Union, get_args, get_origin, get_type_hints

import annotated_types as bounds
from pydantic import BeforeValidator
from pydantic.fields import FieldInfo

from narrows.markdown import table as markdown_table
from narrows.scenario import (
    beginning,
    expectations,
    fields,
    model,
    named,
    network,
    program,
    topologies,
    traffic,
)
from narrows.scenario.docstrings import docstrings

TABLES: dict[str, list[type[fields.Table]]] = {
    "Top level": [model.Scenario],
    "Topology": [topologies.Dumbbell, topologies.ParkingLot, topologies.Star, named.Named, named.Access],
    "Nodes": [network.Node],
    "Links": [network.Link, network.Traits],
    "Changes": [network.Change, beginning.Beginning],
    "Queues": [
        network.Fifo,
        network.Threshold,
        network.Red,
        network.Codel,
        network.FqCodel,
        network.Priority,
        network.Htb,
        network.HtbClass,
    ],
    "Random loss": [network.Bernoulli, network.GilbertElliott],
    "Jitter": [network.Jitter],
    "Policers": [network.Policer],
    "Traces": [network.Trace],
    "Flows": [
        traffic.Flow,
        traffic.Congestion,
        traffic.App,
        traffic.AppChange,
        traffic.Arrivals,
        traffic.Requests,
        traffic.SizeDistribution,
    ],
    "Programs": [program.Program],
    "Rate controllers": [model.RateController, model.RateStep],
    "SDN controller": [model.Sdn],
    "Probes": [model.Probes],
    "Captures": [model.Capture],
    "Kernel backend": [model.Kernel],
    "Sweep": [model.Sweep, model.Case],
    "Expectations": [expectations.Expectation, expectations.Selection],
}
"""The models below each heading."""

PLACES: dict[type[fields.Table], str] = {
    named.Named: 'name = "..."',
    named.Access: "access = { ... }",
    network.Node: "[[nodes]]",
    network.Link: "[[links]]",
    network.Change: "at = [{ ... }]",
    beginning.Beginning: "when = { ... }",
    network.HtbClass: "classes = [{ ... }]",
    network.Jitter: "jitter = { ... }",
    network.Policer: "policer = { ... }",
    network.Trace: "trace = { ... }",
    traffic.Flow: "[[flows]]",
    traffic.Congestion: "cc = { ... }",
    traffic.App: "app = { ... }",
    traffic.AppChange: "app.at = [{ ... }]",
    traffic.Arrivals: "arrivals = { ... }",
    traffic.Requests: "requests = { ... }",
    traffic.SizeDistribution: "arrivals.size = { ... }, requests.size = { ... }",
    program.Program: "program = { ... }",
    model.RateController: "[[rate_controllers]]",
    model.RateStep: "shape = [{ ... }]",
    model.Sdn: "[sdn]",
    model.Probes: "[probes]",
    model.Capture: "[capture]",
    model.Kernel: "[kernel]",
    model.Sweep: "[sweep]",
    model.Case: "[[sweep.case]]",
    expectations.Expectation: "[[expect]]",
    expectations.Selection: "than = { ... }",
}
"""For each table, the line with which it begins in a scenario file. Tables with a kind are not in this
list."""

_TYPES: list[tuple[Any, str]] = [
    (fields.PositiveDuration, "time above 0"),
    (fields.Rtt, "time above 0"),
    (fields.Delay, "time"),
    (fields.Period, "time of 10us or more"),
    (fields.PeriodOrZero, "0, or time of 10us or more"),
    (fields.Duration, "time"),
    (fields.Rate, "rate"),
    (fields.RateOrZero, "rate or 0"),
    (fields.ReceiveBuffer, '"auto", or size from 4KiB to 1GiB'),
    (fields.Size, "size"),
    (fields.Probability, "probability"),
    (fields.Limit, "queue length"),
    (fields.FileName, "name"),
    (program.Command, "text"),
    (fields.Name, "name"),
    (fields.Quantity, "number in the unit of the measure, or text with a unit"),
    (fields.Data, "any value"),
    (fields.Flag, "true or false"),
    (fields.Int, "whole number"),
    (fields.Float, "number"),
    (str, "text"),
]
"""The name of each field type. A type that allows fewer values comes before a type that includes it."""

_LARGEST_SHOWN = 1_000_000
"""Bounds above this value are not shown. They are limits of the implementation, not of the format."""


@dataclass(frozen=True)
class Row:
    """A key of a table."""

    key: str
    """The key as a scenario file spells it."""
    takes: str
    """Type or unit of the value in words."""
    default: str
    """The default value, as written in a scenario file. Empty if there is no default."""
    meaning: str
    """Docstring of the key in the model."""


def markdown() -> str:
    """The generated part of the scenario reference, as Markdown."""
    parts: list[str] = []
    for heading, models in TABLES.items():
        parts.append(f"### {heading}")
        for table in models:
            # Leave out `Traits`, the keys of `back`, because the table of links lists the same keys.
            if table is not network.Traits:
                parts.extend(_section(table))
    return "\n\n".join(parts) + "\n"


def reachable() -> set[type[fields.Table]]:
    """Every table that a scenario may hold."""
    found: set[type[fields.Table]] = set()
    waiting: list[type[fields.Table]] = [model.Scenario]
    while waiting:
        table = waiting.pop()
        if table not in found:
            found.add(table)
            for hint in _hints(table).values():
                waiting.extend(_tables(hint))
    return found


def rows(table: type[fields.Table]) -> list[Row]:
    """The keys of a table. The table's own keys come before inherited keys.

    For a topology, the keys that every link has are left out.
    """
    hints, shared, texts = _hints(table), set(_shared(table)), docstrings(table)
    names = [name for name in table.model_fields if name not in shared and name != _tag(table)]
    names.sort(key=lambda name: name not in inspect.get_annotations(table))
    return [
        Row(
            key=table.model_fields[name].alias or name,
            takes=_type(hints[name]),
            default=_default(table, name),
            meaning=" ".join(texts.get(name, "").split()),
        )
        for name in names
    ]


def _section(table: type[fields.Table]) -> list[str]:
    tag = _tag(table)
    about = " ".join((inspect.getdoc(table) or "").split("\nRaises:")[0].split())
    place = PLACES.get(table) or (f'{tag} = "{get_args(_hints(table)[tag])[0]}"' if tag else None)
    shared = _shared(table)
    if shared:
        about += f" {_series(shared, 'and')} are those of [a link](#links)."
    keys = [(f"`{row.key}`", row.takes, row.default or "-", row.meaning or "-") for row in rows(table)]
    table_of_keys = markdown_table(["key", "takes", "default", "meaning"], keys)
    return [f"**`{place}`** {about}" if place else about, table_of_keys]


def _series(names: Iterable[str], last: str) -> str:
    """The names as a list in words, such as ```a`, `b` and `c```."""
    *first, end = [f"`{name}`" for name in names]
    return f"{', '.join(first)} {last} {end}" if first else end


def _shared(table: type[fields.Table]) -> list[str]:
    """Keys of a topology that apply to its links unchanged."""
    if not issubclass(table, network.Traits) or table in (network.Traits, network.Link):
        return []
    own = {name for base in table.__mro__ if base is not network.Traits and issubclass(base, network.Traits)
           for name in inspect.get_annotations(base)}  # fmt: skip
    return [name for name in network.Traits.model_fields if name not in own]


def _hints(table: type[fields.Table]) -> dict[str, Any]:
    hints = get_type_hints(table, include_extras=True)
    return {name: hints[name] for name in table.model_fields}


def _tag(table: type[fields.Table]) -> str | None:
    """The key (`kind` or `model`) whose value identifies this table among the tables at the same place."""
    for name in ("kind", "model"):
        if name in table.model_fields and get_origin(_hints(table)[name]) is Literal:
            return name
    return None


def _tables(hint: Any) -> list[type[fields.Table]]:
    if isinstance(hint, type) and issubclass(hint, fields.Table):
        return [hint]
    return [table for inner in get_args(hint) for table in _tables(inner)]


def _type(hint: Any) -> str:
    """A type in words."""
    if get_origin(hint) in (Union, types.UnionType):
        return _union([member for member in get_args(hint) if member is not types.NoneType])
    if get_origin(hint) is Annotated:
        return _annotated(hint)
    if get_origin(hint) is Literal:
        return _series((json.dumps(value) for value in get_args(hint)), "or")
    if get_origin(hint) is list:
        return f"list of {_plural(_type(get_args(hint)[0]))}"
    if get_origin(hint) is dict:
        return f"table of {_plural(_type(get_args(hint)[1]))} by key"
    if _tables(hint):
        return _link(hint)
    return next(words for known, words in _TYPES if known == hint)


def _union(members: list[Any]) -> str:
    """The types of a union in words. If several types have the same words, the words occur only once."""
    words = list(dict.fromkeys(_type(member) for member in members))
    return (", or " if any(", " in one for one in words) else " or ").join(words)


def _annotated(hint: Any) -> str:
    base, *metadata = get_args(hint)
    for item in metadata:
        if isinstance(item, BeforeValidator) and _has_input_type(item):
            return _type(item.json_schema_input_type)
    for known, words in _TYPES:
        if get_origin(known) is Annotated and get_args(known)[0] == base:
            own = list(get_args(known)[1:])
            if metadata[: len(own)] == own:
                return words + _range(metadata[len(own) :])
    return _type(base) + _range(metadata)


def _has_input_type(item: BeforeValidator) -> bool:
    return get_origin(item.json_schema_input_type) is not None


def _range(metadata: list[Any]) -> str:
    """The bounds of a field in words, such as ``, 1 to 4096``."""
    least = most = ""
    above = False
    for item in (inner for outer in metadata if isinstance(outer, FieldInfo) for inner in outer.metadata):
        match item:
            case bounds.Ge():
                least = f"{item.ge:g}"
            case bounds.Gt():
                least, above = f"{item.gt:g}", True
            case bounds.Le() if float(item.le) <= _LARGEST_SHOWN:  # type: ignore[arg-type]
                most = f"{item.le:.9g}"
    if above:
        return f", above {least}" + (f", up to {most}" if most else "")
    if least:
        return f", {least} to {most}" if most else f", {least} or more"
    return ""


def _link(hint: Any) -> str:
    first = _tables(hint)[0]
    heading = next(heading for heading, models in TABLES.items() if first in models)
    return f"[table](#{heading.lower().replace(' ', '-')})"


def _plural(words: str) -> str:
    if words == "list of times":
        return "pairs of times"
    first, *rest = words.split(" ", 1)
    if words.startswith("[table]"):
        return words.replace("[table]", "[tables]")
    if first in ("time", "list"):
        return " ".join([f"{first}s", *rest])
    return f"{words}s"


def _default(table: type[fields.Table], name: str) -> str:
    if (table, name) == (model.Scenario, "name"):
        return "the file's stem"
    field = table.model_fields[name]
    if field.is_required():
        return "required"
    if field.default is None:
        return ""
    written = table.model_construct(**{name: field.default}).model_dump(mode="json", include={name})[name]
    return "" if isinstance(written, dict | list) else f"`{json.dumps(written, ensure_ascii=False)}`"
