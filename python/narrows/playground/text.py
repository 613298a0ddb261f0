"""Scenarios of results as TOML, for the playground."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from typing import Any

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def scenario_text(metadata: Mapping[str, Any]) -> str | None:
    """The scenario of results as TOML, with all keys that the results record; None if they record none."""
    scenario = metadata.get("scenario")
    if not isinstance(scenario, dict) or not scenario.get("flows"):
        return None
    return toml(scenario)


def toml(data: Mapping[str, Any]) -> str:
    """A scenario as TOML: its values, then a table for each part, then its lists of tables."""
    lines = [f"{_key(key)} = {_value(value)}" for key, value in data.items() if _is_plain(value)]
    for key, value in data.items():
        if isinstance(value, dict):
            lines += ["", f"[{_key(key)}]", *_pairs(value)]
        elif _is_list_of_tables(value):
            for entry in value:
                lines += ["", f"[[{_key(key)}]]", *_pairs(entry)]
    return "\n".join(lines).lstrip("\n") + "\n"


def _pairs(table: Mapping[str, Any]) -> list[str]:
    return [f"{_key(key)} = {_value(value)}" for key, value in table.items() if value is not None]


def _is_list_of_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(entry, dict) for entry in value)


def _is_plain(value: object) -> bool:
    return not (value is None or isinstance(value, dict) or _is_list_of_tables(value))


def _key(key: str) -> str:
    return key if _BARE.fullmatch(key) else _value(key)


def _value(value: object) -> str:
    match value:
        case bool():
            return str(value).lower()
        case float() if not math.isfinite(value):
            return str(value)  # inf and nan are also TOML
        case dict():
            return f"{{ {', '.join(_pairs(value))} }}" if value else "{}"
        case list():
            return f"[{', '.join(_value(entry) for entry in value)}]"
        case str():
            # TOML has JSON's escapes. JSON leaves DEL as it is, which TOML forbids.
            return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
        case _:
            return str(value)
