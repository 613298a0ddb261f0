"""The step from a scenario to its plan."""

import json
from pathlib import Path

import pytest
from narrows.errors import ScenarioError
from narrows.scenario.load import expand, load, loads
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve, survey

SCENARIOS = Path(__file__).parents[2] / "scenarios"
DUMBBELL = """
[topology]
kind = "dumbbell"
rate = "100mbit"
rtts = ["20ms", "100ms"]
loss = "1%"
[[flows]]
[[flows]]
"""


def plan_of(text):
    return resolve(loads(text))


def link(plan, name):
    return next(link for link in plan["links"] if link["name"] == name)


def route_delay(plan, source, to):
    """Two-way propagation delay along a dumbbell."""
    hops = [f"{source}->r1", "bottleneck", f"r2->{to}", f"{to}->r2", "bottleneck.back", f"r1->{source}"]
    return sum(link(plan, hop)["delay"][0][1] for hop in hops)


def test_dumbbell_gives_each_pair_its_rtt():
    plan = plan_of(DUMBBELL)
    assert route_delay(plan, "s1", "d1") == 20_000_000
    assert route_delay(plan, "s2", "d2") == 100_000_000
    ends = [(plan["nodes"][f["from"]], plan["nodes"][f["to"]]) for f in plan["flows"]]
    assert ends == [("s1", "d1"), ("s2", "d2")]
    assert [f["name"] for f in plan["flows"]] == ["cubic-1", "cubic-2"]


def test_a_bdp_is_of_the_longest_flow_over_the_link():
    queue = link(plan_of(DUMBBELL), "bottleneck")["queue"]
    # One BDP is 100 Mbit/s x 100 ms.
    assert queue == {"kind": "fifo", "limit": {"packets": None, "bytes": 1_250_000}, "mark": {"kind": "none"}}


def test_loss_applies_to_the_forward_direction_only():
    plan = plan_of(DUMBBELL)
    assert link(plan, "bottleneck")["loss"] == [(0, {"kind": "bernoulli", "p": 0.01})]
    assert link(plan, "bottleneck.back")["loss"] == []


@pytest.mark.parametrize(
    ("head", "seconds"),
    [("", 3.0), ('duration = "5s"', 1.0), ('duration = "1s"', 0.5), ('warmup = "7s"', 7.0)],
)
def test_warmup_is_a_tenth_but_ten_rtt_but_half(head, seconds):
    assert plan_of(head + DUMBBELL)["warmup"] == seconds * 1e9


def test_changes_become_steps():
    plan = plan_of("""
        [[links]]
        between = ["a", "b"]
        rate = "8mbit"
        delay = "1ms"
        at = [
            {time = "1s", rate = "16mbit"},
            {time = "2s", loss = "50%", delay = "2ms"},
            {time = "3s", rate = "0bit"},
        ]
        back = {delay = "3ms"}
        [[flows]]
        from = "b"
        to = "a"
    """)
    forth, back = plan["links"]
    s = 10**9
    steps = [(0, 10**6), (s, 2 * 10**6), (3 * s, 0)]
    assert forth["rate"] == {"kind": "steps", "steps": steps, "period": None}
    assert forth["delay"] == [(0, 10**6), (2 * s, 2 * 10**6)]
    assert forth["loss"] == [(0, {"kind": "bernoulli", "p": 0.0}), (2 * s, {"kind": "bernoulli", "p": 0.5})]
    assert back["rate"] == forth["rate"]
    assert back["delay"][0] == (0, 3 * 10**6)
    assert back["loss"] == []


@pytest.mark.parametrize(
    ("queue", "expected"),
    [
        ('"10p"', {"kind": "fifo", "limit": {"packets": 10, "bytes": None}, "mark": {"kind": "none"}}),
        ('"infinite"', {"kind": "fifo", "limit": {"packets": None, "bytes": None}, "mark": {"kind": "none"}}),
        (
            '"codel"',
            {
                "kind": "codel",
                "limit": {"packets": 1000, "bytes": None},
                "target": 5_000_000,
                "interval": 100_000_000,
                "ecn": False,
            },
        ),
        (
            '{kind = "threshold", mark = 20, limit = "2bdp"}',
            {
                "kind": "fifo",
                "limit": {"packets": None, "bytes": 2_500_000},
                "mark": {"kind": "threshold", "packets": 20},
            },
        ),
        (
            '{kind = "threshold", mark = "0.17bdp", limit = "200p"}',
            {
                "kind": "fifo",
                "limit": {"packets": 200, "bytes": None},
                "mark": {"kind": "threshold", "packets": 142},
            },
        ),
        (
            '{kind = "priority", classes = ["1p", "3kB"]}',
            {
                "kind": "priority",
                "classes": [{"packets": 1, "bytes": None}, {"packets": None, "bytes": 3000}],
            },
        ),
    ],
)
def test_queues(queue, expected):
    plan = plan_of(DUMBBELL.replace("loss", f"queue = {queue}\nloss"))
    assert link(plan, "bottleneck")["queue"] == expected


