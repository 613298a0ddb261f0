"""The answers of the REST interface match their OpenAPI description."""

from __future__ import annotations

import httpx
import jsonschema
import pytest
from openapi_spec_validator import OpenAPIV31SpecValidator, validate
from shown_controller import an_hour, runtime, served

LISTS = ["switches", "links", "flows", "congestion", "agents", "events"]


@pytest.fixture(scope="module")
def clients():
    """Clients of two controllers. The first controller has a network, and the second has none."""
    with served(runtime()) as full, served(runtime(empty=True)) as empty:
        yield {
            name: httpx.Client(base_url=url, timeout=20) for name, url in (("full", full), ("empty", empty))
        }


@pytest.fixture(scope="module")
def client(clients):
    return clients["full"]


@pytest.fixture(scope="module")
def document(client):
    return client.get("/api/v1/openapi.json").json()


def test_the_description_is_openapi_3_1(document):
    assert document["openapi"].startswith("3.1")
    validate(document, cls=OpenAPIV31SpecValidator)
    paths = {f"/api/v1/{name}" for name in [*LISTS, "topology", "state", "live", "history", "alerts"]}
    assert set(document["paths"]) == paths
    assert all(list(methods) == ["get"] for methods in document["paths"].values()), (
        "the interface has only GET requests"
    )


@pytest.mark.parametrize("name", [*LISTS, "topology", "state", "alerts"])
@pytest.mark.parametrize("which", ["full", "empty"])
def test_answers_are_as_described(document, clients, name, which):
    schema = document["paths"][f"/api/v1/{name}"]["get"]["responses"]["200"]["content"]["application/json"][
        "schema"
    ]
    answer = clients[which].get(f"/api/v1/{name}")
    assert answer.status_code == 200
    jsonschema.validate(answer.json(), {**schema, "components": document["components"]})
    if name in LISTS:
        assert bool(answer.json()) is (which == "full")


def test_answers_have_the_values_of_the_domain(client):
    (congested,) = [state for state in client.get("/api/v1/congestion").json() if state["kind"]]
    assert (congested["agent"], congested["interface"], congested["kind"]) == ("box-2", "s2-3", "queue")
    assert congested["at"] == {"switch": "0000000000000002", "port": 3}
    assert congested["queued_bytes"] == 150_000 and congested["capacity_bps"] == 100_000_000
    (link,) = [link for link in client.get("/api/v1/links").json() if link["congestion"]]
    assert link["a_to_b"]["utilisation"] == 0.97 and link["b_to_a"]["utilisation"] == 0.02
    assert link["delay_s"] == 0.001
    flow = client.get("/api/v1/flows").json()[0]
    assert (flow["class"], flow["rate_bps"], flow["rtt_s"]) == ("rated", 22_000_000, 0.0201)


def test_the_history_of_ports(document, client):
    shown = runtime()
    schema = document["paths"]["/api/v1/history"]["get"]["responses"]["200"]["content"]["application/json"]
    with served(shown, watch=an_hour(shown)) as url:
        ports = ["box-2/s2-3", "none/eth1", "0000000000000001:1"]
        answer = httpx.get(f"{url}/api/v1/history", params={"port": ports})
        jsonschema.validate(answer.json(), {**schema["schema"], "components": document["components"]})
        own, other = answer.json()
        assert (own["port"], other["port"]) == ("box-2/s2-3", "0000000000000001:1")
        assert len(own["queue_s"]) == len(other["tx_bps"]) == 720
        assert own["first"] + 719 == own["last"] == other["last"]
        assert set(other["flows"]) == {None}
        rest = httpx.get(f"{url}/api/v1/history", params={"port": ports[0], "after": own["last"] - 2}).json()
        assert rest[0]["tx_bps"] == own["tx_bps"][-2:]
        for query in ({}, {"port": ports * 3}, {"port": "x", "after": -2}):
            assert httpx.get(f"{url}/api/v1/history", params=query).status_code == 422
    keys = {port["key"] for switch in client.get("/api/v1/switches").json() for port in switch["ports"]}
    assert {"box-2/s2-3", "0000000000000001:1"} < keys and "0000000000000002:3" not in keys


def test_events_can_be_requested_after_a_number(client):
    everything = client.get("/api/v1/events").json()
    assert [event["id"] for event in everything] == list(range(1, len(everything) + 1))
    assert client.get("/api/v1/events", params={"after": 3}).json() == everything[3:]
    assert client.get("/api/v1/events", params={"after": -1}).status_code == 422


@pytest.mark.parametrize("method", ["POST", "PUT", "PATCH", "DELETE"])
def test_only_get_requests_are_answered(client, method):
    assert client.request(method, "/api/v1/topology").status_code == 405


def test_requests_for_other_host_names_are_refused():
    # With DNS rebinding, an attacker's host name resolves to this host.
    with served(runtime(empty=True)) as url:
        for host, status in (
            ("evil.example:6680", 421),
            ("", 421),
            ("localhost:6680", 200),
            ("[::1]:1", 200),
        ):
            assert httpx.get(f"{url}/api/v1/state", headers={"host": host}).status_code == status
    with served(runtime(empty=True), loopback=False) as url:
        assert httpx.get(f"{url}/api/v1/state", headers={"host": "some.example"}).status_code == 200


def test_the_page_can_load_nothing_from_other_hosts(client):
    names = ("page", "drawing", "charts", "events", "flows", "format", "uplot")
    for path in ("/", "/page.css", "/uplot.css", *(f"/{name}.js" for name in names)):
        answer = client.get(path)
        assert answer.status_code == 200
        assert "default-src 'none'" in answer.headers["content-security-policy"]
        # The first line of the drawing library has the address of its home page. No page loads this address.
        assert "https://" not in answer.text.removeprefix("/*! https://github.com/leeoniya/uPlot ")
    assert client.get("/docs").status_code == 404


def test_the_live_stream():
    with served(runtime()) as url, httpx.stream("GET", f"{url}/api/v1/live", timeout=20) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: state"
        assert next(lines).startswith('data: {"name":"east"')
        assert next(lines) == ""
        assert next(lines) == "event: events"
