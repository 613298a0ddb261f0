"""A command that lacks an optional dependency names the extra in one line."""

import ast
import importlib.util
import os
import platform
import re
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path

import narrows
import pytest
from narrows import extras
from texts import SLOW

ROOT = Path(__file__).parents[2]
OPTIONAL = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
WORKSPACE = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]
FOR_DEVELOPERS = ("dev", "docs")
IMPORTED_AS = {
    "os-ken": "os_ken",
    "scikit-learn": "sklearn",
    "prometheus-client": "prometheus_client",
    "vl-convert-python": "vl_convert",
}
# This list leaves out pandas. If sys.modules had None for it, pyarrow would report a broken installation.
ALL = sorted({module for modules in extras.MODULES.values() for module in modules} - {"pandas"})
RUN = "import sys; sys.modules.update(dict.fromkeys({absent!r})); from narrows.cli.main import main; main()"
SCENARIO = f'duration = "1s"{SLOW}[[flows]]\ncc = "cubic"\n'

native = pytest.mark.skipif(importlib.util.find_spec("narrows._native") is None, reason="no simulator")


@pytest.fixture
def bare(tmp_path):
    """Runs `narrows` in a process that cannot import the modules in `absent`."""
    (tmp_path / "my.toml").write_text(SCENARIO)

    def call(*words, absent=ALL):
        return subprocess.run(
            [sys.executable, "-c", RUN.format(absent=absent), *words],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=False,
            env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"},
        )

    return call


def names(requirements):
    return {re.split(r"[<>=]", requirement)[0] for requirement in requirements}


def test_the_table_of_extras_is_that_of_the_package():
    listed = {
        name: names(OPTIONAL[name]) for name in OPTIONAL if name not in {"all", "kernel", *FOR_DEVELOPERS}
    }
    known = {name: set(modules) for name, modules in extras.MODULES.items()}
    assert {name: {IMPORTED_AS.get(one, one) for one in found} for name, found in listed.items()} == known


def test_all_has_every_extra_but_that_of_developers():
    assert OPTIONAL["all"] == [f"narrows[{','.join(sorted(OPTIONAL.keys() - {'all', *FOR_DEVELOPERS}))}]"]


def test_the_agent_of_the_extra_kernel_has_the_version_of_the_workspace():
    assert OPTIONAL["kernel"] == [f"narrows-agent=={WORKSPACE['package']['version']}"]


def test_the_page_about_installing_lists_every_extra_with_its_packages():
    text = (ROOT / "docs/how-to/install.md").read_text()
    rows = re.findall(r"^\| `([\w-]+)` \| (.+?) \| .+ \|$", text, re.MULTILINE)
    listed = {extra: set(re.findall(r"`([\w-]+)`", packages)) for extra, packages in rows}
    expected = {name: names(OPTIONAL[name]) for name in OPTIONAL if name not in FOR_DEVELOPERS}
    assert listed == expected | {"all": set()}
    assert len(rows) == len(listed)


@pytest.mark.parametrize("page", ["install", "deploy"])
def test_a_page_that_installs_extras_from_a_release_names_the_folder_of_its_wheels(page):
    text = (ROOT / f"docs/how-to/{page}.md").read_text()
    commands = re.findall(r"^(?:`)?(pip install .*'narrows\[.*)", text, re.MULTILINE)
    assert commands
    version = re.escape(WORKSPACE["package"]["version"])
    for command in commands:
        assert re.match(rf"pip install --find-links release 'narrows\[[a-z,]+\]=={version}'", command)


@pytest.mark.skipif(sys.platform != "linux", reason="the wheels of a release are for Linux")
@pytest.mark.parametrize("page", ["README.md", "docs/tutorials/first-comparison.md"])
def test_the_command_to_install_a_release_chooses_the_wheel_of_this_processor(page, tmp_path):
    """The folder has wheels of the same version for two processors. pip uses only this folder."""
    version = WORKSPACE["package"]["version"]
    (command,) = re.findall(r"^pip install .*", (ROOT / page).read_text(), re.MULTILINE)
    for processor in ("x86_64", "aarch64"):
        wheel_for(processor, version, tmp_path)
    environment = {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HOME": str(tmp_path),
        "PIP_TARGET": str(tmp_path / "installed"),
        "PIP_NO_INDEX": "1",
        "PIP_NO_DEPS": "1",
        "PIP_DISABLE_PIP_VERSION_CHECK": "1",
    }
    done = subprocess.run(
        ["sh", "-c", command], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "installed" / "processor.txt").read_text() == platform.machine()


