"""`narrows show`: tables and pictures of networks."""

import importlib.util
import math
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from narrows import sweep
from narrows.report import network
from narrows.report.place import place

SCENARIOS = Path(__file__).parents[2] / "scenarios"
native = pytest.mark.skipif(importlib.util.find_spec("narrows._native") is None, reason="no simulator")


@pytest.fixture
def show(narrows, tmp_path, monkeypatch, backend):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "simulator", lambda: backend)
    return narrows


def test_tables_of_abilene(show):
    code, out, err = show("show", SCENARIOS / "abilene.toml")
    assert (code, err) == (0, "")
    lines = [" ".join(line.split()) for line in out.splitlines()]
    assert "STTLng.host->STTLng 1 Gbit/s 0.93 ms endless" in lines
    assert any(line.startswith("HSTNng->LOSAng 100 Mbit/s 10.98 ms") for line in lines)
    assert "north STTLng NYCMng 1 50 ms 100 Mbit/s STTLng DNVRng KSCYng IPLSng CHINng NYCMng" in lines


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_every_example_can_be_shown_and_drawn(path, show, tmp_path, monkeypatch):
    monkeypatch.setattr(network, "VALIDATE", True)
    assert show("show", path)[0] == 0
    code, out, err = show("show", path, "--out", "n.svg")
    assert (code, out, err) == (0, "drawing in n.svg\n", "")
    assert (tmp_path / "n.svg").read_text().startswith("<svg")


@pytest.mark.parametrize(("suffix", "magic"), [("svg", b"<svg"), ("PNG", b"\x89PNG"), ("pdf", b"%PDF")])
def test_forms_of_a_drawing(show, tmp_path, suffix, magic):
    assert show("show", SCENARIOS / "abilene.toml", "--out", f"n.{suffix}")[0] == 0
    assert (tmp_path / f"n.{suffix}").read_bytes().startswith(magic)


def test_a_drawing_has_every_switch_by_name_and_delays(show, tmp_path):
    show("show", SCENARIOS / "abilene.toml", "--out", "n.svg")
    texts = set(re.findall(r"<text[^>]*>([^<]+)</text>", (tmp_path / "n.svg").read_text()))
    assert {"STTLng", "ATLAM5", "NYCMng", "abilene", "between switches: 100 Mbit/s"} <= texts
    assert {"11 ms", "5.74 ms"} <= texts
    assert not any("host" in text for text in texts)


def test_loads_of_a_run(show, tmp_path):
    scenario = SCENARIOS / "abilene.toml"
    assert show("run", scenario, "--out", "res")[0] == 0
    code, out, _ = show("show", scenario, "--results", "res")
    assert code == 0 and "load forth" in out
    # The fake backend reports a utilisation of 90 % for every link.
    rows = [line for line in out.splitlines() if "->" in line]
    assert rows and all(line.split()[-2:] == ["90.0", "90.0"] for line in rows)
    assert show("show", scenario, "--results", "res", "--out", "n.svg")[0] == 0
    assert "utilisation" in (tmp_path / "n.svg").read_text()


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["abilene.toml", "--out", "n.gif"], "--out: found 'n.gif', expected a file in .svg, .png, .pdf\n"),
        (["abilene.toml", "--out", "none/n.svg"], "none/n.svg: No such file or directory\n"),
        (
            ["abilene.toml", "--results", "none"],
            "none: no such folder, expected a folder of results\n",
        ),
        (
            ["abilene.toml", "--set", "topology.name=abilone"],
            "abilene.toml: topology.name: found 'abilone', expected a network; nearest is 'abilene'\n",
        ),
        (
            ["abilene.toml", "--set", "flows.0.cc=bff"],
            "abilene.toml: flows.0.cc: found 'bff', expected a congestion controller; nearest is 'brf'\n",
        ),
    ],
)
def test_mistakes_give_a_one_line_error(show, tmp_path, args, message):
    (tmp_path / "abilene.toml").write_text((SCENARIOS / "abilene.toml").read_text())
    assert show("show", *args) == (2, "", message)


def test_a_queue_is_shown_as_rates_and_delays_are(show, tmp_path):
    """The BDP of 50 Mbit/s and 30 ms is 187500 bytes, which is not a whole number of kB."""
    (tmp_path / "q.toml").write_text(
        '[topology]\nkind = "dumbbell"\nrate = "50mbit"\nrtt = "30ms"\n[[flows]]\n'
    )
    _, out, _ = show("show", tmp_path / "q.toml")
    (row,) = [line for line in out.splitlines() if line.startswith("bottleneck")]
    assert row.split()[1:] == ["50", "Mbit/s", "7.5", "ms", "187.5", "kB"]


def test_results_of_another_network_are_refused(show, tmp_path):
    show("run", SCENARIOS / "two-flows.toml", "--out", "res")
    code, out, err = show("show", SCENARIOS / "abilene.toml", "--results", "res")
    assert (code, out) == (2, "")
    assert err == "res: found no link 'ATLAM5->ATLAng', expected results of this scenario\n"


def test_loads_decide_colour_and_width_of_each_direction():
    nodes = [network.Node("a", 0, 0, False), network.Node("b", 1, 0, False)]
    spec = network.chart("t", nodes, [network.Link(0, 1, "1 Mbit/s\n1 ms", 0.25, 1.0)], False)
    rules = spec["layer"][0]
    assert [row["u"] for row in rules["data"]["values"]] == [0.25, 1.0]
    assert {rules["encoding"][channel]["field"] for channel in ("color", "strokeWidth")} == {"u"}
    forth, back = rules["data"]["values"]
    # Each direction of a link has a line. Seen in its direction, each line is on the right. So the eastward
    # line is below the westward line.
    assert forth["x"] < forth["x2"] and back["x"] > back["x2"]
    assert forth["y"] < back["y"]


# Positions

graphs = st.integers(1, 14).flatmap(
    lambda n: st.tuples(
        st.just(n),
        st.lists(
            st.tuples(st.integers(0, n - 1), st.integers(0, n - 1)).filter(lambda e: e[0] != e[1]),
            max_size=30,
        ),
        st.dictionaries(
            st.integers(0, n - 1), st.tuples(st.floats(-180, 180), st.floats(-90, 90)), max_size=n
        ),
    )
)


@given(graphs)
@settings(max_examples=200, deadline=None)
def test_every_node_gets_a_finite_place_and_known_ones_keep_theirs(graph):
    count, links, known = graph
    at = place(count, links, known)
    assert len(at) == count
    assert all(math.isfinite(value) for point in at for value in point)
    if len(known) > 1:
        assert {node: at[node] for node in known} == known


def test_a_row_of_switches_is_a_row():
    at = place(4, [(0, 1), (1, 2), (2, 3), (3, 0)][:3], {})
    # Each of the two ends has only one neighbour, so both are drawn as hosts.
    assert at[1][0] < at[2][0]
    assert at[1][1] == pytest.approx(at[2][1], abs=1e-9)
    assert len({(round(x, 6), round(y, 6)) for x, y in at}) == 4
