"""The behaviour version of the simulator (`narrows_sim::BEHAVIOUR`) changes whenever an output changes.

Otherwise a cache would return results of an older behaviour. tests/vectors/behaviour.json has the version and
the hash of the outputs of short runs. Together, the runs use QUIC, and every congestion controller, rate
controller, queue and kind of traffic. If an output changes, increase BEHAVIOUR in
crates/narrows-sim/src/lib.rs and run this file with NARROWS_BEHAVIOUR=write.
"""

import hashlib
import json
import os
from pathlib import Path

import numpy as np
import pytest
from narrows import _native
from narrows.backends.sim import Simulator, plan_json
from narrows.scenario.load import expand, load, loads
from narrows.sweep import Resolver

ROOT = Path(__file__).parents[2]
RECORDED = ROOT / "tests/vectors/behaviour.json"
SIMULATOR = Simulator()
RESOLVER = Resolver(SIMULATOR)

DUMBBELL = """
duration = "3s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
{more}
[[flows]]
{flow}
[[flows]]
{flow}
start = "500ms"
[[flows]]
cc = "cubic"
size = "200kB"
start = "1s"
"""
CONGESTION = {
    f"cc {name}": DUMBBELL.format(more='loss = "0.1%"', flow=f'cc = "{name}"')
    for name, _ in _native.congestion_controllers()
}
QUEUES = {
    f"queue {kind}": DUMBBELL.format(more=f'queue = "{kind}"', flow='cc = "cubic"\necn = true')
    for kind in ("fifo", "red", "codel", "fq-codel")
} | {
    f"queue {kind}": DUMBBELL.format(
        more=f'queue = {{ kind = "{kind}", classes = [{classes}] }}', flow='cc = "cubic"\nclass = 1'
    )
    for kind, classes in (
        ("htb", '{ rate = "15mbit", ceil = "20mbit" }, { rate = "5mbit", ceil = "20mbit" }'),
        ("priority", '"50p", "100p"'),
    )
}
TRAFFIC = {
    f"traffic {name}": DUMBBELL.format(more=more, flow=flow)
    for name, more, flow in (
        ("udp", "", 'transport = "udp"\nrate = "8mbit"'),
        ("limited", 'jitter = "1ms"', 'app = { rate = "4mbit", on = "200ms", off = "100ms" }'),
        ("sized arrivals", "", 'arrivals = { rate = 20, size = { distribution = "web-search" } }'),
        ("bursts of losses", 'loss = { model = "gilbert-elliott", p = "0.1%", r = "20%" }', 'cc = "cubic"'),
        ("reordering", 'jitter = { max = "2ms", reorder = true }\nduplicate = "0.1%"', 'cc = "cubic"'),
        ("late starts", "pairs = 4", 'count = 4\nstart_jitter = "20ms"'),
    )
}
# quinn's CUBIC is left out, because it depends on the machine's math library.
QUIC = {
    f"quinn {cc}": DUMBBELL.format(more='loss = "0.1%"', flow=f'transport = "quinn"\ncc = "{cc}"')
    for cc in ("bbr", "newreno", "narrows:cubic", "bbr3")
}
RATE = {
    f"rate {name}": DUMBBELL.format(more="", flow=f'cc = "{name}"')
    + f'[[rate_controllers]]\nlink = "bottleneck"\nkind = "{name}"\n'
    for name, _ in _native.rate_controllers()
    if name != "pacec"  # needs an SDN controller; two of the scenario files have one
}
FAT_TREE = """
duration = "1s"
ecmp = true
[topology]
name = "fat-tree"
k = 4
rate = "100mbit"
[[flows]]
pattern = "permutation"
cc = "dctcp"
ecn = true
"""
OWN = {**CONGESTION, **RATE, **QUEUES, **TRAFFIC, **QUIC, "pattern": FAT_TREE}


def outputs():
    """The name and plan of each run."""
    for path in sorted((ROOT / "scenarios").glob("*.toml")):
        yield path.stem, expand(load(path, {"duration": "12s"}), 1)[0].point
    for name, text in OWN.items():
        yield name, expand(loads(text), 1)[0].point


def fingerprint(output):
    content = hashlib.sha256()
    for table in sorted(output):
        for column, values in sorted(output[table].items()):
            content.update(f"\n{table}.{column}:".encode())
            content.update(values.tobytes() if isinstance(values, np.ndarray) else repr(values).encode())
    return content.hexdigest()[:16]


def measured():
    return {name: fingerprint(SIMULATOR.run(RESOLVER(point))) for name, point in outputs()}


def test_equal_plans_give_equal_results_as_long_as_the_version_is_equal():
    found = measured()
    recorded = json.loads(RECORDED.read_text()) if RECORDED.exists() else {"version": 0, "runs": {}}
    if os.environ.get("NARROWS_BEHAVIOUR") == "write":
        changed = [name for name, hashed in recorded["runs"].items() if found.get(name, hashed) != hashed]
        assert not changed or recorded["version"] != _native.behaviour, f"increase BEHAVIOUR: {changed}"
        RECORDED.write_text(json.dumps({"version": _native.behaviour, "runs": found}, indent=1) + "\n")
    else:
        assert recorded == {"version": _native.behaviour, "runs": found}


IDEAL = ("ideal_fct_s", "rtt_empty_s")
"""Columns in which a stopped run differs, because they depend on a link's mean rate over the whole plan."""


def test_a_stopped_run_has_the_output_of_a_shorter_plan():
    compared = 0
    for name, point in outputs():
        plan = RESOLVER(point) | {"duration": 60_000_000_000}
        monitor = _native.Monitor()
        monitor.stop()
        stopped = _native.run(plan_json(plan), monitor=monitor)
        if stopped.get("stopped_s", 0.0) * 1e9 <= plan["warmup"]:
            continue  # not stopped, or stopped in the warm-up
        shorter = plan | {"duration": round(stopped.pop("stopped_s") * 1e9)}
        whole = _native.run(plan_json(shorter))
        for output in (stopped, whole):
            for column in IDEAL:
                del output["flows"][column]
        assert fingerprint(stopped) == fingerprint(whole), name
        compared += 1
    assert compared >= 40


def test_a_different_result_has_a_different_fingerprint():
    plan = RESOLVER(expand(loads(OWN["cc cubic"]), 1)[0].point)
    assert fingerprint(SIMULATOR.run(plan)) == fingerprint(SIMULATOR.run(plan))
    assert fingerprint(SIMULATOR.run(plan)) != fingerprint(SIMULATOR.run({**plan, "seed": 2}))


@pytest.mark.parametrize("name", ["cc bbr", "rate brf"])
def test_runs_deliver_packets(name):
    output = SIMULATOR.run(RESOLVER(expand(loads(OWN[name]), 1)[0].point))
    assert output["run"]["delivered_packets"] > 1000
