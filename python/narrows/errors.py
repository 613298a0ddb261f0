"""Errors that a user can fix. Each error is one line."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

_LONGEST_FOUND = 60
_ALIKE = 0.6
"""Minimum difflib ratio at which two names are near each other. 'brv' is near 'brf' (0.67); 'copa' is not
near 'xcp' (0.57)."""


class NarrowsError(Exception):
    """An error that the user can fix.

    The error's text is one line, which the CLI prints before it exits with 2.
    """

    left: object = None
    """The results of the sweep's finished runs, if this error stopped a sweep and the results are on disk.
    See `narrows.results.results.left_by`."""


class ScenarioError(NarrowsError):
    """A scenario that is not valid. The text has the file, the key, what was found and what was expected.

    Args:
        message: the problem, e.g. ``found '10 apples', expected a rate such as '100mbit'``.
        key: dotted path in the scenario, e.g. ``links.0.rate``.
        source: path of the file, or another name of the source.
    """

    def __init__(self, message: str, key: str = "", source: str = "") -> None:
        self.message = one_line(message)
        self.key = one_line(key)
        self.source = one_line(source)
        super().__init__(": ".join(part for part in (self.source, self.key, self.message) if part))

    def at(self, key: str) -> ScenarioError:
        """The same error with an absolute key.

        The error's own key is relative to the table with the key `key`.
        """
        return ScenarioError(self.message, f"{key}.{self.key}" if self.key else key, self.source)

    def in_source(self, source: str) -> ScenarioError:
        """The same error with `source` as its file, unless the error already names a file, e.g. a trace."""
        return self if self.source else ScenarioError(self.message, self.key, source)


class OutputError(NarrowsError):
    """Results that cannot be written or read."""


class Expected(ValueError):  # noqa: N818 (read it aloud: raise Expected("a rate"))
    """A value has the wrong form. The error's text completes "found X, expected ..."."""


TYPES = {
    "string_type": "a string in quotes",
    "int_type": "a whole number",
    "int_from_float": "a whole number",
    "path_type": "the name of a file",
    "float_type": "a number",
    "bool_type": "true or false",
    "list_type": "a list",
    "dict_type": "a table",
    "model_type": "a table",
    "model_attributes_type": "a table",
    "finite_number": "a finite number",
}
"""The phrase that completes "expected ...", by the type of pydantic's error."""


def one_line(text: str) -> str:
    """`text` without line breaks and control characters."""
    return "".join(c if c.isprintable() else " " for c in text)


ORIGIN = "narrows_origin"
"""Attribute of an exception that a user's class raised: the class, the method and the simulated time."""


def described(error: BaseException) -> str:
    """The type and the text of any exception, on one line.

    If reading the text raises an exception, the result is only the type.
    """
    try:
        text = one_line(str(error))
    except Exception:  # from `__str__` of a user's class
        text = ""
    return f"{type(error).__name__}: {text}" if text else type(error).__name__


def unreadable(error: Exception, expected: str) -> str:
    """``found no file, expected <what>``, or another reason why a file cannot be read."""
    match error:
        case FileNotFoundError():
            given = "no file"
        case IsADirectoryError():
            given = "a folder"
        case OSError():
            given = f"an unreadable file ({error.strerror})"
        case _:
            given = "no path"
    return f"found {given}, expected {expected}"


def found(value: object) -> str:
    """`value` as an error message shows it: short, and as TOML writes it."""
    if value is None:
        return "null"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "an empty list" if not value else f"a list of {len(value)}"
    if isinstance(value, str) and len(repr(value)) > _LONGEST_FOUND:
        # Cut inside the quotes.
        return repr(value[: _LONGEST_FOUND - 5] + "...")
    try:
        text = repr(value)
    except ValueError:  # an integer of thousands of digits
        text = "a huge number"
    return text if len(text) <= _LONGEST_FOUND else text[: _LONGEST_FOUND - 3] + "..."


def one_of(value: object, names: Iterable[str], what: str, listing: str = "") -> str:
    """``found X, expected <what>``, followed by the nearest name or by a list of names (see `hint`)."""
    known = list(names)
    return f"found {found(value)}, expected {what}{hint(value, known, listing=listing)}"


def choice(value: object, names: Iterable[str]) -> str:
    """``found X, expected one of <names>``, with the nearest name."""
    known = list(names)
    return f"found {found(value)}, expected one of {', '.join(known)}{_nearest(value, known)}"


def _nearest(value: object, known: list[str]) -> str:
    """``; nearest is 'x'`` (case is ignored), or an empty text if no name is near."""
    folded = {name.lower(): name for name in reversed(known)}
    near = difflib.get_close_matches(str(value)[:_LONGEST_FOUND].lower(), folded, n=1, cutoff=_ALIKE)
    return f"; nearest is {folded[near[0]]!r}" if near else ""


def hint(value: object, names: Iterable[str], most: int = 16, listing: str = "") -> str:
    """``; nearest is 'x'``, or the list of names, or an empty text.

    Args:
        value: the value found.
        names: the valid names.
        most: maximum number of names in the list.
        listing: kind of the names in `narrows list`. If there are more than `most` names, the hint says to
            run `narrows list` with this kind.
    """
    known = list(names)
    nearest = _nearest(value, known)
    if nearest or not known:
        return nearest
    if len(known) > most and listing:
        return f"; `narrows list {listing}` has them"
    more = ", ..." if len(known) > most else ""
    return f": {', '.join(known[:most])}{more}"
