"""A mistake in a scenario gives one line, which names the place and the remedy."""

import copy
import json
import tomllib
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from narrows.errors import ScenarioError, found
from narrows.scenario import schema
from narrows.scenario.load import expand, load, loads, override, parse_override
from narrows.scenario.model import Scenario
from narrows.scenario.resolve import resolve
from sketch import Sketch
from texts import SLOW

CCS = ["reno", "cubic", "bbr", "brf"]
SCENARIOS = Path(__file__).parents[2] / "scenarios"
BASE = f'{SLOW}[[flows]]\ncc = "cubic"\n'
HTB = "queue = {kind = 'htb', classes = [{rate = '4mbit'}, {rate = '6mbit', ceil = '9mbit'}]}\n"
CHAIN = """
[[links]]
between = ["a", "b"]
rate = "10mbit"
[[links]]
between = ["c", "d"]
rate = "10mbit"
"""


def test_an_error_lists_the_kernels_congestion_controllers():
    """The message does not suggest `bbr` instead of `bbr3`, because the simulator has `bbr3`."""
    with pytest.raises(ScenarioError) as error:
        resolve(loads(BASE.replace("cubic", "bbr3"), "x.toml"), CCS, kernel="this kernel")
    wanted = "expected one that this kernel has: reno, cubic, bbr, brf"
    assert str(error.value) == f"x.toml: flows.0.cc: found 'bbr3', {wanted}"


@pytest.mark.parametrize("name", ["prague", "sprout", "vivace", "swift"])
def test_an_error_names_the_command_that_lists_many_names(name):
    """The message suggests no name, because none is similar enough."""
    known = [*CCS, "pacec", "xcp", *(f"own{i}" for i in range(16))]
    with pytest.raises(ScenarioError) as error:
        resolve(loads(BASE.replace("cubic", name), "x.toml"), known)
    wanted = "expected a congestion controller; `narrows list congestion` has them"
    own = "(FILE.py:CLASS is a controller of your own)"
    assert str(error.value) == f"x.toml: flows.0.cc: found '{name}', {wanted} {own}"


def test_real_stacks_are_kernels(narrows, tmp_path, monkeypatch):
    class Real(Sketch):
        name = "kernel"

        def congestion_controllers(self):
            return [("cubic", "of this kernel"), *others]

    others = [("brf", "by narrows-agent")]
    monkeypatch.setattr("narrows.cli.run.real_stacks", lambda _: Real())
    monkeypatch.chdir(tmp_path)
    Path("x.toml").write_text(BASE.replace("cubic", "bbr-c"))
    asked = "x.toml: flows.0.cc: found 'bbr-c', expected one that this kernel"
    assert narrows("run", "x.toml", "--on", "kernel") == (2, "", f"{asked} has: cubic, brf\n")
    others = []
    remedy = ", without narrows-agent (pip install 'narrows[kernel]'), has: cubic\n"
    assert narrows("run", "x.toml", "--on", "kernel") == (2, "", f"{asked}{remedy}")