@pytest.mark.parametrize(
    ("queue", "line"),
    [
        ('mark = 99, limit = "100p"', "found 99 packets, expected less than 99: the queue's limit is 100"),
        ('limit = "50p"', "found 65 packets, expected less than 49: the queue's limit is 50"),
        ('mark = "0.17bdp", limit = "100p"', "found 142 packets, expected less than 99"),
        ('mark = "1bdp", limit = "1bdp"', "expected less than the queue's limit of 1250000B: nothing would"),
    ],
)
def test_a_mark_that_no_queue_reaches_is_refused(queue, line):
    with pytest.raises(ScenarioError, match=line):
        plan_of(DUMBBELL.replace("loss", f'queue = {{kind = "threshold", {queue}}}\nloss'))


def test_the_longest_mark_that_a_queue_reaches_passes():
    plan = plan_of(DUMBBELL.replace("loss", 'queue = {kind = "threshold", mark = 98, limit = "100p"}\nloss'))
    assert link(plan, "bottleneck")["queue"]["mark"]["packets"] == 98


def test_flows():
    plan = plan_of("""
        [topology]
        kind = "star"
        leaves = 3
        rate = "8mbit"
        rtt = "4ms"
        [[flows]]
        transport = "udp"
        rate = "4mbit"
        [[flows]]
        app = {rate = "4mbit", on = "1s", off = "2s"}
        stop = "1h"
        [[flows]]
        name = "short"
        arrivals = {rate = 20, size = {distribution = "pareto", mean = "12.5kB", shape = 1.5}}
    """)
    udp, limited, short = plan["flows"]
    assert [plan["nodes"][f["from"]] for f in plan["flows"]] == ["h2", "h3", "h2"]
    assert {plan["nodes"][f["to"]] for f in plan["flows"]} == {"h1"}
    assert udp["transport"] == {"kind": "udp", "rate": 500_000, "packet": 1500}
    assert limited["app"] == {"kind": "limited", "rate": 500_000, "on": 10**9, "off": 2 * 10**9}
    assert limited["stop"] is None
    size = {"kind": "pareto", "mean": 12500.0, "shape": 1.5}
    assert short["app"] == {"kind": "poisson", "per_sec": 20.0, "size": size}


def test_controllers():
    plan = plan_of(
        DUMBBELL
        + """
        [[rate_controllers]]
        kind = "brf"
        link = "r1->r2"
        shape = "80mbit"
        capacity = "measured"
        queue = "50p"
        outages = [["10s", "20s"]]
        [rate_controllers.params]
        mode = "literal"
        period_min = "10ms"
        b_head = "150%"
        capacity_initial = "8kbit"
        udp_share = "5%"
        [sdn]
        poll = "100ms"
        """
    )
    assert plan["rate_controllers"] == [
        {
            "kind": "brf",
            "link": 0,
            "shape": [(0, 10**7)],
            "told": False,
            "limit": {"packets": 50, "bytes": None},
            "params": {
                "mode": "literal",
                "period_min": 10**7,
                "b_head": 1.5,
                "capacity_initial": 1000,
                "udp_share": 0.05,
            },
            "outages": [(10 * 10**9, 20 * 10**9)],
        }
    ]
    assert plan["sdn"] == {"poll": 10**8, "delay": 10**6, "outages": []}


def test_probes_default_to_bottlenecks_and_controlled_links():
    small = plan_of(DUMBBELL)
    assert small["probes"]["links"] == list(range(10))
    large = plan_of(DUMBBELL.replace('rtts = ["20ms", "100ms"]', 'rtt = "20ms"\npairs = 20'))
    assert large["probes"]["links"] == [0]


def test_parking_lot_routes():
    def route(source, to):
        flows = [{"from": source, "to": to}]
        seen = survey(load(SCENARIOS / "parking-lot.toml", {"flows": flows, "rate_controllers": []}))
        return [seen.graph.links[i].name for i in seen.paths[0].forth]

    assert route("s0", "d0") == ["s0->r1", "hop1", "hop2", "hop3", "r4->d0"]
    assert route("s2", "d2") == ["s2->r2", "hop2", "r3->d2"]


def test_the_shortest_way_wins_and_a_return_path_may_differ():
    ring = """
        [[links]]
        between = ["a", "b"]
        rate = "8mbit"
        delay = "10ms"
        [[links]]
        between = ["b", "c"]
        rate = "8mbit"
        delay = "10ms"
        [[links]]
        between = ["a", "c"]
        rate = "8mbit"
        delay = "50ms"
        [[flows]]
        from = "a"
        to = "c"
        return_path = ["c", "a"]
    """
    plan = plan_of(ring.replace('delay = "10ms"', 'delay = "10ms"\nqueue = "1bdp"', 1))
    # Data goes over b, because this path has less delay than the direct link. ACKs take the direct link. The
    # BDP is 1 MB/s x (10 + 10 + 50) ms.
    assert link(plan, "a->b")["queue"]["limit"]["bytes"] == 70_000
    assert plan["flows"][0]["return_path"] == [2, 0]


