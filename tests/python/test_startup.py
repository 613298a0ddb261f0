"""Help, version and tab completion import few modules, and the table of commands is complete."""

import json
import os
import subprocess
import sys

import pytest
from narrows import _native
from narrows.cli.commands import values
from narrows.cli.listing import KINDS
from narrows.cli.main import COMMANDS
from narrows.studies.load import known_studies

SLOW = {"altair", "jsonschema", "numpy", "pandas", "pyarrow", "pydantic", "rich"}
REPORT = """
import sys, json, io, contextlib
from narrows.cli.main import main
with contextlib.redirect_stdout(io.StringIO()) as out:
    try:
        main()
    except SystemExit:
        pass
print(json.dumps({"out": out.getvalue(), "modules": sorted(sys.modules)}))
"""


def call(*words, **environment):
    """The output of a command, and the modules that the command imported."""
    done = subprocess.run(
        [sys.executable, "-c", REPORT, *words],
        env={**os.environ, **environment},
        check=True,
        capture_output=True,
        text=True,
    )
    told = json.loads(done.stdout)
    return told["out"], set(told["modules"])


def completions(line):
    words = line.split(" ")
    variables = {
        "_NARROWS_COMPLETE": "complete_bash",
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
    }
    out, modules = call(**variables)
    return out.split(), modules


@pytest.mark.parametrize("words", [["--version"], ["--help"], *([name.name, "--help"] for name in COMMANDS)])
def test_version_and_help_import_no_slow_module(words):
    out, modules = call(*words)
    assert "narrows" in out
    assert not modules & SLOW


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("narrows ru", {"run"}),
        ("narrows matrix cu", {"cubic", "cubic-hystartpp"}),
        ("narrows matrix cubic re", {"reno", "reno-hystartpp"}),
        ("narrows study b", {"brf", "bdr", "bbr-draft", "bbr-gain"}),
        ("narrows list q", {"queues"}),
        ("narrows run my.toml --on k", {"kernel"}),
        ("narrows run my.toml --set topology.rt", {"topology.rtt=", "topology.rtts="}),
        ("narrows run my.toml --set flows.*.cc", {"flows.*.cc=", "flows.*.cc.name="}),
        ("narrows validate --cells core,c", {"core,core", "core,ci"}),
        ("narrows validate --algorithms cubic,ren", {"cubic,reno", "cubic,reno-hystartpp"}),
        ("narrows cc load bbr-", {"bbr-a", "bbr-b", "bbr-c"}),
    ],
)
def test_completion_offers_values_and_imports_no_slow_module(line, expected):
    offered, modules = completions(line)
    assert set(offered) == expected
    assert not modules & SLOW


UNUSED_BY_A_RUN = {"altair", "jinja2", "jsonschema", "networkx", "pandas", "polars", "scipy"}
"""Packages that are slow to import, and that a run does not use."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    pytest.importorskip("pandas")
    folder = tmp_path_factory.mktemp("run")
    (folder / "a.toml").write_text(
        'duration = "1s"\n[topology]\nkind = "dumbbell"\nrate = "10mbit"\nrtt = "20ms"\n[[flows]]\n'
    )
    return call("run", str(folder / "a.toml"), "--out", str(folder / "out"))


def test_a_run_imports_no_slow_module_that_it_does_not_use(run):
    out, modules = run
    assert "cubic" in out
    assert not {name.split(".")[0] for name in modules} & UNUSED_BY_A_RUN


def test_a_run_imports_only_the_parts_of_pyarrow_that_it_uses(run):
    _, modules = run
    assert {"pyarrow.parquet", "pyarrow.csv"} <= modules
    assert not modules & {"pyarrow.compute", "pyarrow.dataset", "pyarrow.pandas_compat"}


def test_a_run_does_not_import_masked_arrays(run):
    _, modules = run
    assert "numpy" in modules
    assert "numpy.ma" not in modules


def test_scenarios_need_no_slow_module():
    code = (
        "import sys\nfrom narrows.scenario import load, notes, resolve, schema\n"
        "resolve.resolve(load.loads(sys.argv[1]))\nprint(*sys.modules)"
    )
    text = '[topology]\nkind = "dumbbell"\nrate = "10mbit"\nrtt = "20ms"\n[[flows]]\n'
    done = subprocess.run([sys.executable, "-c", code, text], check=True, capture_output=True, text=True)
    assert not set(done.stdout.split()) & SLOW


def test_a_run_needs_no_pydantic(run):
    """Conversions of typer 0.29 import pydantic, so `narrows.cli.lazy` avoids them."""
    _, modules = run
    assert not modules & {"pydantic", "importlib.metadata"}


def test_the_package_runs_as_a_module():
    done = subprocess.run(
        [sys.executable, "-m", "narrows", "walk"], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (2, "narrows: No such command 'walk'; see narrows -h\n")


@pytest.mark.parametrize("entry", COMMANDS, ids=lambda entry: entry.name)
def test_the_table_of_commands_has_the_first_line_of_each_help(entry):
    assert entry.load().help.splitlines()[0] == entry.help


def _options():
    for entry in COMMANDS:
        command = entry.load()
        below = getattr(command, "commands", {})
        for part in (command, *below.values()):
            for option in part.params:
                if option.param_type_name != "option" or option.hidden:
                    continue  # the help of a hidden option has only the name of its replacement
                if option.name not in ("help", "version"):
                    yield pytest.param(option, id=f"{entry.name} {part.name} {option.opts[0]}")


@pytest.mark.parametrize("option", list(_options()))
def test_every_option_with_a_value_states_its_default(option):
    if (option.is_flag and not option.secondary_opts) or option.required:
        return
    if option.multiple and "May be repeated." in option.help and "default" not in option.help:
        return
    assert "(default: " in option.help
    if isinstance(option.default, str | int) and not isinstance(option.default, bool):
        assert f"(default: {option.default}" in option.help


def test_completion_knows_the_names_that_the_work_knows():
    assert tuple(KINDS) == values.KINDS
    assert values.studies() == known_studies()
    assert values.congestion_controllers() == [name for name, _ in _native.congestion_controllers()]
