"""The browser's engine gives the results of the native simulator, bit for bit."""

import importlib.util
import json
import shutil
import struct
import subprocess
from pathlib import Path

import pytest
from narrows import _native
from narrows.backends.sim import plan_json
from narrows.scenario.load import expand, load
from narrows.scenario.resolve import resolve

ROOT = Path(__file__).resolve().parents[2]
PRESETS = sorted((ROOT / "web" / "presets").glob("*.toml"))


COURSE = sorted((ROOT / "scenarios" / "course").glob("*.toml"))


@pytest.fixture(scope="module")
def engine():
    specification = importlib.util.spec_from_file_location("web", ROOT / "tools" / "web.py")
    web = importlib.util.module_from_spec(specification)
    specification.loader.exec_module(web)
    folder = web.built() / "web" / "engine"
    missing = "node not found" if shutil.which("node") is None else None
    if not (folder / "narrows_web_bg.wasm").exists():
        missing = missing or f"no {folder}: call make web"
    return folder if missing is None else pytest.skip(missing)


def bits(column):
    """A column with each float as 16 hexadecimal digits."""
    return [v if isinstance(v, str) else struct.pack(">d", v).hex() for v in column]


def test_there_are_ten_presets():
    assert len(PRESETS) >= 10


@pytest.mark.parametrize("preset", [*PRESETS, *COURSE], ids=lambda path: path.stem)
@pytest.mark.parametrize("steps", [1, 37])
def test_the_tables_are_those_of_the_native_simulator(engine, preset, steps):
    plan = resolve(expand(load(preset))[0].scenario)
    native = _native.run(plan_json(plan), _native.Cancel(), {}, _native.Monitor(), None)
    command = ["node", ROOT / "tests" / "web" / "tables.cjs", engine, str(steps)]
    done = subprocess.run(command, input=preset.read_text(), text=True, capture_output=True, check=True)
    tables = json.loads(done.stdout)["tables"]
    assert len(tables["flow_samples"]["t_s"]) > 100
    for name, columns in tables.items():
        assert set(columns) == set(native[name])
        for column, values in columns.items():
            assert values == bits(native[name][column]), f"{name}.{column}"
