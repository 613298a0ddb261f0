"""Field types of the scenario's models. Types of physical quantities parse and print values with units."""

from __future__ import annotations

import math
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    PlainSerializer,
    WithJsonSchema,
)

from narrows import units
from narrows.errors import Expected


def _describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    from narrows.scenario.docstrings import describe  # noqa: PLC0415 (needed for the JSON schema only)

    describe(schema, model)


class Table(BaseModel):
    """A TOML table: unknown keys are errors."""

    model_config = ConfigDict(
        extra="forbid",
        populate_by_name=True,
        allow_inf_nan=False,
        frozen=True,
        # Docstrings of fields are read only for the JSON schema, and validators are built only at first use.
        # Otherwise, the import of the models would add 0.1 s to every command.
        json_schema_extra=_describe,
        defer_build=True,
    )


def _schema(pattern: str, examples: list[str], *also: dict[str, Any]) -> WithJsonSchema:
    text = {"type": "string", "pattern": pattern, "examples": examples}
    return WithJsonSchema({"anyOf": [text, *also]} if also else text)


def _positive(value: int) -> int:
    if value <= 0:
        raise Expected("more than zero")
    return value


def _span(least: int, most: int) -> AfterValidator:
    def check(nanos: int) -> int:
        if not least <= nanos <= most:
            low, high = units.format_duration(least), units.format_duration(most)
            raise Expected(f"a time from {low} to {high}")
        return nanos

    return AfterValidator(check)


def _period_or_zero(nanos: int) -> int:
    if 0 < nanos < _LEAST_PERIOD:
        raise Expected(f"0 or a time from {units.format_duration(_LEAST_PERIOD)}")
    return nanos


def _receive_buffer(value: object) -> int | str:
    expected = "'auto' or a size from 4KiB to 1GiB with its unit, such as '64KiB'"
    if value == AUTO:
        return AUTO
    try:
        size = units.parse_size(value)
    except Expected:
        raise Expected(expected) from None
    if not 4 << 10 <= size <= 1 << 30:
        raise Expected(expected)
    return size


def _name(value: object) -> str:
    expected = "a name of up to 64 printable characters without spaces"
    if not isinstance(value, str) or not 0 < len(value) <= 64:
        raise Expected(expected)
    if not value.isprintable() or " " in value:
        raise Expected(expected)
    return value


def _file_name(value: str) -> str:
    if "/" in value or "\\" in value or value.startswith((".", "-")):
        raise Expected("a name without slashes that does not begin with a dot or dash")
    return value


def _quantity(value: object) -> float | str:
    expected = "a number, or text with a unit such as '40mbit', '5ms' or '1%'"
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise Expected(expected)
    return value if isinstance(value, str) else float(value)


def _data(value: Any, depth: int = 0) -> Any:
    """A value that JSON can represent: no TOML dates, no NaN, no infinity."""
    if depth > _DEEPEST:
        raise Expected(f"tables nested no deeper than {_DEEPEST}")
    if isinstance(value, dict):
        for key, inner in value.items():
            if not isinstance(key, str):
                raise Expected("keys that are strings")
            _data(inner, depth + 1)
    elif isinstance(value, list):
        for inner in value:
            _data(inner, depth + 1)
    elif isinstance(value, float) and not math.isfinite(value):
        raise Expected("finite numbers")
    elif isinstance(value, int) and abs(value) > _LARGEST:
        raise Expected("numbers of at most 64 bits")
    elif not isinstance(value, str | int | float | bool):
        raise Expected("strings, numbers, true, false, lists and tables")
    return value


