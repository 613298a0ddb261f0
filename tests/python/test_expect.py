"""Expectations of scenarios: their syntax, verdicts, exit codes and files, and the pytest fixture."""

import json
import os
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from xml.etree import ElementTree

import narrows
import pytest
from hypothesis import given
from hypothesis import strategies as st
from narrows import metrics, sweep
from narrows.errors import ScenarioError
from narrows.expect import claims, files, judge_results
from narrows.scenario import schema
from narrows.studies.judge import Verdict
from sketch import Sketch

BASE = """
duration = "10s"

[topology]
kind = "dumbbell"
rate = "50mbit"
rtt = "30ms"

[[flows]]
name = "a"
cc = "cubic"

[[flows]]
name = "b"
cc = "bbr"
"""
SWEPT = '[sweep]\nseeds = 3\nvary = { "topology.rate" = ["20mbit", "50mbit"] }\n'


def scenario(expect, more=""):
    return narrows.loads(f"{BASE}{more}[[expect]]\n{textwrap.dedent(expect)}")


def verdicts(loaded):
    return judge_results(loaded, narrows.run(loaded))


@pytest.mark.parametrize(
    ("expect", "word"),
    [
        ('measure = "goodput"\nat_least = "40mbit"', "met"),
        ('measure = "goodput"\nat_least = "60mbit"', "not met"),
        ('measure = "rtt"\nat_least = "30ms"', "met"),
        ('measure = "rtt"\nat_most = "30ms"', "not met"),
        ('measure = "share"\nargs = { of = "*" }\nat_least = "99%"', "met"),
        ('measure = "goodput"\nabove = "40mbit"', "cannot be judged"),
        ('measure = "goodput"\nargs = { flows = "nobody" }\nat_least = 1', "not met"),
        ('measure = "rtt"\nargs = { flows = "nobody" }\nat_most = 1', "cannot be judged"),
    ],
)
def test_one_run_complies_with_a_limit_or_not(expect, word):
    found = verdicts(scenario(expect))
    assert [item.word for item in found.judged] == [word]
    assert found.are_met == (word == "met")


def test_each_point_of_a_sweep_has_a_verdict_on_the_mean_over_seeds():
    found = verdicts(scenario('measure = "goodput"\nabove = "30mbit"', SWEPT))
    assert [(item.factors, item.word) for item in found.judged] == [
        ({"topology.rate": "20mbit"}, "not met"),
        ({"topology.rate": "50mbit"}, "met"),
    ]
    assert "20 Mbit/s" not in found.judged[0].says
    assert found.line == "expectations: 1 met, 1 not met"


def test_a_factor_selects_points():
    where = 'where = { "topology.rate" = "50mbit" }'
    found = verdicts(scenario(f'measure = "goodput"\nabove = "30mbit"\n{where}', SWEPT))
    assert [item.word for item in found.judged] == ["met"]


def test_two_sides_are_compared_seed_by_seed():
    same = (
        'measure = "goodput"\nthan = { args = { flows = "*" } }\ncompare = "ratio"\nabout = 1\nwithin = 0.01'
    )
    found = verdicts(scenario(same, SWEPT))
    assert [item.word for item in found.judged] == ["met", "met"]
    other = same.replace("about = 1", "about = 2")
    assert not verdicts(scenario(other, SWEPT)).are_met


def test_a_higher_confidence_widens_the_interval():
    wide, narrow = (
        verdicts(scenario(f'measure = "goodput"\nabove = 1\nconfidence = {level}', SWEPT)).judged[0]
        for level in (0.999, 0.6)
    )
    assert "99.9 % interval" in wide.why and "60 % interval" in narrow.why
    spread = [float(item.measured.split()[2]) for item in (wide, narrow)]
    assert spread[0] > 10 * spread[1]