def attempt(text):
    for run in expand(loads(text, "x.toml")):
        resolve(run.scenario, CCS, ["brf"])


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (BASE.replace("rate", "rat"), "topology.rat: found an unknown key; nearest is 'rate'"),
        (BASE.replace("dumbbell", "dumbell"), "topology.kind: found 'dumbell', expected a kind; nearest is 'dumbbell'"),
        (BASE.replace("cubic", "BBR"), "flows.0.cc: found 'BBR', expected a congestion controller; nearest is 'bbr'"),
        (BASE.replace("cubic", "prague"), "flows.0.cc: found 'prague', expected a congestion controller: reno, cubic, bbr, brf"),
        (BASE.replace("cubic", "cubik"), "flows.0.cc: found 'cubik', expected a congestion controller; nearest is 'cubic'"),
        (BASE.replace('"10mbit"', '"0mbit"'), "topology.rate: found '0mbit', expected more than zero"),
        (BASE.replace('"10mbit"', "10"), "topology.rate: found 10, expected a rate such as '100mbit'"),
        (BASE.replace('"10mbit"', "{ mbit = 10 }"), "topology.rate: found a table, expected a rate such as '100mbit'"),
        (BASE.replace('rtt = "20ms"', ""), "topology: expected one of rtt, rtts and delay"),
        (BASE + 'start = "-1s"', "flows.0.start: found '-1s', expected a time such as '20ms' or '30s', not negative"),
        (BASE + 'start = "1min"', "flows.0.start: found '60s', expected less than the duration"),
        (BASE + "count = 0", "flows.0.count: found 0, expected at least 1"),
        (BASE + "count = 1000000000", "flows.0.count: found 1000000000, expected at most 1000000"),
        (BASE + "count = 999999\n[[flows]]\ncount = 2", "flows: found 1000001 flows, expected at most 1000000"),
        (BASE + "mss = nan", "flows.0.mss: found nan, expected a whole number"),
        (BASE + 'ecn = "yes"', "flows.0.ecn: found 'yes', expected true or false"),
        (BASE + 'to = "s1"', "flows.0.to: found 's1', expected another node than from"),
        (BASE + 'to = "d9"', "flows.0.to: found 'd9', expected a node: r1, r2, s1, d1"),
        (BASE + 'name = "a"\n[[flows]]\nname = "a"', "flows.1.name: found 'a' again, expected another name"),
        (BASE + "arrivals = {rate = inf, size = '1kB'}", "flows.0.arrivals.rate: found inf, expected a finite number"),
        (
            BASE + "arrivals = {rate = 1000000.0, size = '1kB'}",
            "flows.0.arrivals.rate: found 1e+06 flows per second (30000000 in all), expected at most 1000000 in all",
        ),
        (BASE + 'size = "1kB"\napp = {rate = "1mbit"}', "flows.0: expected one of size, app, arrivals and requests, not size and app"),
        (BASE + 'transport = "udp"', "flows.0: expected a rate with transport = 'udp'"),
        (BASE.replace('cc = "cubic"', 'transport = "udp"\nrate = "1000tbit"'), "flows.0.rate: found 1000000gbit (2500000000000 packets), expected at most 10000000000 packets"),
        (CHAIN + '[[flows]]\nfrom = "a"\nto = "d"', "flows.0.to: found no path from 'a' to 'd', expected one"),
        (CHAIN + "[[flows]]", "flows.0.from: found nothing, expected a node"),
        (
            '[topology]\nkind = "star"\nrate = "10mbit"\nrtt = "20ms"\n[[flows]]',
            "topology.leaves: found nothing, expected a number of hosts, 2 or more",
        ),
        (
            '[topology]\nkind = "parking-lot"\nrate = "10mbit"\ndelay = "5ms"\n[[flows]]',
            "topology.hops: found nothing, expected a number of bottleneck links, 1 or more",
        ),
        (CHAIN + '[[nodes]]\nname = "a"\n[[nodes]]\nname = "a"', "nodes.1.name: found 'a' again, expected another name"),
        (CHAIN + '[[links]]\nbetween = ["a", "a"]\nrate="1mbit"', "links.2.between: found 'a' twice, expected two nodes"),
        (CHAIN + '[[links]]\nbetween = ["a", "c"]', "links.2.rate: found neither `rate` nor `trace`, expected one of them"),
        (CHAIN + '[[links]]\nbetween = ["a", "b"]\nrate="1mbit"', "links.2.name: found 'a->b' again, expected another name"),
        (BASE + '[[rate_controllers]]\nkind="brv"\nlink="bottleneck"', "rate_controllers.0.kind: found 'brv', expected a rate controller; nearest is 'brf'"),
        (BASE + '[[rate_controllers]]\nkind="brf"\nlink="bottleneck"\nparams={ poll = "10" }', "rate_controllers.0.params.poll: found '10', expected a time from 10us to 1000000s"),
        (BASE + '[[rate_controllers]]\nkind="brf"\nlink="botleneck"', "rate_controllers.0.link: found 'botleneck', expected a link; nearest is 'bottleneck'"),
        (BASE + "[sdn]\noutages = [['2s', '1s']]", "sdn: expected pairs of times in order, e.g. [['10s', '20s']]"),
        (BASE + "[probes]\ninterval = '1ns'", "probes.interval: found '1ns', expected 0 or a time from 10us"),
        ("duration = '10h'" + BASE + "[probes]\ninterval = '1ms'", "probes.interval: found 1ms (252000000 samples), expected an interval that gives at most 100000000 samples (0 gives none)"),
        (BASE + "return_path = ['d1', 's1']", "flows.0.return_path: found 's1' after 'd1', expected a neighbour"),
        ("receive_buffer = 4096" + BASE, "receive_buffer: found 4096, expected 'auto' or a size from 4KiB to 1GiB with its unit, such as '64KiB'"),
        ("receive_buffer = '2GiB'" + BASE, "receive_buffer: found '2GiB', expected 'auto' or a size from 4KiB to 1GiB with its unit, such as '64KiB'"),
        (BASE.replace("20ms", "1h"), "topology.rtt: found '1h', expected a time from 1ns to 1000s"),
        (BASE.replace("[[flows]]", "queue = {kind = 'codel', target = '1s'}\n[[flows]]"), "topology.queue: expected a target of at most the interval"),
        (BASE + "[sweep.vary]\nflows.1.cc = ['bbr']", "sweep.vary.flows: found a table, expected a list; put the dotted key in quotes: \"flows.1.cc\" = [...]"),
        (BASE + "[sweep.vary.topology]\nqueue = ['1bdp']", "sweep.vary.topology: found a table, expected a list; put the dotted key in quotes: \"topology.queue\" = [...]"),
        (BASE.replace("[[flows]]", "[flows]"), "flows: found a table, expected a list; write [[flows]] with double brackets"),
        (BASE + "[sweep.case]\nname = 'x'", "sweep.case: found a table, expected a list; write [[sweep.case]] with double brackets"),
        (CHAIN + "[links.at]\ntime = '1s'", "links.1.at: found a table, expected a list; write [[links.at]] with double brackets"),
        (BASE + "[probes.links]\nx = 1", "probes.links: found a table, expected 'all' or a list of names"),
        (BASE + "[[sweep.case]]\nname = 'x'\nset.flows.0.cc = 'bbr'", "sweep.case.x: flows: found a table, expected a list"),
        (BASE.replace("[[flows]]", "[flows]") + "[flows]", "found [flows] a second time (at line 8, column 7), expected [[flows]] with double brackets"),
        (BASE + "[sweep.case]\n[sweep.case]", "found [sweep.case] a second time (at line 9, column 12), expected [[sweep.case]] with double brackets"),
        (BASE + "[topology]", "found [topology] a second time (at line 8, column 10), expected each table once"),
        (BASE.replace('kind = "dumbbell"', ""), "topology.kind: found nothing, expected a kind (dumbbell, parking-lot, star), or a name that `narrows list networks` has"),
        (BASE.replace("[[flows]]", "queue = {target = '5ms'}\n[[flows]]"), "topology.queue.kind: found nothing, expected a kind: fifo, threshold, red, codel, fq-codel, priority, htb"),
        (BASE.replace("[[flows]]", "loss = {p = 0.1}\n[[flows]]"), "topology.loss.model: found nothing, expected a model: bernoulli, gilbert-elliott"),
        (BASE.replace('rate = "10mbit"', 'trace = "x.trace"'), "topology.trace: found 'x.trace', expected a table such as { file = 'x.trace' }"),
        (BASE.replace('rate = "10mbit"', "trace = 5"), "topology.trace: found 5, expected a table"),
        ("duration = '2m'" + BASE, "duration: found '2m', expected a time such as '20ms' or '30s' (units: ns, us, ms, s, min, h)"),
        ("duration = '2'" + BASE, "duration: found '2', expected a time such as '20ms' or '30s'"),
        ("queue = '1bdp'" + BASE, "queue: found an unknown key; nearest is 'topology.queue'"),
        ("queue = '1bdp'" + CHAIN, "queue: found an unknown key; nearest is 'links.0.queue'"),
        ("cc = 'bbr'" + BASE, "cc: found an unknown key; nearest is 'flows.0.cc'"),
        ("seeds = 3" + BASE, "seeds: found an unknown key; nearest is 'sweep.seeds'"),
        (BASE + "[sweep]\nvary = ['topology.queue']", "sweep.vary: found a list of 1, expected a table"),
        (BASE + "mss = [1000, 1400]", "flows.0.mss: found a list of 2, expected a whole number; to vary it, write \"flows.0.mss\" = [...] under [sweep.vary]"),
        (BASE.replace("[[flows]]", "loss = [0, 0.01]\n[[flows]]"), "topology.loss: found a list of 2, expected a probability such as '0.1%' or 0.001; to vary it, write \"topology.loss\" = [...] under [sweep.vary]"),
        (CHAIN.replace('"c", "d"', "'c'"), "links.1.between: found a list of 1, expected at least 2 of them"),
        ("flow = ['a']" + BASE, "flow: found an unknown key; nearest is 'flows'"),
        (BASE + "[sweep.vary]\n'topology.queue' = ['1x']", "sweep.vary: topology.queue: found '1x', expected a queue length such as '1000p', '150kB', '1bdp' or 'infinite'"),
        (BASE + "[sweep.vary]\n'flows.1.cc' = ['reno']", "sweep.vary: flows.1: found '1', expected an entry from 0 to 0: cubic"),
        (BASE + "[sweep]\nseeds = 100000\n[sweep.vary]\nseed = [1, 2]", "sweep: found 200000 runs, expected at most 100000"),
        (BASE + "class = 1", "flows.0.class: found 1, expected 0: no queue on the flow's path has classes"),
        (BASE.replace("[[flows]]", HTB + "[[flows]]") + "class = 2", "flows.0.class: found 2, expected 0 to 1 (the queue of 'bottleneck' has 2)"),
        (BASE.replace("[[flows]]", "queue = {kind = 'priority', classes = ['9p', '9p', '9p']}\n[[flows]]") + "class = 3", "flows.0.class: found 3, expected 0 to 2 (the queue of 'bottleneck' has 3)"),
        (BASE.replace("[[flows]]", HTB.replace("4mbit", "5mbit") + "[[flows]]"), "topology.queue.classes: found rates of 11mbit in all, expected at most the link's 10mbit"),
        (BASE.replace("[[flows]]", HTB.replace("9mbit", "5mbit") + "[[flows]]"), "topology.queue.classes.1: expected a ceil of at least the rate (6mbit), not 5mbit"),
        (BASE.replace('rtt = "20ms"', "rtts = ['10ms', '20ms']") + "count = 2", "topology.rtts: found 2 RTTs, but no flow uses pair 2; give each pair an entry of flows (all flows of an entry use one pair)"),
        (BASE.replace("[[flows]]", "queue = '1kB'\n[[flows]]"), "topology.queue: found '1kB', expected at least a full packet of its flows (1500B)"),
        (BASE.replace("[[flows]]", "queue = '4kB'\n[[flows]]") + "mss = 8948", "topology.queue: found '4kB', expected at least a full packet of its flows (9000B)"),
        (BASE + "[[rate_controllers]]\nkind = 'brf'\nlink = 'bottleneck'\nqueue = '1kB'", "rate_controllers.0.queue: found '1kB', expected at least a full packet of its flows (1500B)"),
        (BASE + "[sdn]", "sdn: found no [[rate_controllers]], expected at least one that [sdn] can poll"),
        (BASE.replace("[[flows]]", "queue = 'fqcodel'\n[[flows]]"), "topology.queue: found 'fqcodel', expected a queue length such as '1000p', or a kind of queue; nearest is 'fq-codel'"),
        (BASE.replace("[[flows]]", "queue = 'htb'\n[[flows]]"), "topology.queue: found 'htb', expected a table with its classes: { kind = 'htb', classes = [...] }"),
        ("warmup = '1h'" + BASE, "warmup: found '3600s', expected less than the duration"),
        ("", "links: found no links, expected a [topology] or [[links]]"),
        (BASE.split("[[flows]]", maxsplit=1)[0], "flows: found none, expected at least one entry [[flows]]"),
        (BASE + "start_jitter = '40s'", "flows.0.start_jitter: found '40s' (the last flow would start at 40s), expected all to start within the duration"),
        (BASE + "pattern = 'incast'", "flows.0: expected one receiver, to = 'HOST', with pattern = 'incast'"),
        (BASE + "pattern = 'permutation'\nto = 'd1'", "flows.0: expected no key 'to' with pattern = 'permutation', because each host sends and receives"),
        (BASE + "from = []", "flows.0.from: found an empty list, expected at least one name"),
        (BASE + "from = ['q*']", "flows.0.from.0: found 'q*', expected a host: s1, d1"),
        (BASE + "from = ['s1']\nto = ['s1']", "flows.0.to: found no pair of two different hosts, expected one"),
        (BASE + "from = ['s1', 'q1']\nto = 'd1'", "flows.0.from: found 'q1', expected a node: r1, r2, s1, d1"),
        (BASE + "arrivals = { rate = 1, size = { distribution = 'pareto' } }", "flows.0.arrivals.size: expected a mean with distribution = 'pareto'"),
        (BASE + "start_jitter = '1ms'\narrivals = { rate = 1, size = '1kB' }", "flows.0: expected no start_jitter with arrivals, whose times are random already"),
        (BASE + "count = 9\nspacing = '10s'", "flows.0.spacing: found '10s' (the last flow would start at 80s), expected all to start within the duration"),
        ("name = '../x'" + BASE, "name: found '../x', expected a name without slashes that does not begin with a dot or dash"),
        ("seed = 0x" + "f" * 5000 + BASE, "seed: found a huge number, expected at most 9223372036854775807"),
        (BASE + "[sweep.vary]\nseed = [1979-05-27]", "sweep.vary.seed.0: found 1979-05-27, expected strings, numbers, true, false, lists and tables"),
        (BASE + "[sweep.vary]\nseed = [nan]", "sweep.vary.seed.0: found nan, expected finite numbers"),
        (BASE + "[sweep.vary]\nseed = [" + "[" * 50 + "]" * 50 + "]", "sweep.vary.seed.0: found a list of 1, expected tables nested no deeper than 16"),
        ("x = " + "[" * 5000, "found no valid TOML: cannot recurse further; max recursion depth met (at line 1, column 85)"),
        ("x = ", "found no valid TOML: string values must be quoted, expected literal string (at end of document)"),
        ("\"a\\nb\" = 1", "a b: found an unknown key: capture, duration, ecmp, expect, flows, kernel, links, name, nodes, probes, rate_controllers, receive_buffer, sdn, seed, sweep, topology, ..."),
    ],
)  # fmt: skip
def test_one_line_with_place_and_remedy(text, message):
    with pytest.raises(ScenarioError) as caught:
        attempt(text)
    assert str(caught.value) == f"x.toml: {message}"


