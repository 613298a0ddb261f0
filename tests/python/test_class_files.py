"""Python controllers that a scenario names by their file."""

import functools
import os
import re
import subprocess
import sys
from pathlib import Path

import narrows
import pytest
from narrows import sweep
from narrows.backends.sim import Simulator
from narrows.results.results import Results

FIXED = '''
"""A constant window."""

from dataclasses import dataclass

from neighbour import LEAST


@dataclass
class Fixed:
    """Always the same window."""

    window: int = 4

    def on_established(self, _connection, window):
        window.cwnd = max(self.window, LEAST)

    def on_ack(self, ack, window):
        pass

    def on_congestion(self, event, window):
        window.ssthresh = self.window
'''

SCENARIO = """
duration = "2s"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "40ms"
[[flows]]
cc = "own/fixed.py:Fixed"
"""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "own").mkdir()
    (tmp_path / "own/fixed.py").write_text(FIXED)
    (tmp_path / "own/neighbour.py").write_text("LEAST = 2\n")
    (tmp_path / "my.toml").write_text(SCENARIO)
    return tmp_path


def rate_of(results: Results) -> float:
    """Mean goodput over all runs, in segments per RTT."""
    goodput = results.flows.column("goodput_bps").to_pylist()
    return sum(goodput) / len(goodput) / (1448 * 8 / 0.0412)


def test_the_file_is_relative_to_the_scenario_and_may_import_its_neighbours(folder: Path) -> None:
    results = narrows.run(folder / "my.toml")
    (flow,) = results.flows.to_pylist()
    assert flow["name"] == "Fixed" and flow["cc"] == "own/fixed.py:Fixed"
    assert rate_of(results) == pytest.approx(4, rel=0.03)


def test_parameters_are_keyword_arguments(folder: Path) -> None:
    flow = {"cc": {"name": "own/fixed.py:Fixed", "window": 8}}
    results = narrows.run(narrows.load(folder / "my.toml", {"flows": [flow]}))
    assert rate_of(results) == pytest.approx(8, rel=0.03)
    assert results.flows.column("cc")[0].as_py() == "own/fixed.py:Fixed(window=8)"


def test_a_sweep_varies_classes_and_parameters(folder: Path) -> None:
    vary = {"flows.0.cc.window": [2, 4, 8]}
    flow = {"cc": {"name": "own/fixed.py:Fixed"}}
    scenario = narrows.load(folder / "my.toml", {"flows": [flow], "sweep": {"vary": vary}})
    goodput = [row["goodput_bps"] for row in narrows.run(scenario).flows.to_pylist()]
    assert goodput[1] / goodput[0] == pytest.approx(2, rel=0.05)
    assert goodput[2] / goodput[0] == pytest.approx(4, rel=0.05)


def test_other_processes_have_the_class_too(folder: Path) -> None:
    here = narrows.run(folder / "my.toml", seeds=4)
    apart = narrows.run(folder / "my.toml", seeds=4, executor="processes", jobs=2)
    assert repr(apart.flows.to_pylist()) == repr(here.flows.to_pylist())


def test_workers_need_no_copy_of_the_file(folder: Path) -> None:
    simulator = Simulator()
    scenario = narrows.load(folder / "my.toml")
    plan = sweep.Resolver(simulator)(scenario)
    (folder / "own/fixed.py").unlink()
    assert simulator.run(plan)["flows"]["cc"] == ["own/fixed.py:Fixed"]


def test_results_of_a_changed_class_are_not_reused(folder: Path) -> None:
    first = narrows.run(folder / "my.toml", out=folder / "out")
    again = narrows.run(folder / "my.toml", out=folder / "out", resume=True)
    assert again.metadata["classes"] == first.metadata["classes"]
    (folder / "own/fixed.py").write_text(FIXED.replace("window: int = 4", "window: int = 6"))
    changed = narrows.run(folder / "my.toml", out=folder / "out", resume=True)
    assert rate_of(changed) == pytest.approx(6, rel=0.03)
    assert changed.metadata["classes"] != first.metadata["classes"]


def test_a_changed_neighbour_changes_the_class(folder: Path) -> None:
    """The changed file keeps its length and its modification time."""
    neighbour = folder / "own/neighbour.py"
    before = neighbour.stat()
    first = narrows.run(folder / "my.toml", out=folder / "out")
    assert len("LEAST = 9\n") == before.st_size
    neighbour.write_text("LEAST = 9\n")
    os.utime(neighbour, ns=(before.st_atime_ns, before.st_mtime_ns))
    changed = narrows.run(folder / "my.toml", out=folder / "out", resume=True)
    assert rate_of(changed) == pytest.approx(9, rel=0.03)
    assert changed.metadata["classes"] != first.metadata["classes"]


def test_one_simulator_reads_a_file_again_for_each_sweep(folder: Path) -> None:
    simulator = Simulator()
    first = narrows.run(folder / "my.toml", backend=simulator)
    (folder / "own/fixed.py").write_text(FIXED.replace("window: int = 4", "window: int = 6"))
    changed = narrows.run(folder / "my.toml", backend=simulator)
    assert rate_of(changed) == pytest.approx(6, rel=0.03)
    assert changed.metadata["classes"] != first.metadata["classes"]


