"""Changes of links and applications during a run, at fixed times and at the beginnings of phases."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from narrows.errors import ScenarioError
from narrows.plan import Plan
from narrows.results.by_run import read_runs
from narrows.results.measures import measure_run
from narrows.results.measures.phases import phases
from narrows.results.runs import Run
from narrows.scenario.load import loads
from narrows.scenario.resolve import resolve
from narrows.sweep import run as sweep

SECOND = 1_000_000_000
PATH = """
duration = "8s"
[probes]
interval = "2ms"
traces = true
links = ["tight"]
[[links]]
name = "tight"
between = ["a", "b"]
rate = "50mbit"
delay = "20ms"
queue = "2bdp"
{link}
[[flows]]
name = "flow"
from = "a"
to = "b"
cc = "bbr3"
{flow}
"""


def plan(link: str = "", flow: str = "", **known: Any) -> Plan:
    return resolve(loads(PATH.format(link=link, flow=flow)), **known)


def simulated(text: str) -> Run:
    (run,) = read_runs(sweep(loads(text)))
    return run


def test_jitter_changes_in_the_forward_direction() -> None:
    forth, back = plan('jitter = "1ms"\nat = [{ time = "2s", jitter = { max = "3ms", reorder = true } }]')[
        "links"
    ]
    assert forth["jitter"] == {"max": 1_000_000, "reorder": False}
    assert forth["jitter_changes"] == [(2 * SECOND, {"max": 3_000_000, "reorder": True})]
    assert back["jitter"] is None and "jitter_changes" not in back


def test_a_jitter_of_zero_is_no_jitter() -> None:
    assert plan('jitter = "0s"')["links"][0]["jitter"] is None


def test_links_without_changes_of_jitter_have_no_key_for_them() -> None:
    made = plan('at = [{ time = "2s", rate = "10mbit" }]')
    assert "jitter_changes" not in made["links"][0] and "triggers" not in made


@pytest.mark.parametrize(
    ("app", "steps"),
    [
        ('rate = "8mbit", at = [{ time = "2s", rate = "0mbit" }]', [(0, 1_000_000), (2 * SECOND, 0)]),
        ('at = [{ time = "2s", rate = "8mbit" }]', [(0, None), (2 * SECOND, 1_000_000)]),
        ('rate = "8mbit", at = [{ time = "2s" }]', [(0, 1_000_000), (2 * SECOND, None)]),
        ('at = [{ time = 0, rate = "8mbit" }]', [(0, 1_000_000)]),
    ],
)
def test_an_application_has_a_schedule_of_rates(app: str, steps: list[tuple[int, int | None]]) -> None:
    assert plan(flow=f"app = {{ {app} }}")["flows"][0]["app"] == {"kind": "scheduled", "steps": steps}


def test_an_application_without_changes_has_the_plan_of_before() -> None:
    app = plan(flow='app = { rate = "8mbit", on = "1s", off = "2s" }')["flows"][0]["app"]
    assert app == {"kind": "limited", "rate": 1_000_000, "on": SECOND, "off": 2 * SECOND}


def test_changes_at_phases_become_triggers() -> None:
    when = '{ flow = "flow", phase = "up", visit = 2 }'
    made = plan(
        f'at = [{{ when = {when}, time = "5ms", rate = "8mbit", loss = "1%" }}, '
        '{ time = "1s", delay = "1ms" }]',
        f'app = {{ at = [{{ when = {when}, rate = "0mbit" }}] }}',
    )
    common = {"flow": 0, "phase": "up", "visit": 2}
    link = {"kind": "link", "rate": 1_000_000, "delay": None, "jitter": None}
    loss = {"kind": "bernoulli", "p": 0.01}
    assert made["triggers"] == [
        {**common, "after": 5_000_000, "change": {**link, "link": 0, "loss": loss}},
        {**common, "after": 5_000_000, "change": {**link, "link": 1, "loss": None}},
        {**common, "after": 0, "change": {"kind": "app", "flow": 0, "rate": 0}},
    ]
    assert made["links"][0]["delay"] == [(0, 20_000_000), (SECOND, 1_000_000)]


@pytest.mark.parametrize(
    ("link", "flow", "said"),
    [
        (
            'at = [{ when = { flow = "flwo", phase = "up" }, rate = "1mbit" }]',
            "",
            "links.0.at.0.when.flow: found 'flwo', expected the name of a single TCP flow; nearest is 'flow'",
        ),
        (
            'at = [{ when = { flow = "flow", phase = "up" }, rate = "1mbit" }]',
            "count = 2",
            "links.0.at.0.when.flow: found 'flow', expected the name of a single TCP flow",
        ),
        (
            "",
            'app = { at = [{ time = "2s" }, { time = "1s" }] }',
            "flows.0.app.at: found changes out of order, expected rising times",
        ),
    ],
)
def test_errors(link: str, flow: str, said: str) -> None:
    with pytest.raises(ScenarioError) as caught:
        plan(link, flow)
    assert str(caught.value) == f"scenario: {said}"


def test_real_stacks_refuse_changes_at_phases() -> None:
    change = 'at = [{ when = { flow = "flow", phase = "up" }, rate = "1mbit" }]'
    with pytest.raises(ScenarioError, match=r"links\.0\.at\.0\.when: found a phase, expected --on sim"):
        plan(change, congestion_controllers=["bbr3"], kernel="Linux 6.1")


def test_the_rate_falls_when_drain_begins() -> None:
    text = PATH.format(link='at = [{ when = { flow = "flow", phase = "drain" }, rate = "40mbit" }]', flow="")
    run = simulated(text)
    drain = next(visit for visit in phases(run, "flow") if visit.state == "drain")
    t, capacity = run.link_series(run.link("tight"), "capacity_bps")
    # A sample can be 2 ms late.
    assert set(capacity[t < drain.begin_s - 0.003]) == {50e6}
    assert set(capacity[t > drain.begin_s + 0.003]) == {40e6}


def test_the_command_names_phases_that_never_began(tmp_path: Path, narrows: Any) -> None:
    change = 'at = [{ when = { flow = "flow", phase = "up", visit = 3 }, rate = "1mbit" }]'
    text = PATH.format(link=change, flow="").replace('cc = "bbr3"', 'cc = "cubic"').replace('"8s"', '"1s"')
    file = tmp_path / "path.toml"
    file.write_text(text + "[sweep]\nseeds = 2\n", encoding="utf-8")
    code, out, _ = narrows("run", file, "--out", tmp_path / "results")
    assert code == 0
    assert "note: in 2 of 2 runs, flow never began visit 3 to the phase up, so" in out


def test_an_application_that_pauses_delivers_nothing() -> None:
    flow = 'app = { at = [{ time = "3s", rate = "0mbit" }, { time = "5s", rate = "8mbit" }] }'
    run = simulated(PATH.format(link="", flow=flow))
    t, goodput = run.flow_series(0, "goodput_bps")
    assert goodput[(t > 3.2) & (t < 5.0)].max() == 0
    assert goodput[(t > 6.0) & (t < 8.0)].mean() == pytest.approx(8e6, rel=0.02)
    assert measure_run("utilisation", run, link="tight").value < 80
