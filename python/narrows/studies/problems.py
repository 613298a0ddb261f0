"""Translates a validation error of pydantic into one line in the terms of a study's files."""

from __future__ import annotations

from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from narrows.errors import TYPES, Expected, ScenarioError, choice, found, hint


def translate(error: ValidationError, data: object, model: type[BaseModel]) -> ScenarioError:
    """The first of pydantic's errors as a ScenarioError.

    Args:
        error: the error that pydantic raised.
        data: the data in which pydantic found the error. It shows which parts of pydantic's locations are
            keys, and which are names of types.
        model: the model of the data, which has the valid names of each table.
    """
    # Unknown keys come first, because a misspelled key is probably why another key is missing.
    first: Any = min(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    key = _key(first["loc"], data, last_is_new=first["type"] == "missing")
    return ScenarioError(_message(first, model), key)


def _message(first: Any, model: type[BaseModel]) -> str:
    """The message about an error."""
    value = first.get("input")
    match first["type"]:
        case "extra_forbidden":
            return f"found an unknown key{hint(first['loc'][-1], _names(model, first['loc'][:-1]))}"
        case "missing":
            return "found nothing, expected this key"
        case "literal_error":
            names = [n.strip("'") for n in str(first["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
            return choice(value, names)
        case "value_error":
            is_table = isinstance(value, BaseModel) or (
                isinstance(value, dict) and _is_table(model, first["loc"])
            )
            start = "" if is_table else f"found {found(value)}, "
            return f"{start}expected {_cause(first)}"
        case kind:
            return f"found {found(value)}, expected {TYPES.get(kind) or _bound(first)}"


def _cause(error: Any) -> str:
    cause = error["ctx"]["error"]
    return str(cause) if isinstance(cause, Expected) else "something else"


def _bound(error: Any) -> str:
    """The bound that a number, or the length of a value, violates."""
    ctx: dict[str, Any] = error.get("ctx", {})
    words = {"ge": "at least", "gt": "more than", "le": "at most", "lt": "less than"}
    for name, word in words.items():
        if name in ctx:
            return f"{word} {ctx[name]}"
    if "min_length" in ctx:
        return f"at least {ctx['min_length']} of them"
    if "max_length" in ctx:
        return f"at most {ctx['max_length']} of them"
    return str(error["msg"]).replace("Input should be ", "")


def _key(loc: tuple[int | str, ...], data: object, last_is_new: bool) -> str:
    """`loc` as a dotted path, without the type names that pydantic inserts for unions."""
    parts: list[str] = []
    for i, part in enumerate(loc):
        if isinstance(part, int):
            data = data[part] if isinstance(data, list | tuple) and part < len(data) else None
        elif isinstance(data, dict) and part in data:
            data = data[part]
        elif not (last_is_new and i + 1 == len(loc)):
            continue
        parts.append(str(part))
    return ".".join(parts)


def _is_table(model: type[BaseModel], loc: tuple[int | str, ...]) -> bool:
    """Whether the model expects a table at `loc`. If so, an error at `loc` is about a key of this table."""
    if not loc:
        return True
    fields = [
        field
        for table in _tables(model, loc[:-1])
        for name, field in table.model_fields.items()
        if loc[-1] in (name, field.alias)
    ]
    return not fields or any(_may_be_table(field.annotation) for field in fields)


def _may_be_table(annotation: object) -> bool:
    if get_origin(annotation) is list:
        return False
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return True
    return any(_may_be_table(arg) for arg in get_args(annotation))


def _names(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[str]:
    """The valid keys of the table at `loc`."""
    tables = _tables(model, loc)
    return sorted({field.alias or name for table in tables for name, field in table.model_fields.items()})


def _tables(model: type[BaseModel], loc: tuple[int | str, ...]) -> list[type[BaseModel]]:
    """The models that the table at `loc` may have."""
    at: list[type[BaseModel]] = [model]
    for part in loc:
        if isinstance(part, str):
            at = [inner for table in at for inner in _models_at(table, part)] or at
    return at


def _models_at(table: type[BaseModel], key: str) -> list[type[BaseModel]]:
    for name, field in table.model_fields.items():
        if key in (name, field.alias):
            return _models_in(field.annotation)
    return []


def _models_in(annotation: object) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for arg in get_args(annotation) for m in _models_in(arg)]