@pytest.mark.parametrize(
    "text",
    [
        BASE.replace("[[flows]]", HTB + "[[flows]]") + "class = 1",
        BASE.replace("[[flows]]", "queue = '1500B'\n[[flows]]"),
        BASE.replace("[[flows]]", "queue = '1kB'\n[[flows]]") + "mss = 900",
        BASE.replace('rtt = "20ms"', "rtts = ['10ms', '20ms']") + "[[flows]]",
        BASE.replace('rtt = "20ms"', "rtts = ['10ms', '20ms']") + "to = 'd2'",
        BASE + "[sdn]\n[[rate_controllers]]\nkind = 'brf'\nlink = 'bottleneck'",
    ],
)
def test_values_at_the_limits_are_accepted(text):
    attempt(text)


def test_guarantees_with_a_trace_are_not_checked(tmp_path):
    (tmp_path / "t").write_text("1000\n")  # this trace has 12 kbit/s
    text = BASE.replace('rate = "10mbit"', 'trace = {file = "t"}').replace("[[flows]]", HTB + "[[flows]]")
    resolve(loads(text, str(tmp_path / "x.toml")))


def test_guarantees_of_the_reverse_direction_are_checked_if_it_has_its_own_queue():
    link = "[[links]]\nbetween = ['a', 'b']\nrate = '10mbit'\n" + HTB + "[[flows]]\nfrom = 'a'\nto = 'b'\n"
    attempt(link + "[[links]]\nbetween = ['b', 'c']\nrate = '1mbit'")
    attempt(link.replace("[[flows]]", "back = {rate = '1mbit'}\n[[flows]]"))
    own = HTB.replace("queue = ", "").strip()
    with pytest.raises(ScenarioError, match=r"links\.0\.back\.queue\.classes: found rates of 10mbit in all"):
        attempt(link.replace("[[flows]]", f"back = {{rate = '1mbit', queue = {own}}}\n[[flows]]"))


