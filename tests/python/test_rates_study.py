"""The study `rates`: its cases, routes and figures."""

from __future__ import annotations

import heapq
import re
from typing import Any

import numpy as np
import pytest
from narrows.report import figure
from narrows.report.kinds import draw
from narrows.report.overview import overview
from narrows.report.study import figures
from narrows.results.runs import Run, Runs
from narrows.scenario.load import expand
from narrows.scenario.resolve import resolve
from narrows.studies import find_study, load_study
from narrows.studies.model import FigureSpec, Overview, TableSpec
from narrows.studies.runner import Outcome, prepare
from test_judge import a_run

RATES = load_study(find_study("rates"))
CASES = ["brf", "pacec", "rcp", "rcp-published", "xcp", "xcp-paced", "bdr", "cubic"]


@pytest.fixture(autouse=True)
def _valid_charts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(figure, "VALIDATE", True)


# --- scenarios


@pytest.mark.parametrize("experiment", RATES.experiments, ids=lambda item: item.id)
def test_rcp_and_xcp_run_in_both_forms_in_every_scenario(experiment: Any) -> None:
    scenario, _ = prepare(RATES, experiment, quick=False)
    points = {str(run.factors["case"]): resolve(run.scenario) for run in expand(scenario, 1)}
    assert list(points) == CASES
    rcp, published = points["rcp"], points["rcp-published"]
    assert {port["params"].get("beta") for port in published["rate_controllers"]} == {0.4}
    assert all("beta" not in port["params"] for port in rcp["rate_controllers"])
    assert {**rcp, "rate_controllers": 0} == {**published, "rate_controllers": 0}
    xcp, paced = points["xcp"], points["xcp-paced"]
    assert {flow["transport"]["pacing"] for flow in xcp["flows"]} == {False}
    assert {flow["transport"]["pacing"] for flow in paced["flows"]} == {True}
    assert {**xcp, "flows": 0} == {**paced, "flows": 0}


def _paths(plan: Any) -> dict[str, list[str]]:
    """For each flow, the links of the path with the least delay, found by Dijkstra's algorithm."""
    links: dict[Any, list[tuple[Any, int, str]]] = {}
    for link in plan["links"]:
        links.setdefault(link["from"], []).append((link["to"], link["delay"][0][1], link["name"]))
    found = {}
    for flow in plan["flows"]:
        heap: list[tuple[int, int, Any, list[str]]] = [(0, 0, flow["from"], [])]
        seen = set()
        while heap:
            delay, hops, node, path = heapq.heappop(heap)
            if node == flow["to"]:
                found[flow["name"]] = path
                break
            if node not in seen:
                seen.add(node)
                for to, more, name in links.get(node, []):
                    heapq.heappush(heap, (delay + more, hops + 1, to, [*path, name]))
    return found


@pytest.mark.parametrize("experiment", RATES.experiments, ids=lambda item: item.id)
def test_max_min_shares_use_the_routes_of_the_flows(experiment: Any) -> None:
    scenario, _ = prepare(RATES, experiment, quick=True)
    paths = _paths(resolve(expand(scenario, 1)[0].scenario))
    named = [
        column.args for table in RATES.tables if table.experiment == experiment.id for column in table.columns
    ]
    named += [claim.args for claim in RATES.claims if claim.experiment == experiment.id]
    routes = [args["routes"] for args in named if "routes" in args]
    assert routes or experiment.id == "R3"
    for each in routes:
        for pattern, links in each.items():
            flow = next(name for name in paths if name.startswith(pattern.removesuffix("*")))
            on_path = [
                name for name in paths[flow] if name in {link for route in each.values() for link in route}
            ]
            assert on_path == links, (pattern, paths[flow])
        if experiment.id == "R11":  # the routes use all links between switches
            assert {link for path in paths.values() for link in path if "host" not in link} == {
                link for route in each.values() for link in route
            }


# --- the overview


def _outcome(tables: list[TableSpec], **runs: Runs) -> Outcome:
    whole = Overview(
        title="All",
        caption="Means.",
        panels=[{"column": "Rate", "title": "Rate", "scale": [0.0, 50.0, 100.0]}],
    )
    experiments = [item for item in RATES.experiments if item.id in runs]
    study = RATES.model_copy(
        update={"overview": whole, "tables": tables, "experiments": experiments, "figures": []}
    )
    return Outcome(study, True, dict(runs), [])


def _table(experiment: str, title: str) -> TableSpec:
    columns = [{"title": title, "measure": "goodput", "args": {"flows": "long"}}]
    return TableSpec(id=experiment, experiment=experiment, title="t", columns=columns)


