"""The JSON schema of scenario files, generated from the models. `schema.json` is the schema as text."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from narrows import congestion, rate
from narrows.parameters import NONE, Parameter
from narrows.scenario import fields
from narrows.scenario.model import Scenario

FILE = Path(__file__).with_name("schema.json")


def text() -> str:
    """The JSON schema of scenarios, as `narrows schema` prints it."""
    schema = _in_lines(Scenario.model_json_schema(by_alias=True, mode="validation"))
    # Leave out the default of `name` in the model, which applies only to scenarios that do not come from a
    # file.
    del schema["properties"]["name"]["default"]
    schema["$defs"]["Congestion"]["allOf"] = [_parameters(row) for row in congestion.catalogue().values()]
    schema["$defs"]["RateController"]["allOf"] = [_params(row) for row in rate.catalogue().values()]
    schema["$schema"] = "https://json-schema.org/draft/2020-12/schema"
    schema["title"] = "Narrows scenario"
    return json.dumps(schema, indent=2, ensure_ascii=False, sort_keys=True) + "\n"


def _parameters(row: congestion.Algorithm) -> dict[str, Any]:
    """The schema of an algorithm's parameters, for tables with the name of the algorithm or of a preset."""
    names = {"properties": {"name": {"enum": [row.name, *row.presets]}}, "required": ["name"]}
    known = {parameter.name: _parameter(parameter) for parameter in row.parameters.values()}
    return {"if": names, "then": {"properties": {"name": True, **known}, "additionalProperties": False}}


def _params(row: rate.RateController) -> dict[str, Any]:
    """The schema of the parameters of this kind of rate controller."""
    known = {parameter.name: _parameter(parameter) for parameter in row.parameters.values()}
    params = {"properties": known, "additionalProperties": False}
    return {
        "if": {"properties": {"kind": {"const": row.name}}, "required": ["kind"]},
        "then": {"properties": {"params": params}},
    }


def _parameter(parameter: Parameter) -> dict[str, Any]:
    """The schema of a parameter's values."""
    bounds = {"minimum": parameter.min, "maximum": parameter.max}
    values: dict[str, dict[str, Any]] = {
        "flag": {"type": "boolean"},
        "word": {"enum": list(parameter.words)},
        "text": {"type": "string"},
        "contents": {"type": "string"},
        "whole": {"type": "integer", **bounds},
        "number": {"anyOf": [{"type": "number", **bounds}, {"type": "string", "pattern": "^ *[0-9.]+ *%$"}]},
        "time": _schema_of(fields.Duration),
        "rate": _schema_of(fields.RateOrZero),
    }
    value = values[parameter.kind]
    if parameter.optional:
        value = {"anyOf": [value, {"const": NONE}]}
    default = json.loads(parameter.spelled(parameter.default))
    return {**value, "default": default, "description": f"{parameter.meaning} Takes {parameter.expected}."}


@functools.cache
def _schema_of(field: Any) -> dict[str, Any]:
    return TypeAdapter(field).json_schema()


def _in_lines(part: Any) -> Any:
    """The schema with each paragraph of a description on one line."""
    if isinstance(part, list):
        return [_in_lines(item) for item in part]
    if not isinstance(part, dict):
        return part
    return {
        key: _paragraphs(value) if key == "description" and isinstance(value, str) else _in_lines(value)
        for key, value in part.items()
    }


def _paragraphs(text: str) -> str:
    """Leave out the `Raises` section, which concerns Python only."""
    paragraphs = [" ".join(paragraph.split()) for paragraph in text.split("\n\n")]
    return "\n\n".join(paragraph for paragraph in paragraphs if not paragraph.startswith("Raises:"))