@pytest.mark.parametrize(
    ("expect", "message"),
    [
        (
            'measure = "godput"\nat_least = 1',
            "expect.0.measure: found 'godput', expected a measure; nearest is 'goodput'",
        ),
        ('measure = "goodput"', "expect.0: expected exactly one of at_least, at_most, above, below, about"),
        ('measure = "goodput"\nat_least = 1\nat_most = 2', "expect.0: expected exactly one of"),
        ('measure = "goodput"\nabout = 1', "expect.0: expected about and within together"),
        ('measure = "goodput"\nabove = 1\ncompare = "ratio"', "expect.0: expected than and compare together"),
        ('measure = "goodput"\nat_least = "5ms"', "expect.0.at_least: found '5ms', expected a rate such as"),
        (
            'measure = "power"\nat_least = "5ms"',
            "expect.0.at_least: found '5ms', expected a number in Mbit/s per ms",
        ),
        ('measure = "goodput"\nat_least = true', "expect.0.at_least"),
        (
            'measure = "goodput"\nargs = { flow = "a" }\nat_least = 1',
            "expect.0.args.flow: found an unknown argument of goodput; nearest is 'flows'",
        ),
        (
            'measure = "rtt"\nargs = { statistic = "medan" }\nat_most = "1s"',
            "expect.0.args.statistic: found 'medan', expected one of mean, p50, p95, p99, max",
        ),
        (
            'measure = "utilisation"\nat_least = 1',
            "expect.0.args.link: found nothing, expected this argument of utilisation",
        ),
        (
            'measure = "goodput"\nwhere = { rate = 1 }\nat_least = 1',
            "expect.0.where.rate: found a name that is not a factor of the sweep",
        ),
        (
            'measure = "goodput"\nwhere = { "topology.rate" = "30mbit" }\nat_least = 1',
            "expect.0.where.topology.rate: found '30mbit', expected a value of the sweep: 20mbit, 50mbit",
        ),
        (
            'measure = "goodput"\nthan = { args = { flow = "a" } }\ncompare = "ratio"\nabove = 1',
            "expect.0.than.args.flow: found an unknown argument",
        ),
        ('measure = "goodput"\nat_least = 1\nconfidence = 1.0', "expect.0.confidence"),
    ],
)
def test_a_wrong_expectation_is_one_line(expect, message):
    with pytest.raises(ScenarioError) as error:
        claims(scenario(expect, SWEPT))
    assert str(error.value).startswith(f"scenario: {message}")
    assert "\n" not in str(error.value)


def test_expectations_change_neither_runs_nor_results(tmp_path):
    plain = narrows.loads(BASE)
    gated = scenario('measure = "goodput"\nat_least = 1')
    first = narrows.run(plain, out=tmp_path / "out")
    again = narrows.run(gated, out=tmp_path / "out", resume=True)
    assert again.metadata == first.metadata
    assert str(again.flows.to_pylist()) == str(first.flows.to_pylist())


@given(st.one_of(st.text(max_size=12), st.integers(), st.floats(), st.booleans(), st.none()))
def test_a_limit_of_any_kind_is_read_or_refused_in_one_line(value):
    try:
        data = narrows.loads(BASE).raw() | {"expect": [{"measure": "rtt", "at_least": value}]}
        made = claims(narrows.Scenario(**data))
    except ScenarioError as error:
        assert "\n" not in str(error)
    else:
        assert made[0].expect is not None and made[0].expect.at_least is not None


def run_command(narrows_command, monkeypatch, tmp_path, expect, *arguments):
    monkeypatch.setattr(sweep, "simulator", Sketch)
    file = tmp_path / "gate.toml"
    file.write_text(f"{BASE}{SWEPT}{expect}")
    return narrows_command("run", str(file), "--out", str(tmp_path / "out"), *arguments)


GOOD = '[[expect]]\nmeasure = "goodput"\nat_least = "1mbit"\n'
BAD = '[[expect]]\nsays = "A | B"\nmeasure = "goodput"\nat_least = "900mbit"\n'


@pytest.mark.parametrize(
    ("expect", "code"), [("", 0), (GOOD, 0), (GOOD + BAD, 1), (GOOD.replace("goodput", "x"), 2)]
)
def test_the_exit_code_tells_whether_all_are_met(narrows, monkeypatch, tmp_path, expect, code):
    found, out, error = run_command(narrows, monkeypatch, tmp_path, expect)
    assert found == code
    assert ("expectations: " in out) == (bool(expect) and code != 2)
    if code == 2:
        assert error.count("\n") == 1
        assert not (tmp_path / "out").exists()


def test_junit_and_markdown_hold_each_verdict(narrows, monkeypatch, tmp_path):
    xml, md = tmp_path / "gate.xml", tmp_path / "gate.md"
    code, _, _ = run_command(
        narrows, monkeypatch, tmp_path, GOOD + BAD, "--junit", str(xml), "--markdown", str(md)
    )
    assert code == 1
    suites = ElementTree.fromstring(xml.read_text())
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("4", "2", "0")
    cases = suites.findall("testsuite/testcase")
    assert [case.find("failure") is not None for case in cases] == [False, False, True, True]
    rows = [line for line in md.read_text().splitlines() if line.startswith("| A")]
    assert len(rows) == 2 and all("A \\| B" in row and "| not met |" in row for row in rows)


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
@pytest.mark.parametrize(
    ("expect", "more", "message"),
    [
        ("", (), "found no [[expect]] in {folder}/gate.toml, expected at least one"),
        (GOOD, ("--shard", "1/2"), "found --shard, expected all runs, because a shard has no verdicts"),
    ],
)
def test_a_file_for_verdicts_needs_verdicts(narrows, monkeypatch, tmp_path, option, expect, more, message):
    file = tmp_path / "verdicts"
    code, out, error = run_command(narrows, monkeypatch, tmp_path, expect, option, str(file), *more)
    assert (code, out) == (2, "")
    assert error == f"{option}: {message.format(folder=tmp_path)}\n"
    assert not file.exists() and not (tmp_path / "out").exists()


