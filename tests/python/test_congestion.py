"""Congestion controllers with parameters, in scenarios, sweeps, errors and results."""

import json
import subprocess
import sys

import jsonschema
import pytest
from narrows import congestion, sweep
from narrows.backends.sim import Simulator
from narrows.errors import ScenarioError
from narrows.scenario import schema
from narrows.scenario.load import expand, loads
from narrows.scenario.notes import notes
from texts import DUMBBELL

TEXT = DUMBBELL + "[[flows]]\ncc = {cc}\n"


def run(cc, **overrides):
    return sweep.run(
        loads(TEXT.format(cc=cc), overrides={k.replace("__", "."): v for k, v in overrides.items()})
    )


def flows(results):
    return {
        name: results.flows[name].to_pylist()
        for name in ("name", "cc", "goodput_bps", "sent_packets", "retransmits")
    }


def error(cc, **overrides):
    with pytest.raises(ScenarioError) as caught:
        run(cc, **overrides)
    return str(caught.value)


def test_a_parameter_changes_the_result_and_identifies_the_flow():
    plain, changed = flows(run('"cubic"')), flows(run('{ name = "cubic", beta = 0.3 }'))
    assert (plain["cc"], changed["cc"]) == (["cubic"], ["cubic(beta=0.3)"])
    assert plain["name"] == changed["name"] == ["cubic"]
    assert plain["sent_packets"] != changed["sent_packets"]


@pytest.mark.parametrize("name", sorted(congestion.catalogue()))
def test_defaults_that_a_scenario_writes_out_change_nothing(name):
    """Written-out defaults give the same flows and links."""
    row = congestion.catalogue()[name]
    params = "".join(f", {p.name} = {p.spelled(p.default)}" for p in row.parameters.values())
    plain, written = run(f'"{name}"'), run(f'{{ name = "{name}"{params} }}')
    for table in ("flows", "links"):
        one, other = plain.table(table), written.table(table)
        for column in one.column_names:
            if column != "cc":
                assert str(one[column].to_pylist()) == str(other[column].to_pylist()), (table, column)


def test_every_default_is_within_its_range_and_reads_back():
    for row in congestion.catalogue().values():
        for parameter in row.parameters.values():
            value = json.loads(parameter.spelled(parameter.default))
            assert parameter.base(value) == parameter.default, (row.name, parameter.name)


SHARE = "expected a number from 0.1 to 0.95"
TIME = "expected a time from 0 to 100s"


@pytest.mark.parametrize(
    ("name", "key", "value", "problem"),
    [
        ("cubic", "beta", "1.5", f"found 1.5, {SHARE}"),
        ("cubic", "beta", '"0.5"', f"found '0.5', {SHARE}"),
        ("cubic", "beta", "true", f"found true, {SHARE}"),
        ("cubic", "beta", "[0.5, 0.7]", f"found a list of 2, {SHARE}"),
        ("cubic", "bet", "0.5", "found an unknown key, expected a parameter of cubic; nearest is 'beta'"),
        ("vegas", "alpha", "2.5", "found 2.5, expected a whole number from 0 to 1000000"),
        ("cubic", "slow_start", '"fast"', "found 'fast', expected hystart, hystart++ or plain"),
        ("bbr", "probe_rtt_duration", "200", f"found 200, {TIME}"),
        ("bbr", "probe_rtt_duration", '"300s"', f"found '300s', {TIME}"),
        ("bbr", "policer_difference", '"5"', "found '5', expected a rate from 0 to 1000gbit"),
        ("xcp", "beta", "0.5", "found an unknown key, expected no parameters for xcp"),
    ],
)
def test_an_error_is_one_line_with_key_value_and_range(name, key, value, problem):
    assert error(f'{{ name = "{name}", {key} = {value} }}') == f"scenario: flows.0.cc.{key}: {problem}"


def test_an_error_about_the_name_is_one_line():
    assert "\n" not in error('{ name = "cubick", beta = 0.5 }')
    assert "nearest is 'cubic'" in error('{ name = "cubick", beta = 0.5 }')
    assert error("{ beta = 0.5 }") == "scenario: flows.0.cc.name: found nothing, expected this key"
    table = "a table such as { name = 'cubic', beta = 0.5 }"
    assert error("7") == f"scenario: flows.0.cc: found 7, expected a name, or {table}"


def test_a_parameter_sweeps_like_any_key():
    text = TEXT.format(cc='"cubic"') + '[sweep.vary]\n"flows.*.cc.beta" = [0.3, 0.7]\n'
    results = sweep.run(loads(text))
    assert results.runs["flows.*.cc.beta"].to_pylist() == [0.3, 0.7]
    assert flows(results)["cc"] == ["cubic(beta=0.3)", "cubic(beta=0.7)"]
    assert flows(results)["name"] == ["cubic", "cubic"], "all rows of a sweep have the same name"
    for number, beta in enumerate((0.3, 0.7)):
        alone = flows(run(f'{{ name = "cubic", beta = {beta} }}'))
        assert alone["sent_packets"][0] == flows(results)["sent_packets"][number]