def test_found_strings_keep_their_quotes():
    assert found("x" * 99) == "'" + "x" * 55 + "...'"
    assert found("x" * 58) == "'" + "x" * 58 + "'"


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(ScenarioError, match=r"none\.toml: found no file, expected a scenario"):
        load(tmp_path / "none.toml")
    (tmp_path / "bytes.toml").write_bytes(b"\xff\xfe")
    with pytest.raises(ScenarioError, match="UTF-8"):
        load(tmp_path / "bytes.toml")
    with pytest.raises(ScenarioError, match="found a folder, expected a scenario"):
        load(tmp_path)


def test_overrides_that_lead_nowhere():
    for key, message in [("flows.9.cc", "flows.9"), ("seed.x.y", "seed"), ("a..b", "dotted key")]:
        with pytest.raises(ScenarioError, match=message):
            loads("seed = 1" + BASE, overrides={key: 1})
    with pytest.raises(ScenarioError, match="expected key=value"):
        parse_override("seed")


def test_the_error_about_a_list_tells_how_to_vary_a_value():
    with pytest.raises(ScenarioError) as caught:
        loads(BASE, "x.toml", dict([parse_override('topology.queue=["1bdp","2bdp"]')]))
    wanted = "expected a queue length such as '1000p', or a kind of queue"
    remedy = 'to vary it, write "topology.queue" = [...] under [sweep.vary]'
    assert str(caught.value) == f"x.toml: topology.queue: found a list of 2, {wanted}; {remedy}"


