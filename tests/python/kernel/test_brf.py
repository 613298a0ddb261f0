"""BRF on this machine's kernel, with narrows-agent as sender, receiver and switch.

If a test that measures in real time fails, it is repeated (`flaky`), because other work on the machine can
disturb it.
"""

from __future__ import annotations

import json
import math
import tomllib

import pytest
import tomli_w
from narrows import sweep
from narrows.backends.kernel import agency, agents, record
from narrows.backends.kernel.backend import check_plan
from narrows.backends.kernel.layout import lay_out
from narrows.backends.kernel.spec import source_ports, spec
from narrows.errors import ScenarioError
from narrows.scenario.load import loads

PREFIX = "nrw-12-3-"

TWO = """
duration = "6s"
warmup = "2s"
[topology]
kind = "dumbbell"
rate = "100mbit"
rtt = "20ms"
queue = "1000p"
[[flows]]
cc = "brf"
[[flows]]
cc = "brf"
start = "1s"
[[rate_controllers]]
kind = "brf"
link = "bottleneck"
"""


def agents_of(plan):
    return agents.agents(plan, lay_out(plan), PREFIX)


def bottleneck(plan):
    return next(i for i, link in enumerate(plan["links"]) if link["name"] == "bottleneck")


def test_each_role_is_configured_once(plan):
    made = plan(TWO)
    found = agents_of(made)
    assert [agent.role for agent in found] == ["switch", "receiver", "sender"]
    switch, receiver, sender = (tomllib.loads(tomli_w.dumps(a.config)) for a in found)
    index = bottleneck(made)
    (port,) = switch["ports"]
    assert port["interface"] == f"l{index}"
    assert (port["rate"], port["overhead"], port["limit"]) == ("12500000B/s", 0, "1000p")
    assert port["interface"] not in switch["switch"]["interfaces"]
    assert len(switch["switch"]["interfaces"]) == 2, "the switch has the interfaces to the two senders"
    assert sender["sender"] == {"choice": "chosen", "algorithm": "brf12_3"}
    assert [n["path"] for n in sender["namespaces"]] == [
        f"/run/netns/{PREFIX}n{made['nodes'].index(name)}" for name in ("s1", "s2")
    ]
    assert all(len(n["interfaces"]) == 1 for n in sender["namespaces"])
    assert [set(n) for n in receiver["namespaces"]] == [{"path"}, {"path"}]


def test_parameters_get_their_units_back(plan):
    given = 'q_delay_max = "5ms", eta = 0.95, capacity_initial = "80mbit", mode = "resolved"'
    text = TWO + f"params = {{ {given} }}\n"
    switch = agents_of(plan(text))[0]
    params = switch.config["ports"][0]["params"]
    assert params == {
        "q_delay_max": "5000000ns",
        "eta": 0.95,
        "capacity_initial": "10000000B/s",
        "mode": "resolved",
        "udp_ceiling": 0.0,
    }


def test_rcp_and_bdr_are_the_agents_with_their_parameters(plan):
    for kind, name in (("rcp", "rtt"), ("bdr", "tau_max")):
        text = TWO.replace('kind = "brf"', f'kind = "{kind}"')
        given = f'params = {{ signal = "ack", {name} = "1.5s", eta = 0.9 }}\n'
        (port,) = agents_of(plan(text + given))[0].config["ports"]
        assert port["rate_controller"] == kind
        assert port["params"] == {"signal": "ack", name: "1500000000ns", "eta": 0.9}


def test_the_sender_designates_packets_if_all_flows_do(plan):
    sender = agents_of(plan(TWO.replace('cc = "brf"', 'cc = { name = "brf", designate = true }')))[-1]
    assert sender.config["sender"]["designate"] is True
    assert "designate" not in agents_of(plan(TWO))[-1].config["sender"]
    one = plan(TWO.replace('cc = "brf"', 'cc = { name = "brf", designate = true }', 1))
    with pytest.raises(ScenarioError, match=r"flows.1.cc.designate: found another value than in flows.0"):
        agents_of(one)


def test_bdr_needs_a_datapath_that_shows_where_an_ack_arrived(plan):
    text = TWO.replace('kind = "brf"', 'kind = "bdr"') + 'params = { signal = "ack" }\n'
    check_plan(plan(text))
    check_plan(plan(text + '[kernel]\nforwarding = "ovs"\ndatapath = "system"\n'))
    with pytest.raises(
        ScenarioError, match=r"rate_controllers.0.kind: found 'bdr' on Open vSwitch's datapath"
    ):
        check_plan(plan(text + '[kernel]\nforwarding = "ovs"\n'))


