"""Summaries of results: means over seeds, shares, groups, and omitted columns and rows."""

import math

import numpy as np
import pytest
from narrows import sweep
from narrows.results import summary
from narrows.scenario.load import loads
from test_sweep import ONE_POINT, TEXT, scenario


def test_summary_is_a_mean_over_seeds_with_its_confidence(backend):
    rows = summary.flows(sweep.run(scenario(), backend=backend))
    assert [(row.factors["topology.queue"], row.name) for row in rows] == [
        ("1bdp", "cubic"),
        ("1bdp", "bbr"),
        ("2bdp", "cubic"),
        ("2bdp", "bbr"),
    ]
    goodput = rows[0].figures["goodput_bps"]
    # The goodputs are 1e6 + seed for the seeds 1, 2 and 3. The half width is t / sqrt(3), where Student's
    # t(0.975, 2) is 4.3027.
    assert goodput.mean == pytest.approx(1e6 + 2)
    assert goodput.half == pytest.approx(4.302653 / math.sqrt(3), rel=1e-5)
    assert math.isnan(rows[0].figures["fct_s"].mean)
    assert math.isnan(summary.mean_ci([1.0]).half)


def test_a_large_group_is_one_row(backend):
    run = backend.run

    def with_short_flows(plan):
        output = dict(run(plan))
        n = 20
        output["flows"] = {
            "flow": np.arange(n),
            "name": [f"short.{i}" for i in range(n - 1)] + ["long"],
            "cc": ["cubic"] * n,
            "source": ["short"] * (n - 1) + ["long"],
            "goodput_bps": np.arange(n) * 1e6,
            "rtt_mean_s": np.full(n, np.nan),
            "rtt_p95_s": np.full(n, np.nan),
            "retransmits": np.full(n, 2),
            "fct_s": np.arange(n) * 1.0,
        }
        return output

    backend.run = with_short_flows
    rows = summary.flows(sweep.run(loads(TEXT.split("[sweep]", maxsplit=1)[0]), backend=backend))
    assert [row.name for row in rows] == ["short (group)", "long"]
    figures = {name: figure.mean for name, figure in rows[0].figures.items()}
    assert figures["share"] == pytest.approx(171 / 190)
    assert figures["retransmits"] == 38
    assert figures["goodput_bps"] == pytest.approx(9e6)
    assert figures["fct_s"] == pytest.approx(9.0)


def with_flows(backend, **columns):
    run = backend.run

    def other(plan):
        output = dict(run(plan))
        output["flows"] = output["flows"] | columns
        return output

    backend.run = other
    return backend


def test_shares_are_computed_from_the_goodputs_in_the_same_table(backend):
    # The shares do not come from the delivered bytes (1000 and 2000).
    rows = summary.flows(sweep.run(loads(ONE_POINT), backend=with_flows(backend, goodput_bps=[9e6, 1e6])))
    assert [row.figures["share"].mean for row in rows] == pytest.approx([0.9, 0.1])
    assert [row.figures["goodput_bps"].mean for row in rows] == [9e6, 1e6]


def test_a_flow_that_ends_has_no_share(backend):
    backend = with_flows(backend, goodput_bps=[9e6, 50e6], size_bytes=[0, 25_000])
    rows = summary.flows(sweep.run(loads(ONE_POINT), backend=backend))
    assert rows[0].figures["share"].mean == 1.0
    assert math.isnan(rows[1].figures["share"].mean)


def test_columns_that_would_say_nothing_are_left_out(backend):
    results = sweep.run(loads(ONE_POINT), backend=backend)
    assert "share" in summary.shown_of_flows(summary.flows(results))
    assert not {"marks", "random_losses"} & set(summary.shown_of_links(summary.links(results)))
    results = sweep.run(loads(ONE_POINT), backend=with_flows(backend, size_bytes=[0, 10]))
    assert "share" not in summary.shown_of_flows(summary.flows(results))


def test_random_losses_are_shown_for_an_idle_link_without_drops(backend):
    run = backend.run

    def lossy(plan):
        output = dict(run(plan))
        n = len(plan["links"])
        output["links"] = output["links"] | {"utilisation": [0.1] * n, "random_losses": [7] + [0] * (n - 1)}
        return output

    backend.run = lossy
    (row,) = summary.links(sweep.run(loads(ONE_POINT), backend=backend))
    assert row.figures["random_losses"].mean == 7
    assert "random_losses" in summary.shown_of_links([row])


def test_flows_are_in_the_order_of_the_scenario(backend):
    # In the results, flows are in the order of their starts, and bbr starts first.
    names = ["bbr", "cubic"]
    results = sweep.run(loads(ONE_POINT), backend=with_flows(backend, name=names, source=names))
    assert [row.name for row in summary.flows(results)] == ["cubic", "bbr"]


def test_entries_keep_their_order_if_their_names_vary(backend):
    text = TEXT.replace("topology.queue", "flows.0.cc").replace('["1bdp", "2bdp"]', '["reno", "cubic"]')
    assert sweep.run(loads(text), backend=backend).metadata["entries"] == ["reno", "cubic", "bbr"]


def test_seeds_that_make_no_difference_are_noticed(backend):
    apart = sweep.run(scenario(), backend=backend)
    assert not summary.same_runs(apart, summary.flows(apart))
    run = backend.run
    backend.run = lambda plan: run(plan | {"seed": 1})
    alike = sweep.run(scenario(), backend=backend)
    assert summary.same_runs(alike, summary.flows(alike)) == [("1bdp",), ("2bdp",)]
    single = sweep.run(loads(ONE_POINT), backend=backend)
    assert not summary.same_runs(single, summary.flows(single))
