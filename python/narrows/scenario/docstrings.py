"""Reads the docstrings of a model's fields from its source, when they are needed.

pydantic could read them, too, but would read them at each start.
"""

from __future__ import annotations

import ast
import functools
import inspect
import textwrap
from typing import Any

from pydantic import BaseModel


def docstrings(model: type[BaseModel]) -> dict[str, str]:
    """The docstrings of fields, by name. If a subclass redefines a field, it must repeat the docstring."""
    found: dict[str, str] = {}
    for name in model.model_fields:
        owner = next(base for base in model.__mro__ if name in inspect.get_annotations(base))
        if name in _own(owner):
            found[name] = _own(owner)[name]
    return found


@functools.cache
def _own(owner: type) -> dict[str, str]:
    tree = ast.parse(textwrap.dedent(inspect.getsource(owner)))
    definition = tree.body[0]
    assert isinstance(definition, ast.ClassDef)
    found: dict[str, str] = {}
    for field, after in zip(definition.body, definition.body[1:], strict=False):
        if isinstance(field, ast.AnnAssign) and isinstance(field.target, ast.Name):
            match after:
                case ast.Expr(value=ast.Constant(value=str(text))):
                    found[field.target.id] = inspect.cleandoc(text)
    return found


def describe(schema: dict[str, Any], model: type[BaseModel]) -> None:
    """Add the docstrings to the properties of a model's JSON schema."""
    properties = schema.get("properties", {})
    for name, text in docstrings(model).items():
        for key in {name, model.model_fields[name].alias} & set(properties):
            properties[key].setdefault("description", text)