def test_a_shard_prints_how_to_judge_all_runs(narrows, monkeypatch, tmp_path):
    code, out, _ = run_command(narrows, monkeypatch, tmp_path, BAD, "--shard", "1/2")
    assert code == 0
    note = " ".join(out[out.index("note: this is") :].split())
    assert note.startswith("note: this is a part of the runs, so the expectations are not judged. ")
    assert "`narrows merge`" in note and "--reuse --out MERGED`" in note


def test_the_confidence_is_that_of_all_intervals_unless_it_is_given():
    plain, given = (
        claims(scenario(f'measure = "goodput"\nabove = 1{more}'))[0].expect
        for more in ("", "\nconfidence = 0.9")
    )
    assert plain is not None and plain.confidence == metrics.CONFIDENCE
    assert given is not None and given.confidence == 0.9
    keys = json.loads(schema.text())["$defs"]["Expectation"]["properties"]
    assert f"(default: {metrics.CONFIDENCE})" in keys["confidence"]["description"]


def test_a_lower_bound_is_shown_as_one():
    late = 'measure = "filling_time"\nargs = { link = "bottleneck", at_least = 2.0 }\nat_most = "60s"'
    found = verdicts(scenario(late)).judged[0]
    assert found.word == "cannot be judged" and found.measured.startswith("> ")


def test_a_file_that_cannot_be_written_is_one_line(narrows, monkeypatch, tmp_path):
    code, _, error = run_command(narrows, monkeypatch, tmp_path, GOOD, "--junit", str(tmp_path / "no" / "x"))
    assert (code == 2 and error.splitlines()[-1].startswith("narrows: ")) or str(tmp_path / "no") in error


def test_the_counts_of_junit_fit_the_verdicts():
    found = verdicts(scenario('measure = "goodput"\nabove = "40mbit"'))
    suites = ElementTree.fromstring(files.junit(found))
    assert found.judged[0].verdict is Verdict.UNJUDGED
    assert (suites.get("failures"), suites.get("errors")) == ("0", "1")
    assert suites.find("testsuite/testcase/error") is not None


PYTEST = """
from narrows.errors import NarrowsError, ScenarioError
import pytest

def test_met(narrows_run):
    run = narrows_run("gate.toml", override={"topology.rate": "40mbit"})
    run.expect()
    run.expect("goodput", at_least="30mbit").lines == []

def test_not_met(narrows_run):
    narrows_run("gate.toml").expect("goodput", at_least="60mbit")

def test_wrong_in_the_file(narrows_run, monkeypatch):
    monkeypatch.setattr("narrows.sweep.run", lambda *_, **__: pytest.fail("it ran"))
    with pytest.raises(ScenarioError, match="nearest is 'goodput'"):
        narrows_run("gate.toml", override={"expect.0.measure": "godput"})

def test_unknown_backend(narrows_run):
    with pytest.raises(NarrowsError, match="^on: found 'kernl', expected one of sim, kernel, vm"):
        narrows_run("gate.toml", on="kernl")

def test_wrong(narrows_run):
    with pytest.raises(ScenarioError, match="nearest is 'goodput'"):
        narrows_run("gate.toml").expect("godput", at_least=1)
"""


def test_the_fixture_of_pytest_asserts(tmp_path):
    (tmp_path / "gate.toml").write_text(BASE + GOOD)
    (tmp_path / "test_gate.py").write_text(PYTEST)
    done = subprocess.run(
        [
            sys.executable,
            "-m",
            "pytest",
            "-q",
            "-p",
            "narrows.testing",
            "-p",
            "no:cacheprovider",
            "test_gate.py",
        ],
        check=False,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_ADDOPTS": ""},
    )
    assert "1 failed, 4 passed" in done.stdout, done.stdout + done.stderr
    assert "Goodput: at least 60mbit: not met: measured 4" in done.stdout


def test_the_example_of_the_guide_is_met_and_its_tables_are_those_of_the_file():
    root = Path(__file__).resolve().parents[2]
    file = (root / "scenarios" / "expectations.toml").read_text()
    guide = (root / "docs" / "how-to" / "expectations.md").read_text()
    first, second = re.findall(r"```toml\n(.*?)```", guide, re.DOTALL)
    assert file.endswith(first)
    flows = '[[flows]]\nname = "bbr"\ncc = "bbr"\n[[flows]]\nname = "cubic"\n'
    assert (
        len(
            claims(
                narrows.loads(f'{flows}[topology]\nkind = "dumbbell"\nrate = "1mbit"\nrtt = "1ms"\n{second}')
            )
        )
        == 1
    )
    found = verdicts(narrows.loads(file))
    assert [item.word for item in found.judged] == ["met"] * 3
    for item in found.judged:
        assert item.says in guide and item.measured in guide and item.why in guide
