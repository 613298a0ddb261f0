"""The browser's engine gives the results of the native simulator, bit for bit."""

import importlib.util
import json
import struct
import subprocess
from pathlib import Path

import pytest
from narrows import _native
from narrows.backends.sim import plan_json
from narrows.scenario.load import expand, load, loads
from narrows.scenario.resolve import resolve

ROOT = Path(__file__).resolve().parents[2]
PRESETS = sorted((ROOT / "web" / "presets").glob("*.toml"))


@pytest.fixture(scope="module")
def engine():
    specification = importlib.util.spec_from_file_location("web", ROOT / "tools" / "web.py")
    web = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(web)
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


@pytest.mark.parametrize("preset", PRESETS, ids=lambda path: path.stem)
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