def test_sweeps_are_cases_times_products_times_seeds():
    scenario = loads(
        DUMBBELL
        + """
        [sweep]
        seeds = 2
        [sweep.vary]
        "flows.*.cc" = ["cubic", "bbr"]
        "topology.loss" = [0, 0.01]
        [[sweep.case]]
        name = "short"
        set = {"topology.rtts" = ["1ms", "1ms"]}
        [[sweep.case]]
        name = "long"
        set = {}
        """
    )
    runs = expand(scenario)
    assert len(runs) == 2 * 2 * 2 * 2
    assert [run.id for run in runs] == list(range(16))
    assert runs[0].factors == {"case": "short", "flows.*.cc": "cubic", "topology.loss": 0.0}
    assert runs[-1].factors == {"case": "long", "flows.*.cc": "bbr", "topology.loss": 0.01}
    assert [run.scenario.seed for run in runs[:4]] == [1, 2, 1, 2]
    assert [flow.cc.name for flow in runs[-1].scenario.flows] == ["bbr", "bbr"]
    assert len(expand(scenario, seeds=1)) == 8


def test_a_scenario_survives_its_own_print():
    for path in sorted(SCENARIOS.glob("*.toml")):
        scenario = load(path)
        for form in (scenario.raw(), scenario.full()):
            again = Scenario(**json.loads(json.dumps(form))).with_source(str(path))
            assert again == scenario
            assert resolve(again) == resolve(scenario)


def test_a_udp_flow_survives_its_own_print():
    scenario = loads(
        '[topology]\nkind = "dumbbell"\nrate = "10mbit"\nrtt = "20ms"\n'
        '[[flows]]\ntransport = "udp"\nrate = "1mbit"\n'
    )
    assert Scenario(**json.loads(json.dumps(scenario.full()))).flows == scenario.flows


def test_a_scenario_can_be_written_in_python():
    scenario = Scenario(
        topology={"kind": "dumbbell", "rate": "10mbit", "rtt": "20ms"}, flows=[{"cc": "cubic"}, {"cc": "bbr"}]
    )
    assert [flow["name"] for flow in resolve(scenario)["flows"]] == ["cubic", "bbr"]


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.toml")), ids=lambda path: path.stem)
def test_examples_resolve_and_begin_with_a_picture(path):
    for run in expand(load(path)):
        resolve(run.scenario)
    head = path.read_text().split("\n\n")[0]
    assert "Expected result:" in head
    assert "--" in head or "==" in head


def test_thousands_of_hosts_take_no_time():
    plan = plan_of("""
        [topology]
        kind = "dumbbell"
        pairs = 4096
        rate = "1gbit"
        rtt = "20ms"
    """ + "[[flows]]\n" * 2000)  # fmt: skip
    assert len(plan["flows"]) == 2000


def test_a_policer_and_aggregation_apply_in_one_direction():
    text = """
    [[links]]
    name = "access"
    between = ["a", "b"]
    rate = "100mbit"
    delay = "5ms"
    policer = { rate = "20mbit", burst = "250kB" }
    back = { aggregation = "10ms" }
    [[flows]]
    from = "a"
    to = "b"
    """
    plan = plan_of(text)
    forth, back = link(plan, "access"), link(plan, "access.back")
    assert forth["policer"] == {"rate": 2_500_000, "burst": 250_000} and forth["aggregation"] is None
    assert back["aggregation"] == 10_000_000 and back["policer"] is None


def test_the_bottleneck_of_a_topology_can_have_a_policer():
    plan = plan_of(DUMBBELL.replace('loss = "1%"', 'policer = { rate = "50mbit", burst = "1500B" }'))
    assert link(plan, "bottleneck")["policer"] == {"rate": 6_250_000, "burst": 1500}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (
            'policer = { rate = "20mbit", burst = "1kB" }',
            "policer.burst: found '1000B', expected at least a full packet (1500B)",
        ),
        ('policer = { rate = "0mbit", burst = "9kB" }', "policer.rate: found '0mbit', expected"),
        ('policer = { rate = "20mbit" }', "policer.burst: found nothing, expected"),
        ('aggregation = "0ms"', "aggregation: found '0ms', expected"),
    ],
)
def test_a_wrong_policer_or_aggregation_is_one_line(given, said):
    with pytest.raises(ScenarioError) as error:
        plan_of(DUMBBELL.replace('loss = "1%"', given))
    assert f"topology.{said}" in str(error.value)


def test_a_bucket_smaller_than_a_packet_of_its_flows_is_one_line():
    text = DUMBBELL.replace('loss = "1%"', 'policer = { rate = "50mbit", burst = "1500B" }')
    with pytest.raises(ScenarioError, match=r"policer.burst: found '1500B', expected at least .* \(9000B\)"):
        plan_of(text.replace("[[flows]]", "[[flows]]\nmss = 8948", 1))