AUTO = "auto"
"""If a key has this value in the scenario, Narrows derives the actual value from the network."""
_LEAST_PERIOD = 10_000
MOST_DELAY = 1000 * units.NANOS_PER_SEC
"""Maximum propagation delay, ns."""
_DEEPEST = 16
_LARGEST = 2**63 - 1
_ZERO = {"const": 0}
_TIME = _schema(r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*(ns|us|µs|ms|s|sec|min|h)\s*$", ["20ms", "30s"], _ZERO)
_RATE = _schema(
    r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*([kKmMgGtT]i?)?([bB]its?|b|B)(/s|ps)?\s*$", ["100mbit", "2.5Mbit/s"]
)
_SIZE = _schema(r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*([kKmMgGtT]i?)?(B|[bB]ytes?)\s*$", ["64kB", "1MiB"], _ZERO)

Duration = Annotated[
    int,
    BeforeValidator(units.parse_duration),
    PlainSerializer(units.format_duration, when_used="json"),
    _TIME,
]
"""A duration in nanoseconds; zero is allowed."""
PositiveDuration = Annotated[Duration, AfterValidator(_positive)]
"""A duration in nanoseconds, above zero."""
Delay = Annotated[Duration, _span(0, MOST_DELAY)]
"""A one-way propagation delay in nanoseconds."""
Rtt = Annotated[Duration, _span(1, MOST_DELAY)]
"""A two-way propagation delay in nanoseconds."""
Period = Annotated[Duration, _span(_LEAST_PERIOD, units.MAX_NANOS)]
"""A period in nanoseconds."""
PeriodOrZero = Annotated[Duration, AfterValidator(_period_or_zero)]
"""A period in nanoseconds. Zero means that the periodic event never happens."""
RateOrZero = Annotated[
    int, BeforeValidator(units.parse_rate), PlainSerializer(units.format_rate, when_used="json"), _RATE
]
"""An L3 rate in bit/s; zero is an outage."""
Rate = Annotated[RateOrZero, AfterValidator(_positive)]
"""An L3 rate in bit/s, above zero."""
Size = Annotated[
    int,
    BeforeValidator(units.parse_size),
    AfterValidator(_positive),
    PlainSerializer(units.format_size, when_used="json"),
    _SIZE,
]
"""A size in bytes, above zero."""
ReceiveBuffer = Annotated[
    int | Literal["auto"],
    BeforeValidator(_receive_buffer),
    PlainSerializer(lambda value: value if value == AUTO else units.format_size(value), when_used="json"),
    _schema(r"^(auto|\s*[0-9.]+([eE][+-]?[0-9]+)?\s*([kKmMgGtT]i?)?(B|[bB]ytes?)\s*)$", ["auto", "6MiB"]),
]
"""A size in bytes, or "auto" for a size that Narrows derives from the scenario's network."""
Probability = Annotated[
    float,
    BeforeValidator(units.parse_probability),
    WithJsonSchema(
        {
            "anyOf": [
                {"type": "number", "minimum": 0, "maximum": 1},
                {
                    "type": "string",
                    "pattern": r"^\s*[0-9.]+([eE][+-]?[0-9]+)?\s*%?\s*$",
                    "examples": ["0.1%"],
                },
            ]
        }
    ),
]
"""A probability between 0 and 1."""
Limit = Annotated[
    units.Limit,
    BeforeValidator(units.parse_limit),
    PlainSerializer(str, when_used="json"),
    _schema(
        r"^(infinite|\s*[0-9.]+([eE][+-]?[0-9]+)?\s*(p|packets|pkts|bdp|BDP|([kKmMgGtT]i?)?(B|[bB]ytes?))\s*)$",
        ["1000p", "150kB", "1bdp", "infinite"],
    ),
]
"""Length of a queue."""
Name = Annotated[
    str, BeforeValidator(_name), WithJsonSchema({"type": "string", "minLength": 1, "maxLength": 64})
]
"""A name of a node, link or flow."""
FileName = Annotated[Name, AfterValidator(_file_name)]
"""A name that is also valid as the name of a folder."""
Quantity = Annotated[
    float | str,
    BeforeValidator(_quantity),
    WithJsonSchema({"anyOf": [{"type": "number"}, {"type": "string"}], "examples": ["40mbit", "5ms", "1%"]}),
]
"""A value of a measure: a number in the measure's unit, or text with a unit."""
Data = Annotated[Any, AfterValidator(_data)]
"""A value that JSON can represent. Code outside this module makes further checks."""
Flag = Annotated[bool, Field(strict=True)]
"""true or false, without conversion from other types."""
Int = Annotated[int, Field(strict=True)]
"""A whole number."""
Float = Annotated[float, Field(strict=True)]
"""A number, neither NaN nor infinite."""
