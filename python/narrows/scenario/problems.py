"""Translates a validation error of pydantic into one line in the terms of scenario files."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, get_args, get_origin

from pydantic import BaseModel, ValidationError

from narrows.errors import TYPES, Expected, ScenarioError, choice, found, hint, one_of

_COUNTS = {"leaves": "a number of hosts, 2 or more", "hops": "a number of bottleneck links, 1 or more"}
"""Descriptions of required keys of topologies, for keys whose names do not explain themselves."""


def translate(error: ValidationError, data: object, model: type[BaseModel]) -> ScenarioError:
    """The first of pydantic's errors as a ScenarioError.

    Args:
        error: the error that pydantic raised.
        data: the data in which pydantic found the error. It shows which parts of pydantic's locations are
            keys, and which are tags of unions.
        model: the model of the data, which has the valid names of each table.
    """
    first, key = _first(error, data)
    message, key = _message(first, key, data, model)
    return ScenarioError(f"{message}{_remedy(first, key, model)}", key)


def without_remedy(error: ValidationError, data: object, model: type[BaseModel]) -> ScenarioError:
    """Like `translate`, but for files that are not scenarios.

    The message gives no advice about sweeps and lists.
    """
    message, key = _message(*_first(error, data), data, model)
    return ScenarioError(message, key)


def _first(error: ValidationError, data: object) -> tuple[Any, str]:
    """The error to report first, and its key."""
    # Unknown keys come first, because a misspelled key is probably why another key is missing.
    errors = sorted(error.errors(include_url=False), key=lambda e: e["type"] != "extra_forbidden")
    first = errors[0]
    return first, _key(first["loc"], data, last_is_new=first["type"] == "missing")


def _message(first: Any, key: str, data: object, model: type[BaseModel]) -> tuple[str, str]:
    """The message about an error, and the key that the message is about."""
    value = first.get("input")
    match first["type"]:
        case "extra_forbidden":
            return f"found an unknown key{_other_key(first['loc'], data, model)}", key
        case "missing":
            what = _COUNTS.get(str(first["loc"][-1]), "this key")
            return f"found nothing, expected {what}", key
        case "union_tag_not_found":
            tag = str(first["ctx"]["discriminator"]).strip("'")
            if isinstance(value, dict):
                return (
                    f"found nothing, expected {_tag_choice(tag, _tables(model, first['loc']))}",
                    f"{key}.{tag}",
                )
            return f"found {found(value)}, expected a table", key
        case "union_tag_invalid":
            tag = str(first["ctx"]["discriminator"]).strip("'")
            tags = [t.strip("'") for t in str(first["ctx"]["expected_tags"]).split(", ")]
            offered = [name for name in tags if name != _BY_NAME]
            return one_of(first["ctx"]["tag"], offered, f"a {tag}"), f"{key}.{tag}"
        case "literal_error":
            names = [n.strip("'") for n in str(first["ctx"]["expected"]).replace(" or ", ", ").split(", ")]
            return choice(value, names), key
        case "value_error":
            is_table = isinstance(value, BaseModel) or (
                isinstance(value, dict) and _is_table(model, first["loc"])
            )
            start = "" if is_table else f"found {found(value)}, "
            return f"{start}expected {_cause(first)}", key
        case "model_type" if isinstance(value, str) and first["loc"][-1] == "trace":
            return f"found {found(value)}, expected a table such as {{ file = {found(value)} }}", key
        case kind:
            return f"found {found(value)}, expected {TYPES.get(kind) or _bound(first)}", key


def _tag_choice(tag: str, tables: Sequence[type[BaseModel]]) -> str:
    """The values of a union's tag, as the end of "expected ..."."""
    tags = [name for table in tables for name in _tags(table)]
    if _BY_NAME not in tags:
        return f"a {tag}: {', '.join(tags)}"
    tags.remove(_BY_NAME)
    return f"a {tag} ({', '.join(tags)}), or a name that `narrows list networks` has"


def _other_key(loc: tuple[int | str, ...], data: object, model: type[BaseModel]) -> str:
    """The valid key that is most similar to an unknown key, or the list of valid keys."""
    names = _names(model, loc[:-1])
    if len(loc) == 1 and isinstance(data, dict):
        for place in _PLACES:
            if place.split(".")[0] in {*data, "sweep"} and loc[0] in _names(
                model, tuple(place.split(".")[:1])
            ):
                return f"; nearest is {f'{place}.{loc[0]}'!r}"
    return hint(loc[-1], names)


_LISTS_ALLOWED = ("too_short", "too_long", "extra_forbidden")
"""Types of pydantic's errors for which the message does not suggest a list under [sweep.vary]."""
_VARY = "sweep.vary."
_BY_NAME = "named"
"""Kind of a topology for which the scenario has only a `name`."""
_PLACES = ("topology", "links.0", "flows.0", "sweep")
"""Tables whose keys users most likely write at the top level by mistake."""


def _remedy(first: Any, key: str, model: type[BaseModel]) -> str:
    """Advice on how to write a value that has the wrong form. Empty if there is no advice."""
    value = first.get("input")
    is_named = bool(first["loc"]) and isinstance(first["loc"][-1], str)
    is_in_sweep = key.split(".", maxsplit=1)[0] == "sweep"
    if is_named and not is_in_sweep and _is_series(value) and first["type"] not in _LISTS_ALLOWED:
        return f'; to vary it, write "{key}" = [...] under [sweep.vary]'
    if isinstance(value, dict) and first["type"] == "list_type":
        if key.startswith(_VARY):
            return f'; put the dotted key in quotes: "{_deepest(key.removeprefix(_VARY), value)}" = [...]'
        names = [part for part in key.split(".") if not part.isdigit()]
        if is_list_of_tables(model, names) and not any(str(name).isdigit() for name in value):
            return f"; write {double_brackets(names)}"
    return ""


def double_brackets(names: Sequence[str]) -> str:
    """The header of an entry of a list of tables."""
    return f"[[{'.'.join(names)}]] with double brackets"


def is_list_of_tables(model: type[BaseModel], names: Sequence[str]) -> bool:
    """Whether the dotted key with these parts is a list of tables."""
    *parents, last = names
    fields = [
        field
        for table in _tables(model, tuple(parents))
        for name, field in table.model_fields.items()
        if last in (name, field.alias)
    ]
    return any(get_origin(field.annotation) is list and _models_in(field.annotation) for field in fields)


def _is_series(value: object) -> bool:
    """Whether `value` is a list of plain values. The user probably meant one value per run."""
    return isinstance(value, list) and bool(value) and not any(isinstance(v, list | dict) for v in value)


def _deepest(key: str, value: object) -> str:
    """The dotted key of the first value in nested tables."""
    while isinstance(value, dict) and value:
        name, value = next(iter(value.items()))
        key = f"{key}.{name}"
    return key


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
    """`loc` as a dotted path, without the tags and type names that pydantic inserts for unions."""
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
    """The models of the table at `loc`: several if the table is a union whose tag is not in `loc`."""
    at: list[type[BaseModel]] = [model]
    for part in loc:
        if isinstance(part, int):
            continue
        inner = [m for table in at for m in _models_at(table, part)]
        if inner:
            at = inner
            continue
        # If the part is a union's tag, keep only the table with this tag.
        at = [m for m in at if part in _tags(m)] or at
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


def _tags(table: type[BaseModel]) -> list[str]:
    return [
        str(tag)
        for name in ("kind", "model")
        if name in table.model_fields
        for tag in get_args(table.model_fields[name].annotation)
    ]
