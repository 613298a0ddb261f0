"""Short flows under BRF are fast and cause no queue (BRF-15, BRF-34)."""

from __future__ import annotations

from importlib import resources

import narrows
import pytest

STUDY = resources.files("narrows.studies") / "library/rates/short.toml"
FLOWS_PER_SECOND_AT_60_PERCENT = 300
WITHOUT_PREDICTOR = ", predictor_samples = 1000000000"


def short_flows(load_percent: int, parameters: str = "") -> narrows.Results:
    """The study's short flows under BRF at this load."""
    text = STUDY.read_text()
    rate = FLOWS_PER_SECOND_AT_60_PERCENT * load_percent // 60
    text = text[: text.index("[sweep]")].replace('cc = "cubic"', 'cc = "brf"')
    text = text.replace("rate = 300", f"rate = {rate}").replace('"30s"', '"10s"')
    text += '[sdn]\ndelay = "1ms"\n[[rate_controllers]]\nkind = "brf"\nlink = "tight"\n'
    return narrows.run(narrows.loads(text + f'params = {{ mode = "resolved"{parameters} }}\n'))


@pytest.mark.parametrize("parameters", ["", WITHOUT_PREDICTOR])
@pytest.mark.parametrize(("load_percent", "slowdown_max"), [(30, 1.2), (60, 1.3)])
def test_short_flows_are_neither_slow_nor_in_a_queue(load_percent, slowdown_max, parameters):
    results = short_flows(load_percent, parameters)
    flows, links = results.flows.to_pandas(), results.links.to_pandas()
    slowdown = (flows.fct_s / flows.ideal_fct_s).mean()
    tight = links[links.name == "tight"].iloc[0]
    assert slowdown <= slowdown_max
    assert tight.sojourn_p99_s < 2e-3
    assert tight.dropped_packets == 0
    assert tight.utilisation > 0.9 * load_percent / 100


def test_the_papers_gate_lets_the_queue_grow():
    links = short_flows(60, ", urgent_decrease = false").links.to_pandas()
    assert links[links.name == "tight"].iloc[0].sojourn_p99_s > 2e-3