@pytest.mark.parametrize("quote", ['"', "'"])
def test_quotes_keep_a_part_of_a_dotted_key_together(quote):
    key, value = parse_override(f'sweep.vary.{quote}topology.queue{quote}=["1bdp","2bdp"]')
    runs = expand(loads(BASE, "x.toml", {key: value}))
    assert [run.factors for run in runs] == [{"topology.queue": "1bdp"}, {"topology.queue": "2bdp"}]


@pytest.mark.parametrize("key", ["", ".", "a.", ".a", "a..b", '"a', "a.'", '"a"b', 'a."".b', "a'b'"])
def test_keys_that_are_not_dotted_keys(key):
    with pytest.raises(ScenarioError, match=r"expected a dotted key such as 'topology\.rate'"):
        override({}, key, 1)


def accepts_or_explains(data):
    """Checks that a scenario resolves, or fails with an error of one line."""
    try:
        for run in expand(Scenario(**data).with_source(str(SCENARIOS / "x.toml")))[:3]:
            resolve(run.scenario, CCS, ["brf"])
    except ScenarioError as error:
        assert str(error)
        assert "\n" not in str(error)


@given(st.text(max_size=200))
def test_random_text(text):
    try:
        attempt(text)
    except ScenarioError as error:
        assert "\n" not in str(error)