def wheel_for(processor, version, folder):
    """A wheel that contains only the name of its processor."""
    tag = f"cp311-abi3-manylinux2014_{processor}"
    about = f"narrows-{version}.dist-info"
    with zipfile.ZipFile(folder / f"narrows-{version}-{tag}.whl", "w") as archive:
        archive.writestr("processor.txt", processor)
        archive.writestr(f"{about}/WHEEL", f"Wheel-Version: 1.0\nRoot-Is-Purelib: false\nTag: {tag}\n")
        metadata = f"Metadata-Version: 2.1\nName: narrows\nVersion: {version}\nProvides-Extra: report\n"
        archive.writestr(f"{about}/METADATA", metadata)
        files = ("processor.txt", f"{about}/WHEEL", f"{about}/METADATA", f"{about}/RECORD")
        archive.writestr(f"{about}/RECORD", "".join(f"{name},,\n" for name in files))


@native
def test_a_run_needs_no_extra(bare):
    done = bare("run", "my.toml")
    assert done.returncode == 0, done.stderr
    assert "cubic" in done.stdout
    assert bare("--help").returncode == bare("list").returncode == bare("check", "my.toml").returncode == 0


@native
def test_a_simulation_and_its_tables_need_no_extra_in_python(tmp_path):
    code = (
        f"import sys; sys.modules.update(dict.fromkeys({ALL!r})); import narrows; "
        f"print(narrows.run(narrows.loads({SCENARIO!r})).table('flows').num_rows)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "1\n"


ABSENT = """
import sys

class Absent:
    def find_spec(self, name, *_):
        if name.partition(".")[0] in {absent!r}:
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""


@native
@pytest.mark.parametrize("source", ["docs/reference/python.md", "help(narrows)"])
def test_the_first_example_in_python_needs_no_extra_and_no_file(tmp_path, source):
    if source == "help(narrows)":
        example = re.search(
            r"^import narrows\n.*?^    print\(.*?\n", narrows.__doc__, re.MULTILINE | re.DOTALL
        )[0]
    else:
        text = (ROOT / source).read_text()
        example = re.search(r"^```python\n(.*?)^```$", text, re.MULTILINE | re.DOTALL)[1]
    done = subprocess.run(
        [sys.executable, "-c", ABSENT.format(absent=[*ALL, "pandas"]) + example],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "python"), "PATH": "/usr/bin:/bin"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    rows = [ast.literal_eval(line) for line in done.stdout.splitlines()]
    assert [(row["run"], row["name"]) for row in rows] == [(0, "cubic"), (0, "bbr"), (1, "cubic"), (1, "bbr")]
    assert all(row["goodput_bps"] > 0 for row in rows)


@pytest.mark.parametrize(
    ("page", "how"), [("commands", "narrows COMMAND --help"), ("python", "help(narrows")]
)
def test_a_page_that_only_the_site_fills_tells_how_to_read_it(page, how):
    head = (ROOT / f"docs/reference/{page}.md").read_text()[:500]
    assert f"`{how}" in head and "`make docs`" in head


@pytest.mark.parametrize(
    ("words", "feature", "extra"),
    [
        (("report", "results/my"), "report", "report"),
        (("plot", "iperf3.json"), "plot", "report"),
        (("matrix", "cubic", "reno"), "matrix", "report"),
        (("study", "brf"), "study", "report"),
        (("show", "my.toml", "--out", "network.svg"), "show --out", "report"),
        (("validate", "--on", "recorded", "--write", "page.md"), "validate --write", "report"),
        (("validate", "--on", "recorded"), "validate (or try --no-figures)", "report"),
        (("controller",), "controller", "controller"),
    ],
)
def test_a_command_without_its_extra_gives_a_one_line_error(bare, words, feature, extra, tmp_path):
    done = bare(*words)
    modules = ", ".join(extras.MODULES[extra])
    assert done.stderr == f"{feature}: {modules} not installed; try: pip install 'narrows[{extra}]'\n"
    assert (done.returncode, done.stdout) == (2, "")
    assert [path.name for path in tmp_path.iterdir()] == ["my.toml"]


COMMANDS = ["run my.toml", "run my.toml --on vm", "check my.toml", "list queues", "schema"]


@pytest.mark.parametrize("words", COMMANDS)
def test_a_missing_native_module_gives_a_one_line_error(bare, words, tmp_path):
    done = bare(*words.split(), absent=["narrows._native"])
    assert re.fullmatch(
        r"found no native module \(.*_native.*\); run `pip install -e \.` in a clone\n", done.stderr
    )
    assert (done.returncode, done.stdout) == (2, "")
    assert [path.name for path in tmp_path.iterdir()] == ["my.toml"]


def test_an_import_that_no_command_foresaw_names_the_extra():
    assert extras.explain(ModuleNotFoundError(name="altair.utils")) == (
        "altair is not installed; try: pip install 'narrows[report]'"
    )
    assert extras.explain(ModuleNotFoundError(name="os")) is None
    assert extras.explain(ModuleNotFoundError()) is None
