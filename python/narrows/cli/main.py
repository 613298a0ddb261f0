"""The command `narrows`. A failure prints one line and exits with 2."""

from __future__ import annotations

import atexit
import gc
import sys
import traceback
from typing import Annotated

import typer

from narrows import extras
from narrows.cli.lazy import Entry, LazyGroup
from narrows.cli.usage import UsageError, usage
from narrows.errors import ORIGIN, NarrowsError, described, one_line
from narrows.version import release

COMMANDS = (
    Entry("run", "narrows.cli.commands.run", "run", "Run a scenario, write its tables and print a summary."),
    Entry(
        "report", "narrows.cli.commands.report", "report", "Write one HTML page about a folder of results."
    ),
    Entry("merge", "narrows.cli.commands.merge", "merge", "Merge the results of narrows run --shard."),
    Entry("compare", "narrows.cli.commands.compare", "compare", "Compare two folders of results."),
    Entry(
        "diff",
        "narrows.cli.commands.diff",
        "diff",
        "Find what changed between two results, with confidence intervals.",
    ),
    Entry(
        "validate",
        "narrows.cli.commands.validate",
        "validate",
        "Measure the simulator's errors against Linux.",
    ),
    Entry("check", "narrows.cli.commands.check", "check", "Check a scenario without running it."),
    Entry(
        "show", "narrows.cli.commands.show", "show", "Show a scenario's network and the paths of its flows."
    ),
    Entry(
        "play",
        "narrows.cli.commands.play",
        "play",
        "Open a scenario in the playground, a page that simulates in the browser.",
    ),
    Entry(
        "matrix",
        "narrows.cli.commands.matrix",
        "matrix",
        "Run each pair of congestion controllers in one queue.",
    ),
    Entry(
        "train",
        "narrows.cli.commands.train",
        "train",
        "Train BRF's bandwidth model from flow records.",
    ),
    Entry(
        "export",
        "narrows.cli.commands.export",
        "export",
        "Write results for Perfetto and flent, or as qlog.",
    ),
    Entry("plot", "narrows.cli.plot", "plot", "Plot the JSON output of iperf3."),
    Entry("list", "narrows.cli.commands.listing", "list_names", "List the names that a scenario may use."),
    Entry("schema", "narrows.cli.commands.check", "schema", "Print the JSON schema of scenario files."),
    Entry("controller", "narrows.cli.controller", "controller", "Run the SDN controller."),
    Entry("doctor", "narrows.cli.commands.doctor", "doctor", "Check what this machine supports."),
    Entry("data", "narrows.cli.data", "data", "List the data sets of recorded traces, and download them."),
    Entry("vm", "narrows.cli.commands.vm", "vm", "Prepare the guest of --on vm."),
    Entry("cache", "narrows.cli.commands.cache", "cache", "Show or prune the runs that --cache keeps."),
    Entry("cc", "narrows.cli.commands.cc", "cc", "Load congestion controllers into this kernel."),
    Entry(
        "study", "narrows.cli.commands.study", "study", "Run the experiments of a paper and judge its claims."
    ),
)


class _Commands(LazyGroup):
    """The commands of `narrows`."""

    entries = COMMANDS


EXIT_CODES = """Exit codes: 0 success; 1 a check failed (run with an expectation that is not met, compare
beyond tolerances, diff with a change, validate with failed cells, doctor or vm status not ready); 2 wrong
usage or input; 130 interrupted."""

# Help without markup does not need the package rich. Importing rich takes as long as all other imports
# together.
app = typer.Typer(
    name="narrows",
    cls=_Commands,
    help="Simulate, verify, deploy and study congestion control.",
    epilog=EXIT_CODES,
    no_args_is_help=True,
    add_completion=True,
    rich_markup_mode=None,
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


USAGE_ERROR = 2
_ALLOCATIONS = 50_000
"""Number of objects that are allocated between two garbage collections."""


def _with_remains(error: NarrowsError) -> str:
    """The text of the error and, if a sweep has left finished runs, the folder with their results."""
    if error.left is None:
        return str(error)
    from narrows.results.results import left_by  # noqa: PLC0415 (slow to import)

    left = left_by(error)
    if left is None:
        return str(error)
    count = left.runs.num_rows
    return f"{error}; {count} finished run{'s' * (count != 1)} readable in {left.place}"


def main() -> None:
    """Entry point of the console script."""
    # Imports allocate many objects that are never freed. With Python's default threshold, garbage collection
    # takes a tenth of a short run, and visiting these objects at exit takes another tenth.
    gc.set_threshold(_ALLOCATIONS)
    atexit.register(gc.freeze)
    try:
        code = app(standalone_mode=False, prog_name="narrows")  # otherwise typer prints errors in a box
        raise SystemExit(code if isinstance(code, int) else 0)
    except UsageError as error:
        print(usage(error), file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except NarrowsError as error:
        print(_with_remains(error), file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except ImportError as error:
        if (line := extras.explain(error)) is None:
            raise
        print(line, file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except BrokenPipeError:
        # The program that reads the output has closed the pipe, as in `narrows ... | head`.
        sys.stderr.close()
        raise SystemExit(0) from None
    except OSError as error:
        # The error is about a path that no earlier check covers: the path exists already, is not writable,
        # or is on a full disk.
        where = f"{error.filename}: " if error.filename is not None else ""
        line = _of_class(error) or one_line(f"{where}{error.strerror or error}")
        print(line, file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None
    except Exception as error:
        if (found := _of_class(error)) is None:
            raise
        print(found, file=sys.stderr)
        raise SystemExit(USAGE_ERROR) from None


def _of_class(error: Exception) -> str | None:
    """An exception of a user's Python controller, in one line that names the place in the file.

    None for other exceptions.
    """
    origin = getattr(error, ORIGIN, None)
    if origin is None:
        return None
    last = traceback.extract_tb(error.__traceback__)[-1:]
    place = "".join(f" ({frame.filename}, line {frame.lineno})" for frame in last)
    return one_line(f"{origin}: {described(error)}{place}")


if __name__ == "__main__":
    main()
