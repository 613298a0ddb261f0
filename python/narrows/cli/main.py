"""The `narrows` command: what it offers, and how it fails (one line and exit code 2)."""

from __future__ import annotations

import importlib.util
import sys
from typing import Annotated, Any

import typer

from narrows import extras
from narrows.cli.cc import cc
from narrows.cli.check import check, schema
from narrows.cli.compare import compare
from narrows.cli.controller import controller
from narrows.cli.data import data
from narrows.cli.doctor import doctor
from narrows.cli.listing import list_names
from narrows.cli.matrix import matrix
from narrows.cli.plot import plot
from narrows.cli.report import report
from narrows.cli.run import run
from narrows.cli.show import show
from narrows.cli.validate import validate
from narrows.cli.vm import vm
from narrows.errors import NarrowsError, one_line
from narrows.sweep import release

app = typer.Typer(
    name="narrows",
    help="Simulate, verify, deploy and study congestion control.",
    no_args_is_help=True,
    add_completion=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)


def _version(wanted: bool) -> None:
    if wanted:
        print(f"narrows {release()}")
        raise typer.Exit


@app.callback()
def _narrows(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Simulate, verify, deploy and study congestion control."""


app.command()(run)
app.command()(report)
app.command()(compare)
app.command()(validate)
app.command()(check)
app.command()(show)
app.command()(matrix)
app.command()(plot)
app.command(name="list")(list_names)
app.command()(schema)
app.command()(controller)
app.command()(doctor)
app.add_typer(data, name="data")
app.add_typer(vm, name="vm")
app.add_typer(cc, name="cc")

USAGE_ERROR = 2
UsageError: Any = typer.BadParameter.__mro__[1]
"""click's class, which is in click or in typer, depending on typer's version."""


def _add_studies() -> None:
    """`narrows study` lives with the studies; an installation without them lacks the command only."""
    if importlib.util.find_spec("narrows.studies") and importlib.util.find_spec("narrows.studies.cli"):
        from narrows.studies.cli import study  # noqa: PLC0415

        if isinstance(study, typer.Typer):
            app.add_typer(study, name="study")
        else:
            app.command(name="study")(study)


_add_studies()


def _usage(error: Any) -> str:
    """A mistake in the command line as one line; of the command alone, which is none, the help."""
    # pydantic puts its own words before a sentence of ours.
    text: str = error.format_message().replace("Value error, ", "")
    if "\n" in text or not text:
        return text
    command = error.ctx.command_path if error.ctx is not None else "narrows"
    return f"{command}: {one_line(text).rstrip('.')}; see {command} -h"


def main() -> None:
    """Entry point of the console script."""
    try:
        code = app(standalone_mode=False)  # by itself it would frame its errors in a box
        raise SystemExit(code if isinstance(code, int) else 0)
    except UsageError as error:
        print(_usage(error), file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except NarrowsError as error:
        print(error, file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except ModuleNotFoundError as error:
        if (line := extras.explain(error)) is None:
            raise
        print(line, file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except BrokenPipeError:
        # `narrows ... | head`: the reader has what it wanted.
        sys.stderr.close()
        raise SystemExit(0) from None
    except OSError as error:
        # A file or a folder that nobody looked at before: in the way, not ours to write, or on a full disk.
        where = f"{error.filename}: " if error.filename is not None else ""
        print(one_line(f"{where}{error.strerror or error}"), file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None


if __name__ == "__main__":
    main()