@pytest.mark.parametrize("key", ["flows.0.cc.beta", "flows.*.cc.beta", "flows.cubic.cc.beta"])
def test_an_override_gives_a_name_alone_a_parameter(key):
    scenario = loads(TEXT.format(cc='"cubic"'), overrides={key: 0.5})
    assert (scenario.flows[0].cc.name, scenario.flows[0].cc.params) == ("cubic", {"beta": 0.5})
    scenario = loads(
        TEXT.format(cc='"cubic"').replace('cc = "cubic"', ""), overrides={"flows.0.cc.beta": 0.5}
    )
    assert (scenario.flows[0].cc.name, scenario.flows[0].cc.params) == ("cubic", {"beta": 0.5})
    both = TEXT.format(cc='{ name = "cubic", c = 0.3 }')
    assert loads(both, overrides={key: 0.5}).flows[0].cc.params == {"c": 0.3, "beta": 0.5}


def test_a_scenario_without_parameters_is_written_as_before():
    scenario = loads(TEXT.format(cc='"reno"'))
    assert scenario.raw()["flows"][0]["cc"] == "reno"
    assert loads(TEXT.format(cc='{ name = "reno" }')).raw()["flows"][0]["cc"] == "reno"
    given = loads(TEXT.format(cc='{ name = "bbr", probe_rtt_duration = "150ms" }')).raw()["flows"][0]["cc"]
    assert given == {"name": "bbr", "probe_rtt_duration": "150ms"}


def test_presets_give_the_results_of_their_parameters_and_say_so():
    found = [(name, row, preset) for name, row, preset in congestion.names() if preset is not None]
    assert len(found) == 10
    for name, row, preset in found:
        if row.service is None:
            short, long = run(f'"{name}"'), run(congestion.spelled(row, preset))
            assert flows(short)["sent_packets"] == flows(long)["sent_packets"]
            assert flows(short)["cc"] == [name]
    said = notes(expand(loads(TEXT.format(cc='"bbr-a-recent"'))))
    assert said == [
        'bbr-a-recent is a preset: cc = { name = "bbr-a", tmax_window = "60s" } gives the same results'
    ]
    assert notes(expand(loads(TEXT.format(cc='"bbr-a"')))) == []


def test_the_schema_accepts_what_the_simulator_accepts():
    check = jsonschema.Draft202012Validator(json.loads(schema.text()))
    scenario = loads(TEXT.format(cc='"cubic"')).raw()
    for cc, is_valid in (
        ("cubic", True),
        ({"name": "cubic", "beta": 0.5}, True),
        ({"name": "bbr", "probe_rtt_duration": "200ms"}, True),
        ({"beta": 0.5}, False),
        (["cubic"], False),
        ({"name": "cubic", "beta": 1.5}, False),
        ({"name": "cubic", "alpha": 2}, False),
        ({"name": "vegas", "alpha": 2}, True),
        ({"name": "vegas", "alpha": 2.5}, False),
        ({"name": "cubic-hystartpp", "hystartpp_limit": "none"}, True),
        ({"name": "cubic", "hystartpp_css_rounds": "none"}, False),
        ({"name": "bbr", "probe_rtt_duration": 200}, False),
        ({"name": "of-my-own", "alpha": 2.5}, True),
    ):
        assert check.is_valid({**scenario, "flows": [{"cc": cc}]}) == is_valid, cc


class Fixed:
    def __init__(self, segments=10, label=""):
        self.segments = segments

    def on_ack(self, ack, window):
        window.cwnd = round(self.segments)

    def on_congestion(self, event, window):
        pass


def test_a_class_gets_its_parameters_as_keyword_arguments():
    def sent(cc):
        return flows(sweep.run(loads(TEXT.format(cc=cc)), backend=Simulator({"fixed": Fixed})))

    plain, wide = sent('"fixed"'), sent('{ name = "fixed", segments = 20, label = "wide" }')
    assert wide["sent_packets"][0] > 1.5 * plain["sent_packets"][0]
    assert wide["cc"] == ["fixed(label=wide, segments=20)"]
    with pytest.raises(ScenarioError, match=r"flows.0.cc: found parameters wrong, expected those of Fixed\("):
        sent('{ name = "fixed", wrong = 1 }')


def test_help_does_not_load_the_native_module():
    code = "import sys\nfrom narrows.cli.main import main\ntry:\n main()\nexcept SystemExit:\n pass\n"
    code += "assert not {name for name in sys.modules if '_native' in name}, 'the native module'\n"
    for words in (["--help"], ["run", "--help"], ["--version"]):
        subprocess.run([sys.executable, "-c", code, *words], check=True, capture_output=True)
