"""A group of commands that imports only the command in use, so that help and completion answer fast."""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

import typer
from typer.core import TyperGroup


@dataclass(frozen=True, slots=True)
class Entry:
    """A command whose module is not imported yet."""

    name: str
    module: str
    """Module that declares the command."""
    attribute: str
    """The command's function in that module, or its Typer application."""
    help: str
    """First line of the command's help. A test compares this line with the command's docstring."""

    def load(self) -> Any:
        """Import the module and build the command."""
        command = getattr(import_module(self.module), self.attribute)
        app = command
        if not isinstance(command, typer.Typer):
            app = typer.Typer(add_completion=False, rich_markup_mode=None)
            app.command(name=self.name)(command)
        built = typer.main.get_command(app)
        built.name = self.name
        defer_conversion(built)
        return built


def defer_conversion(command: Any) -> None:
    """Make the parameters of a command convert values only when the command runs, and only if necessary.

    Since typer 0.29, any conversion imports pydantic, which takes about 50 ms, even if no value was given.
    Completion needs no converted values, and most values of commands are text, paths and defaults.
    """
    parameters = command.get_params
    command.get_params = lambda ctx: [_deferred(parameter) for parameter in parameters(ctx)]
    for below in getattr(command, "commands", {}).values():
        defer_conversion(below)


def _deferred(parameter: Any) -> Any:
    convert = type(parameter).process_value

    def process_value(ctx: Any, value: Any) -> Any:
        if ctx.resilient_parsing:
            return value
        plain = _plain(parameter, value)
        if plain is _UNKNOWN:
            return convert(parameter, ctx, value)
        return plain if parameter.callback is None else parameter.callback(ctx, parameter, plain)

    parameter.process_value = process_value
    return parameter


_UNKNOWN = object()


def _plain(parameter: Any, value: Any) -> Any:
    """The result of a conversion that needs no pydantic; `_UNKNOWN` for all other conversions."""
    is_list = parameter.multiple or parameter.nargs != 1
    if value is None and not parameter.required:
        return () if is_list else None
    # Typer before 0.29 has no such attribute, and does not use pydantic.
    descriptor = getattr(parameter, "type_descriptor", None)
    if descriptor is None or is_list:
        return _UNKNOWN
    wanted, info = descriptor.annotation, descriptor.parameter_info
    if not isinstance(wanted, type) or info.parser is not None:
        return _UNKNOWN
    if wanted is Path and isinstance(value, str) and not (info.exists or info.resolve_path):
        return Path(value)
    # A number may have to be in a range.
    return value if wanted is not int and wanted is not float and isinstance(value, wanted) else _UNKNOWN


class Loaded(MutableMapping[str, Any]):
    """The commands of a table by name; each is imported at its first use."""

    def __init__(self, entries: tuple[Entry, ...]) -> None:
        self.entries = {entry.name: entry for entry in entries}
        self._built: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._built:
            self._built[name] = self.entries[name].load()
        return self._built[name]

    def __setitem__(self, name: str, command: Any) -> None:
        self._built[name] = command

    def __delitem__(self, name: str) -> None:
        del self.entries[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self.entries)

    def __len__(self) -> int:
        return len(self.entries)

    def __contains__(self, name: object) -> bool:
        return name in self.entries


class LazyGroup(TyperGroup):
    """A group whose help and completion use a table, and whose commands are imported when they run."""

    entries: tuple[Entry, ...] = ()

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self.commands = Loaded(self.entries)

    def get_params(self, ctx: Any) -> list[Any]:
        """Parameters of the group."""
        return [_deferred(parameter) for parameter in super().get_params(ctx)]

    def list_commands(self, ctx: Any) -> list[str]:  # noqa: ARG002
        """The names of the commands, in the order of `entries`."""
        return [entry.name for entry in self.entries]

    def format_commands(self, ctx: Any, formatter: Any) -> None:  # noqa: ARG002
        """The section of `--help` that lists the commands."""
        with formatter.section("Commands"):
            formatter.write_dl([(entry.name, entry.help) for entry in self.entries])

    def shell_complete(self, ctx: Any, incomplete: str) -> list[Any]:
        """Commands that begin with `incomplete`, and the group's own options."""
        options = super(TyperGroup, self).shell_complete(ctx, incomplete)
        return [_item(entry) for entry in self.entries if entry.name.startswith(incomplete)] + options


def _item(entry: Entry) -> Any:
    """A completion. The class of completions is in click or in typer, depending on typer's version."""
    try:
        from typer._click.shell_completion import CompletionItem  # noqa: PLC0415
    except ImportError:
        from click.shell_completion import CompletionItem  # type: ignore[assignment]  # noqa: PLC0415
    return CompletionItem(entry.name, help=entry.help)
