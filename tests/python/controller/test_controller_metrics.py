"""Prometheus's own parser reads the controller's metrics."""

from __future__ import annotations

import httpx
from narrows import _native
from prometheus_client.parser import text_string_to_metric_families
from shown_controller import an_hour, runtime, served


def scrape(url, **arguments):
    answer = httpx.get(f"{url}/metrics", **arguments)
    assert answer.status_code == 200 and answer.headers["content-type"].startswith("text/plain")
    return {
        (sample.name.removeprefix("narrows_controller_"), *sorted(sample.labels.items())): sample.value
        for family in text_string_to_metric_families(answer.text)
        for sample in family.samples
    }


def test_the_values_are_those_of_the_domain():
    shown = runtime(2500)
    with served(shown, watch=an_hour(shown, 60)) as url:
        found = scrape(url)
    port = (("agent", "box-2"), ("interface", "s2-3"), ("port", "box-2/s2-3"))
    assert found[("info", ("name", "east"), ("version", _native.version))] == 1
    assert {name: found[(name,)] for name in ("switches", "links", "hosts", "agents")} == {
        "switches": 5,
        "links": 6,
        "hosts": 6,
        "agents": 1,
    }
    assert found[("port_capacity_bytes_per_second", *port)] == 12_500_000
    assert found[("port_transmit_bytes_per_second", *port)] == 97 * 125_000
    assert found[("port_flows", *port)] == 1000
    assert found[("port_queue_bytes", *port)] == 150_000
    assert found[("port_queue_seconds", *port)] == 0.012
    assert found[("port_congested", port[0], port[1], ("kind", "queue"), port[2])] == 1
    assert found[("port_congested", port[0], port[1], ("kind", "burst"), port[2])] == 0
    assert found[("agent_silent_seconds", ("agent", "box-2"))] > 0
    assert found[("history_ports",)] > 10


def test_the_number_of_metrics_does_not_depend_on_the_flows():
    with served(runtime(12)) as few, served(runtime(2500)) as many:
        assert len(scrape(few)) == len(scrape(many))


def test_an_empty_network_has_metrics():
    with served(runtime(empty=True)) as url:
        assert scrape(url)[("switches",)] == 0


def test_the_token_is_required_and_works_as_a_bearer_token():
    with served(runtime(empty=True), loopback=False, token="5e" * 32) as url:
        assert httpx.get(f"{url}/metrics").status_code == 401
        assert scrape(url, headers={"authorization": f"Bearer {'5e' * 32}"})


def test_names_from_the_network_are_escaped():
    shown = runtime()
    (agent,) = shown.domain.agents.by_name.values()
    agent.name = 'a"} 1\nevil{x="\\'
    with served(shown) as url:
        assert (
            "port_flows",
            ("agent", agent.name),
            ("interface", "eth1"),
            ("port", f"{agent.name}/eth1"),
        ) in (scrape(url))