def test_neighbours_of_the_same_name_are_told_apart(folder: Path) -> None:
    (folder / "other").mkdir()
    (folder / "other/fixed.py").write_text(FIXED)
    (folder / "other/neighbour.py").write_text("LEAST = 12\n")
    flows = [
        {"cc": f"{name}/fixed.py:Fixed", "from": f"s{i}", "to": f"d{i}"}
        for i, name in ((1, "own"), (2, "other"))
    ]
    results = narrows.run(narrows.load(folder / "my.toml", {"flows": flows}))
    own, other = results.flows.column("goodput_bps").to_pylist()
    assert other / own == pytest.approx(3, rel=0.05)


@pytest.mark.parametrize(
    ("cc", "says"),
    [
        ("own/none.py:Fixed", "flows.0.cc: found 'own/none.py', expected a readable file"),
        ("own/fixed.py:Fix", "expected a class of this name in own/fixed.py; it has Fixed"),
        ("own/fixed.py:LEAST", "expected a class of this name"),
        ("own/broken.py:Any", "found 'own/broken.py' that raises ZeroDivisionError: division by zero"),
        ("own/spelling.py:Any", "found 'own/spelling.py' that raises SyntaxError"),
        ("own/half.py:Half", "without the method on_congestion, expected on_ack and on_congestion"),
        (
            {"name": "own/fixed.py:Fixed", "windw": 3},
            "found parameters windw, expected those of Fixed(window: int = 4)",
        ),
        ("own/binary.py:Any", "expected a text file"),
    ],
)
def test_a_faulty_file_gives_one_line(folder: Path, cc: object, says: str) -> None:
    (folder / "own/broken.py").write_text("1 / 0\n")
    (folder / "own/spelling.py").write_text("class Any\n")
    (folder / "own/half.py").write_text("class Half:\n    def on_ack(self, ack, window): ...\n")
    (folder / "own/binary.py").write_bytes(b"\xff\xfe\x00")
    scenario = narrows.load(folder / "my.toml", {"flows": [{"cc": cc}]})
    with pytest.raises(narrows.ScenarioError) as caught:
        narrows.run(scenario)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert str(folder / "my.toml") in str(caught.value)


def test_a_class_given_to_the_simulator_has_its_parameters_checked() -> None:
    class Own:
        def __init__(self, gain: float = 1.0) -> None:
            self.gain = gain

        def on_ack(self, ack: object, window: object) -> None: ...

        def on_congestion(self, event: object, window: object) -> None: ...

    scenario = narrows.loads(SCENARIO, overrides={"flows": [{"cc": {"name": "own", "gian": 2.0}}]})
    with pytest.raises(narrows.ScenarioError, match=r"gian, expected those of Own\(gain: float = 1.0\)"):
        narrows.run(scenario, backend=Simulator({"own": Own}))
    partial = functools.partial(Own, gain=3.0)
    scenario = narrows.loads(SCENARIO, overrides={"flows": [{"cc": "own"}]})
    assert narrows.run(scenario, backend=Simulator({"own": partial})).flows.num_rows == 1


RAISING = """
import sys


class In{hook}:
    def __init__(self):
        {init}

    def on_ack(self, ack, window):
        {ack}

    def on_congestion(self, event, window):
        pass
"""


@pytest.mark.parametrize(
    ("init", "ack", "says"),
    [
        (
            "pass",
            "1 / 0",
            r"InCase\.on_ack, at 0\.08\d* s of the simulation: ZeroDivisionError: division by zero",
        ),
        ("raise ValueError('a\\nb')", "pass", r"InCase\.__init__: ValueError: a b"),
        ("pass", "sys.exit(3)", r"InCase\.on_ack, at .*: found SystemExit, expected no exception"),
        (
            "pass",
            "window.cwnd = 1.5",
            r"InCase\.on_ack, at .*: ValueError: window.cwnd: found 1.5, expected a whole",
        ),
    ],
)
@pytest.mark.parametrize("executor", ["local", "processes"])
def test_an_exception_of_a_class_ends_the_command_with_one_line(
    folder: Path, init: str, ack: str, says: str, executor: str
) -> None:
    (folder / "own/fixed.py").write_text(RAISING.format(hook="Case", init=init, ack=ack))
    command = [sys.executable, "-m", "narrows", "run", "my.toml", "--set", 'flows.0.cc="own/fixed.py:InCase"']
    done = subprocess.run(
        [*command, "--executor", executor], cwd=folder, capture_output=True, text=True, check=False
    )
    assert done.returncode == 2
    last = done.stderr.splitlines()[-1]
    assert re.match(says, last), done.stderr
    assert "Traceback" not in done.stderr and not (folder / "results").exists()


def test_a_named_pipe_and_unicode_names(folder: Path) -> None:
    os.mkfifo(folder / "own/pipe.py")
    scenario = narrows.load(folder / "my.toml", {"flows": [{"cc": "own/pipe.py:Any"}]})
    with pytest.raises(narrows.ScenarioError, match="which is not a file, expected a Python file"):
        narrows.run(scenario)
    (folder / "own/größe.py").write_text(FIXED.replace("class Fixed", "class Größe"))
    scenario = narrows.load(folder / "my.toml", {"flows": [{"cc": "own/größe.py:Größe"}]})
    assert narrows.run(scenario).flows.column("name")[0].as_py() == "Größe"
