"""Search, order and pages in the list of 2,500 flows."""

from __future__ import annotations

import httpx
import pytest
from shown_controller import runtime, served

COUNT = 2500


@pytest.fixture(scope="module")
def client():
    with served(runtime(COUNT)) as url, httpx.Client(base_url=url, timeout=20) as client:
        yield client


def find(client, **query):
    answer = client.get("/api/v1/flows", params=query)
    assert answer.status_code == 200
    return int(answer.headers["x-total-count"]), answer.json()


def test_without_a_query_all_flows_are_returned(client):
    total, flows = find(client)
    assert total == len(flows) == COUNT
    assert [flow["rate_bps"] for flow in flows] == sorted((f["rate_bps"] for f in flows), reverse=True)


@pytest.mark.parametrize(
    ("search", "expected"),
    [
        ("10.0.0.1:40000", lambda f: (f["source"], f["source_port"]) == ("10.0.0.1", 40000)),
        ("elephant", lambda f: f["leaf"] == "elephant"),
        ("ELEPHANT 10.0.0.2:", lambda f: f["leaf"] == "elephant" and f["source"] == "10.0.0.2"),
        ("eth1 box-2", lambda f: f["interface"] == "eth1"),
        ("nothing", lambda f: False),
    ],
)
def test_all_words_must_occur(client, search, expected):
    _, everything = find(client)
    total, flows = find(client, search=search)
    assert flows == [flow for flow in everything if expected(flow)]
    assert total == len(flows)


def test_a_port_and_a_class(client):
    total, flows = find(client, port="box-2/s2-2", **{"class": "rated"})
    assert total > 0 and {(f["interface"], f["class"]) for f in flows} == {("s2-2", "rated")}
    assert find(client, port="box-2/none")[0] == 0


@pytest.mark.parametrize(
    ("order", "key"),
    [
        ("fastest", lambda f: -f["rate_bps"]),
        ("slowest", lambda f: f["rate_bps"]),
        ("rtt", lambda f: -f["rtt_s"]),
        ("share", lambda f: f["rate_bps"] / f["allocation_bps"] if f["allocation_bps"] else float("inf")),
    ],
)
def test_orders(client, order, key):
    _, flows = find(client, order=order)
    assert [key(flow) for flow in flows] == sorted(map(key, flows))


def test_pages_join(client):
    _, everything = find(client)
    pages = [find(client, offset=offset, limit=100) for offset in range(0, COUNT + 100, 100)]
    assert {total for total, _ in pages} == {COUNT}
    assert [flow for _, flows in pages for flow in flows] == everything


@pytest.mark.parametrize("query", [{"order": "x"}, {"limit": -1}, {"offset": -1}, {"search": "x" * 201}])
def test_other_values_are_refused(client, query):
    assert client.get("/api/v1/flows", params=query).status_code == 422


def test_an_update_of_the_page_is_small(client):
    with client.stream("GET", "/api/v1/live", params={"flows": False}) as stream:
        lines = stream.iter_lines()
        assert next(lines) == "event: state"
        state = next(lines)
    page = client.get("/api/v1/flows", params={"limit": 100}).content
    assert '"flow_count":2500' in state and '"flows":[]' in state
    assert len(state) + len(page) < 50_000, "all flows take over 500,000 bytes"


def test_the_domain_is_not_locked_while_flows_are_converted():
    shown = runtime(COUNT)
    looked = []

    class Lock:
        def __enter__(self):
            looked.append("locked")

        def __exit__(self, *_):
            looked.append("free")

    shown._lock = Lock()

    def select(*arguments):
        looked.append("convert")
        return 0, []

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("narrows.controller.flows.select", select)
        shown.state()
        shown.select_flows(None)
    assert looked == ["locked", "free", "convert"] * 2