def test_the_overview_has_a_row_for_each_experiment_with_the_column() -> None:
    runs = Runs([a_run(name, seed, 10 * seed) for name in ("rcp", "xcp") for seed in (1, 2, 3)])
    faster = Runs([a_run("rcp", seed, 70.4) for seed in (1, 2)])
    outcome = _outcome(
        [_table("R1", "Rate"), _table("R2", "Rate"), _table("R3", "Other")], R1=runs, R2=faster, R3=runs
    )
    drawn = overview(outcome)
    assert drawn is not None and [key.label for key in drawn.keys] == ["worse", "neutral", "better"]
    (panel,) = drawn.specs()
    cells = {(row["r"], row["c"]): (row["t"], row["f"]) for row in _values(panel) if "r" in row}
    assert {place: text for place, (text, _) in cells.items()} == {
        ("R1 Few flows", "RCP"): "20",
        ("R1 Few flows", "XCP"): "20",
        ("R2 Many flows", "RCP"): "70",
    }
    assert (
        cells["R1 Few flows", "RCP"][1] == cells["R1 Few flows", "XCP"][1] != cells["R2 Many flows", "RCP"][1]
    )
    assert next(iter(figures(outcome))) == "overview"
    assert overview(_outcome([_table("R1", "Other")], R1=runs)) is None


def _values(spec: Any) -> list[dict[str, Any]]:
    if isinstance(spec, dict):
        own = spec.get("values") if isinstance(spec.get("values"), list) else []
        rows = [row for row in own if isinstance(row, dict)]
        return rows + [row for part in spec.values() for row in _values(part)]
    return [row for part in spec for row in _values(part)] if isinstance(spec, list) else []


# --- kinds of figures


def _figure(kind: str, **args: Any) -> FigureSpec:
    return FigureSpec(id="f", experiment="R3", kind=kind, title="T", caption="C.", args=args)


def _finished(name: str, seed: int, times: list[float], sizes: list[float] | None = None) -> Run:
    flows = {
        "name": [f"web.{i}" for i in range(len(times))],
        "source": ["web"] * len(times),
        "cc": [name] * len(times),
        "start_s": np.linspace(4, 9, len(times)),
        "fct_s": np.array(times),
        "size_bytes": np.array(sizes or [1e4] * len(times)),
    }
    return Run({"algorithm": name}, seed, {"flows": flows})


def test_completion_times_are_drawn_as_a_distribution() -> None:
    runs = Runs([_finished("rcp", 1, [0.1, 0.2, 0.3]), _finished("rcp", 2, [0.3, 0.4, 0.5, np.nan])])
    (panel,) = draw(_figure("cdf", of="completion"), runs).specs()
    rows = _values(panel)
    by_level = {row["y"]: row["x"] for row in rows}
    assert by_level[0.0] == pytest.approx(200) and by_level[1.0] == pytest.approx(400)
    assert by_level[0.5] == pytest.approx(300)
    text = str(panel)
    assert "Completion time (ms)" in text and "Share of the flows" in text
    low, high = next(part for part in _domains(panel) if part != [0, 1])  # the axis of the times
    assert 150 < low < 200 and 400 < high < 600  # the axis ends near the values, and not at powers of ten


def _domains(spec: Any) -> list[list[float]]:
    if isinstance(spec, dict):
        domain = spec.get("domain")
        own = (
            [domain]
            if isinstance(domain, list) and all(isinstance(end, int | float) for end in domain)
            else []
        )
        return own + [found for part in spec.values() for found in _domains(part)]
    return [found for part in spec for found in _domains(part)] if isinstance(spec, list) else []


def test_the_axes_of_completion_over_size_end_with_the_data() -> None:
    times = [0.12 + 0.001 * i for i in range(60)]
    run = _finished("rcp", 1, times, [2e5] * 30 + [4e5] * 30)
    (panel,) = draw(_figure("completion-over-size", packet_bytes=1000), Runs([run])).specs()
    x, y = _domains(panel)[:2]
    assert 150 < x[0] < 200 and 400 < x[1] < 500
    assert 100 < y[0] < 150 and 160 < y[1] < 200


def test_a_small_chart_may_show_a_link() -> None:
    samples = {
        "link": np.array([0.0, 0.0, 1.0, 1.0]),
        "t_s": np.array([1.0, 2.0, 1.0, 2.0]),
        "queue_packets": np.array([5.0, 7.0, 50.0, 70.0]),
    }
    links = {"link": np.array([0.0, 1.0]), "name": ["access", "tight"]}
    run = Run({"algorithm": "rcp"}, 1, {"links": links, "link_samples": samples})
    drawn = draw(_figure("multiples", quantity="queue_packets", link="tight"), Runs([run]))
    (panel,) = drawn.specs()
    assert [row["y"] for row in _values(panel)] == [50.0, 70.0]
    assert re.search(r"Queue \(packets\)", str(panel))