def test_signals_that_stock_hosts_do_not_send_are_refused(plan):
    for kind, rest, complaint in (
        (
            "rcp",
            "",
            "rate_controllers.0.params.signal: found nothing, which means 'header', expected 'ack': "
            "unmodified hosts support no other value",
        ),
        ("bdr", 'params = { signal = "header" }\n', r"rate_controllers.0.params.signal: found 'header'"),
        ("xcp", "", r"rate_controllers.0.kind: found 'xcp', .* expected one of 'brf', 'rcp', 'bdr'"),
    ):
        made = plan(TWO.replace('kind = "brf"', f'kind = "{kind}"') + rest)
        with pytest.raises(ScenarioError, match=complaint):
            agents_of(made)


def test_shares_by_address_reach_the_agent_and_others_are_refused(plan):
    (port,) = agents_of(plan(TWO + 'params = { share = "receiver-prefix/24" }\n'))[0].config["ports"]
    assert port["params"] == {"share": "receiver-prefix/24", "udp_ceiling": 0.0}
    for share in ("vlan", "mark"):
        complaint = rf"rate_controllers.0.params.share: found '{share}', expected an address or a prefix"
        with pytest.raises(ScenarioError, match=complaint):
            agents_of(plan(TWO + f'params = {{ share = "{share}" }}\n'))


def test_udp_borrows_as_in_the_simulator(plan):
    told = TWO + "params = { udp_ceiling = 0.8 }\n"
    ports = [
        agents_of(plan(text))[0].config["ports"][0] for text in (TWO, told, told + 'capacity = "measured"\n')
    ]
    assert [port["params"].get("udp_ceiling") for port in ports] == [0.0, 0.8, None]


def test_a_measured_port_is_shaped_all_the_same(plan):
    steps = '[{ time = "0s", rate = "80mbit" }, { time = "2s", rate = "40mbit" }]'
    switch = agents_of(plan(TWO + f'capacity = "measured"\nshape = {steps}\n'))[0]
    port = switch.config["ports"][0]
    assert (port["capacity"], port["shape"]) == ("measured", "10000000B/s")
    assert "rate" not in port
    assert switch.rates == ((2_000_000_000, port["interface"], 5_000_000),)


def test_flows_take_the_runs_own_algorithm_and_the_whole_htb_is_sampled(plan):
    made = plan(TWO.replace('cc = "brf"', 'cc = "cubic"', 1))
    told = spec(made, lay_out(made), PREFIX, 0, 10_000_000)
    assert [flow["congestion"] for flow in told["flows"]] == [None, "brf12_3"]
    at_port = [queue for queue in told["queues"] if queue["link"] == bottleneck(made)]
    assert [queue["handle"] for queue in at_port] == ["4e57:"]
    assert all(queue["header"] == 0 for queue in at_port)


def test_a_rate_of_nothing_is_refused(plan):
    with pytest.raises(ScenarioError, match=r"rate_controllers.0.shape: found 0, expected a rate above 0"):
        agents_of(plan(TWO + 'shape = [{ time = "0s", rate = "80mbit" }, { time = "2s", rate = "0mbit" }]\n'))


def test_a_complaint_of_the_agent_is_about_the_rate_controllers(tmp_path):
    program = tmp_path / "agent"
    program.write_text("#!/bin/sh\necho 'switch.toml: found a mistake' >&2\nexit 2\n")
    program.chmod(0o755)
    with pytest.raises(ScenarioError, match=r"^rate_controllers: switch.toml: found a mistake$"):
        agency.check([], program)


def test_the_decisions_of_a_switch_become_events(plan):
    made = plan(TWO)
    switch = agents_of(made)[0]
    device = switch.config["ports"][0]["interface"]
    layout = lay_out(made)
    ends = layout.endpoints[layout.of_flow[1]]
    added = {"event": "flow-added", "value": 1.0}
    ours = f"{ends.source_address}:40001>{ends.to_address}:20001/tcp"
    said = {"event": "congestion-queue", "value": 7.0}
    log = "\n".join(
        [
            json.dumps({"timestamp": "1970-01-01T00:00:12.500Z", "port": device, **said}),
            '{"timestamp":"1970-01-01T00:00:10Z","event":"ready","name":"x"}',
            json.dumps({"timestamp": "1970-01-01T00:00:11Z", "port": device, "flow": ours, **added}),
            json.dumps({"timestamp": "1970-01-01T00:00:12Z", "port": device, "flow": "a>b/tcp", **added}),
            json.dumps({"timestamp": "1970-01-01T00:00:12Z", "port": device, "event": "set-class"}),
            "no JSON",
        ]
    )
    assert record.events(switch, log, made, layout, 10.0) == [
        (2.5, "congestion-queue", "bottleneck", 7.0),
        (1.0, "flow-added", made["flows"][1]["name"], 1.0),
        (2.0, "flow-added", "a>b/tcp", 1.0),
    ]