WORDS = [
    "name",
    "topology",
    "kind",
    "dumbbell",
    "rate",
    "10mbit",
    "rtt",
    "20ms",
    "flows",
    "links",
    "between",
    "at",
    "sweep",
]
VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(10**20), 10**20)
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(
        ["0s", "1ns", "10mbit", "1bdp", "1p", "infinite", "-5ms", "100%", "a", "cubic", "codel", *WORDS]
    ),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.text(max_size=5) | st.sampled_from(WORDS), inner, max_size=3)
    ),
    max_leaves=6,
)


KEYS = json.loads(schema.text())["properties"]


@given(st.dictionaries(st.sampled_from([*KEYS, "x"]), VALUES, max_size=5))
@settings(max_examples=300)
def test_random_tables(data):
    accepts_or_explains(data)


EXAMPLES = [tomllib.loads(path.read_text()) for path in sorted(SCENARIOS.glob("*.toml"))]


def places(data, path=()):
    """Paths of all values in nested tables and lists."""
    items = data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ()
    for key, value in items:
        yield (*path, key)
        yield from places(value, (*path, key))


@given(st.data())
@settings(
    max_examples=400, suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large], deadline=None
)
def test_mutated_examples(data):
    scenario = copy.deepcopy(data.draw(st.sampled_from(EXAMPLES)))
    for _ in range(data.draw(st.integers(1, 3))):
        paths = list(places(scenario))
        if not paths:
            break
        *parents, last = data.draw(st.sampled_from(paths))
        place = scenario
        for key in parents:
            place = place[key]
        match data.draw(st.sampled_from(["replace", "delete", "rename", "copy"])):
            case "replace":
                place[last] = data.draw(VALUES)
            case "delete":
                del place[last]
            case "rename" if isinstance(place, dict):
                place[data.draw(st.text(max_size=6) | st.sampled_from(WORDS))] = place.pop(last)
            case "copy" if isinstance(place, list):
                place.append(copy.deepcopy(place[last]))
    accepts_or_explains(scenario)


@given(st.lists(st.sampled_from(["flows", "0", "*", "cc", "topology", "x", "-1", ""]), max_size=4), VALUES)
def test_random_overrides(parts, value):
    data = tomllib.loads(BASE)
    try:
        override(data, ".".join(parts), value)
    except ScenarioError:
        return
    accepts_or_explains(data)
