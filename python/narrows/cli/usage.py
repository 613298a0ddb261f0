"""Error messages, each of one line, about arguments that the command line does not accept."""

from __future__ import annotations

import re
from typing import Any

import typer

from narrows.errors import choice, found, one_line

UsageError: Any = typer.BadParameter.__mro__[1]
"""click's class, which is in click or in typer, depending on typer's version."""

_EXPECTED = {
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_parsing": "a number",
    "greater_than": "more than {gt}",
    "greater_than_equal": "at least {ge}",
    "less_than": "less than {lt}",
    "less_than_equal": "at most {le}",
    "enum": "{expected}",
    "literal_error": "{expected}",
}
"""The text for the expected value, by pydantic's type of error. The names in braces are pydantic's names of
the bounds."""

_WRONG_CHOICE = re.compile(r"(Value error, )?'(?P<value>.*)' is not one of (?P<known>.*)", re.DOTALL)
"""click's message about a value that is not among the choices."""


def usage(error: Any) -> str:
    """A usage error as one line, or the help if the command was called without arguments."""
    if (line := _wrong_value(error)) is None:
        # pydantic puts a prefix before the messages of Narrows.
        line = error.format_message().replace("Value error, ", "")
        if "\n" in line or not line:
            return str(line)
    command = error.ctx.command_path if error.ctx is not None else "narrows"
    return f"{command}: {one_line(line).rstrip('.')}; see {command} -h"


def _wrong_value(error: Any) -> str | None:
    """For a value that click or pydantic refused: the option, the found value and the expected value."""
    details = getattr(error.__cause__, "errors", None)
    parameter = getattr(error, "param", None)
    if parameter is None:
        return None
    name = parameter.opts[0] if parameter.opts[0].startswith("-") else parameter.name
    if wrong := _WRONG_CHOICE.fullmatch(str(error.message)):
        known = re.findall(r"'([^']+)'", wrong["known"])
        return f"{name}: {choice(wrong['value'], known)}"
    first = details()[0] if details is not None else None
    if first is None or (expected := _EXPECTED.get(first["type"])) is None:
        return None
    return f"{name}: found {found(first['input'])}, expected {expected.format(**first.get('ctx', {}))}"