def test_an_allocation_is_the_least_that_switches_allotted_last(plan):
    made = plan(TWO)
    layout = lay_out(made)
    ends = layout.endpoints[layout.of_flow[1]]
    both = {"source": f"{ends.source_address}:40001", "destination": f"{ends.to_address}:20001"}

    def said(agent, seconds, allocation):
        flow = {**both, "allocation": allocation}
        return {"agent": agent, "at": int(seconds * 1e9) + 5, "flows": [flow]}

    output = {
        "flows": {"flow": [0, 1], "name": [flow["name"] for flow in made["flows"]]},
        "flow_samples": {"t_s": [1.0, 2.0, 1.0, 2.0], "flow": [0, 0, 1, 1]},
    }
    snapshots = [said("n0", 0.5, 1000), said("n1", 0.6, 2000), said("n0", 1.5, 4000)]
    record.add_allocations(output, snapshots, made, layout, 5)
    filled = output["flow_samples"]["allocation_bps"].tolist()
    assert all(math.isnan(value) for value in filled[:2])
    assert filled[2:] == [8000, 16000]


def test_members_of_a_group_have_ports_and_names_of_their_own(plan):
    text = TWO.replace('start = "1s"', 'start = "1s"\ncount = 3') + '[[flows]]\nname = "last"\n'
    made = plan(text)
    assert source_ports(made) == [40_000, 40_001, 40_004]
    known = record.names(made, lay_out(made))
    group = made["flows"][1]["name"]
    assert [name for name in known.values() if name.startswith(f"{group}.")] == [
        f"{group}.{i}" for i in range(3)
    ]
    assert len(known) == 5 and "last" in known.values()
    own = {"app": {"kind": "bulk"}, "transport": {"kind": "tcp"}}
    many = [{**own, "count": count} for count in (25_535, 2, 1)]
    assert source_ports({"flows": many}) == [40_000, None, 65_535]
    assert source_ports({"flows": [{"app": {"kind": "poisson"}, "count": 1}, *many[1:]]}) == [
        None,
        40_000,
        40_002,
    ]


@pytest.mark.usefixtures("agent", "tidy")
class TestOnThisKernel:
    @pytest.mark.flaky(reruns=2)
    def test_two_flows_share_a_link(self):
        from narrows.backends.kernel.backend import Kernel

        results = sweep.run(loads(TWO), backend=Kernel())
        verdict = results.soundness["0"]
        print(verdict["reasons"] or "sound")
        flows = results.flows.to_pylist()
        first, second = (flow["goodput_bps"] for flow in flows)
        assert abs(first - second) < 0.1 * first
        # If the machine pauses, packets arrive late, and TCP sends probes.
        assert first + second > (0.93 if verdict["sound"] else 0.7) * 96.5e6
        # The kernel counts a tail loss probe as a retransmission, even if no packet was lost.
        assert sum(flow["retransmits"] for flow in flows) <= (3 if verdict["sound"] else 20)
        link = next(row for row in results.links.to_pylist() if row["name"] == "bottleneck")
        assert link["dropped_packets"] == 0
        assert link["backlog_mean_packets"] < 20
        told = results.flow_samples.to_pandas().query("t_s > 3")["allocation_bps"]
        assert told.median() == pytest.approx(49e6, rel=0.02)  # half of 98 % of the link

    @pytest.mark.flaky(reruns=2)
    def test_a_group_has_events_and_allocations(self):
        from narrows.backends.kernel.backend import Kernel

        group = (
            '[[flows]]\nname = "group"\ncc = "brf"\ncount = 4\nspacing = "100ms"\nstart = "2s"\nstop = "4s"\n'
        )
        results = sweep.run(
            loads(TWO.replace("[[rate_controllers]]", f"{group}[[rate_controllers]]")), backend=Kernel()
        )
        print(results.soundness["0"]["reasons"] or "sound")
        members = [f"group.{i}" for i in range(4)]
        events = results.events.to_pandas()
        for kind in ("flow-added", "flow-removed"):
            of_kind = events[events["kind"] == kind]
            assert set(members) <= set(of_kind["entity"])
        added = events[events["kind"] == "flow-added"].set_index("entity")["t_s"]
        assert all(2 + i / 10 < added[name] < 2.6 + i / 10 for i, name in enumerate(members)), (
            "each in its turn"
        )
        rows = {row["name"]: row["flow"] for row in results.flows.to_pylist()}
        samples = results.flow_samples.to_pandas().query("3 < t_s < 4")
        for name in members:
            told = samples[samples["flow"] == rows[name]]["allocation_bps"]
            # Each of six flows gets a sixth of 98 % of the link rate.
            assert told.median() == pytest.approx(98e6 / 6, rel=0.05)

    def test_a_wrong_parameter_is_refused_in_a_line(self):
        from narrows.backends.kernel.backend import Kernel

        with pytest.raises(ScenarioError, match=r"params.*eta") as refused:
            sweep.run(loads(TWO + "params = { eta = 2.0 }\n"), backend=Kernel())
        assert "\n" not in str(refused.value)
