"""The wheel works in a virtual environment, without a compiler and without the repository."""

import importlib.util
import json
import platform
import re
import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path, PurePosixPath

import pytest
from narrows import extras

ROOT = Path(__file__).resolve().parents[2]
VERSION = tomllib.loads((ROOT / "Cargo.toml").read_text())["workspace"]["package"]["version"]
SPEC = importlib.util.spec_from_file_location("clean_install", ROOT / "tools" / "clean_install.py")
clean_install = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(clean_install)

PAGE = "narrows/playground/narrows-play.html"
"""`make web` builds it. The targets of the Makefile that build wheels call `make web` first."""
# Most modules are never imported, so compiling all of them would take longer than the tests.
PIP_OPTIONS = ("--no-compile", "--constraint", str(ROOT / "constraints.txt"))
MATURIN = Path(sys.executable).parent / "maturin"
pytestmark = pytest.mark.skipif(
    not (shutil.which("cargo") and MATURIN.exists()), reason="no cargo or no maturin"
)


@pytest.fixture(scope="module")
def wheel(tmp_path_factory):
    """The wheel of this tree, with the module that `make setup` built."""
    folder = tmp_path_factory.mktemp("dist")
    command = [str(MATURIN), "build", "--release", "--locked", "--quiet", "--out", str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="module")
def installation(wheel, tmp_path_factory):
    made = clean_install.Installation(tmp_path_factory.mktemp("clean"))
    made.install(*PIP_OPTIONS, str(wheel))
    (made.folder / "my.toml").write_text(clean_install.SCENARIO)
    return made


def test_the_wheel_is_for_any_python_from_3_11_and_many_linuxes(wheel):
    assert re.fullmatch(rf"narrows-{re.escape(VERSION)}-cp311-abi3-manylinux_2_\d+_\w+\.whl", wheel.name)


def test_the_wheel_holds_the_package_and_nothing_else(wheel):
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "python/narrows"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout.split()
    expected = {path.removeprefix("python/") for path in listed if (ROOT / path).exists()}
    names = set(zipfile.ZipFile(wheel).namelist())
    metadata = {name for name in names if name.startswith(f"narrows-{VERSION}.dist-info/")}
    page = {PAGE} if (ROOT / "python" / PAGE).exists() else set()
    assert names - metadata == expected | page | {"narrows/_native.abi3.so"}
    assert {f"narrows-{VERSION}.dist-info/licenses/LICENSE-{one}" for one in ("MIT", "APACHE")} <= metadata
    suffixes = {PurePosixPath(name).suffix for name in names - metadata}
    assert {".toml", ".json", ".j2", ".css", ".js", ".parquet", ".csv", ".typed", ".md"} <= suffixes


def test_the_source_distribution_has_what_a_build_needs_and_no_tests_of_python(tmp_path):
    command = [str(MATURIN), "sdist", "--out", str(tmp_path)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)
    with tarfile.open(tmp_path / f"narrows-{VERSION}.tar.gz") as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    crates = ("control", "emulator", "py", "sim")
    assert {f"crates/narrows-{crate}/Cargo.toml" for crate in crates} <= names
    assert {"Cargo.lock", "README.md", "LICENSE-MIT", "LICENSE-APACHE", "pyproject.toml"} <= names
    assert {"python/narrows/py.typed", "python/narrows/scenario/schema.json"} <= names
    assert not any(name.startswith(("tests/", "docs/", "crates/narrows-agent/")) for name in names)
    # The page needs Node.js and the WebAssembly target, which a machine that builds from the sdist may lack.
    assert f"python/{PAGE}" not in names and "python/narrows/playground/__init__.py" in names


def test_no_text_in_the_wheel_names_the_folder_it_was_built_in(wheel):
    with zipfile.ZipFile(wheel) as archive:
        naming = [
            name
            for name in archive.namelist()
            if not name.endswith(".so") and str(ROOT).encode() in archive.read(name)
        ]
    assert naming == []


def test_the_core_installs_no_package_of_an_extra(installation):
    installed = {name.replace("-", "_") for name in installation.packages()}
    assert {"narrows", "numpy", "pyarrow", "pydantic"} <= installed
    optional = {module for modules in extras.MODULES.values() for module in modules} | {"vl_convert_python"}
    assert installed.isdisjoint(optional)


def test_the_environment_has_no_compiler(installation):
    for program in ("cc", "gcc", "clang", "cargo", "rustc"):
        assert shutil.which(program, path=installation.environment["PATH"]) is None


def test_the_command_states_its_version(installation):
    done = installation.call("narrows", "--version")
    assert (done.stdout, done.stderr, done.returncode) == (f"narrows {VERSION}\n", "", 0)


def test_a_scenario_gives_a_table_and_results(installation):
    done = installation.call("narrows", "run", "my.toml")
    assert done.returncode == 0, done.stderr
    assert re.search(r"^\s*cubic\b.*\d", done.stdout, re.M)
    assert re.search(r"^\s*bbr\b.*\d", done.stdout, re.M)
    assert list((installation.folder / "results").rglob("flows.parquet"))


def test_python_runs_a_scenario_with_the_installed_module(installation):
    code = (
        "import json, narrows, sys\n"
        "flows = narrows.run(narrows.load('my.toml')).table('flows').to_pydict()\n"
        "print(json.dumps([narrows.__file__, sys.path, flows['goodput_bps']]))\n"
    )
    done = installation.call("python", "-c", code)
    assert done.returncode == 0, done.stderr
    place, path, goodput = json.loads(done.stdout)
    assert Path(place).is_relative_to(installation.folder)
    assert not any(Path(entry).is_relative_to(ROOT) for entry in path if entry)
    # Both flows last for the whole run, on a link of 50 Mbit/s.
    assert 40e6 < sum(goodput) < 50e6
    assert min(goodput) > 0


def test_studies_and_schema_are_found_in_the_installed_package(installation):
    studies = installation.call("narrows", "study").stdout
    assert "brf" in studies
    assert json.loads(installation.call("narrows", "schema").stdout)["title"]


def test_a_report_without_its_extra_gives_a_one_line_error(installation):
    done = installation.call("narrows", "report", "results")
    assert done.returncode == 2
    assert done.stderr.endswith("not installed; try: pip install 'narrows[report]'\n")
    assert done.stderr.count("\n") == 1


def test_extras_are_installed_from_the_folder_and_work(wheel, agent_binary, tmp_path):
    folder = tmp_path
    shutil.copy(wheel, folder)
    subprocess.run(
        [sys.executable, ROOT / "packaging/agent-wheel/build.py", agent_binary, folder], check=True
    )
    assert clean_install.check_extras(folder, VERSION, *PIP_OPTIONS) == ""


def test_a_failed_installation_gives_a_one_line_error(tmp_path):
    found = clean_install.check_extras(tmp_path, VERSION)
    assert found.endswith("expected one wheel of Narrows and one of the agent for this machine")
    machine = platform.machine()
    for name in (
        f"narrows-{VERSION}-py3-none-any_{machine}",
        f"narrows_agent-{VERSION}-py3-none-any_{machine}",
    ):
        (tmp_path / f"{name}.whl").write_text("not a wheel")
    found = clean_install.check_extras(tmp_path, VERSION, "--no-index")
    assert "narrows" in found and "\n" not in found
