"""`narrows diff`: pairing of runs, verdicts, exit codes and outputs."""

import json
import math

import numpy as np
import pytest
from narrows import metrics, sweep
from narrows.diff import Outcome, Side, diff, files, parse_ask, read_side
from narrows.errors import NarrowsError
from narrows.scenario.load import loads
from texts import TWO_FLOWS

SEEDS = 8


class Noisy:
    """The goodput depends on the seed and on `slower`.

    Two values of `slower` act as two versions of an algorithm.
    """

    def __init__(self, backend, slower=1.0, *, noise=0.02, unsound=(), stream=0):
        self._backend, self._slower, self._noise = backend, slower, noise
        self._unsound, self._stream = unsound, stream

    def __getattr__(self, name):
        return getattr(self._backend, name)

    def run(self, plan):
        output = self._backend.run(plan)
        random = np.random.default_rng([self._stream, plan["seed"]])
        factor = 1 + self._noise * random.standard_normal(len(plan["flows"]))
        flows = output["flows"] | {
            "goodput_bps": 1e7 * self._slower * factor,
            "rtt_mean_s": 0.03 * (1 + self._noise * random.standard_normal(len(plan["flows"]))),
        }
        sound = plan["seed"] not in self._unsound
        verdict = {"sound": sound, "reasons": [] if sound else ["the relay was late"]}
        return output | {"flows": flows, "soundness": verdict}


def side(label, backend, text=TWO_FLOWS, seed=1, seeds=SEEDS):
    results = sweep.run(loads(text, overrides={"seed": seed}), seeds=seeds, backend=backend)
    return Side(label, {"": results})


def outcomes(result, figure="goodput_bps"):
    return {item.series.name: item.outcome for item in result.compared if item.series.figure == figure}


def both(backend, slower, tmp_path, text=TWO_FLOWS, seeds=SEEDS):
    for name, factor in (("base", 1.0), ("head", slower)):
        sweep.run(loads(text), seeds=seeds, backend=Noisy(backend, factor), out=tmp_path / name)
    return tmp_path / "base", tmp_path / "head"


# --- which runs are compared


def test_equal_runs_are_identical(backend):
    result = diff(side("a", Noisy(backend)), side("b", Noisy(backend)))
    assert result.is_identical and not result.is_changed
    assert set(result.counts) == {Outcome.EQUAL}


def test_runs_whose_links_differ_are_not_identical(backend):
    class Longer(Noisy):
        def run(self, plan):
            output = super().run(plan)
            links = dict(output["links"])
            links["sojourn_mean_s"] = np.asarray(links["sojourn_mean_s"], dtype=float) + 0.001
            return output | {"links": links}

    assert not diff(side("a", Noisy(backend)), side("b", Longer(backend))).is_identical


def test_runs_with_the_same_seed_are_paired(backend):
    """Both runs of a pair have the same noise.

    So `diff` finds even a change of a third of the noise's standard deviation.
    """
    base, head = side("a", Noisy(backend)), side("b", Noisy(backend, 0.993))
    result = diff(base, head)
    assert outcomes(result) == {"cubic": Outcome.CHANGED, "bbr": Outcome.CHANGED}
    assert outcomes(result, "rtt_mean_s") == {"cubic": Outcome.EQUAL, "bbr": Outcome.EQUAL}
    (point,) = result.points
    assert (point.paired, point.pairs, point.identical) == (True, SEEDS, 0)
    found = next(item for item in result.compared if item.outcome is Outcome.CHANGED)
    assert found.relative == pytest.approx(-0.007, rel=1e-6)
    assert found.relative_bounds[0] < -0.007 < found.relative_bounds[1] < 0


def test_runs_with_other_seeds_are_unpaired(backend):
    base = side("a", Noisy(backend))
    small = diff(base, side("b", Noisy(backend, 0.993), seed=100))
    assert not small.points[0].paired
    assert set(outcomes(small).values()) == {Outcome.UNCHANGED}
    large = diff(base, side("b", Noisy(backend, 0.9), seed=100))
    assert set(outcomes(large).values()) == {Outcome.CHANGED}
    assert set(outcomes(large, "rtt_mean_s").values()) == {Outcome.UNCHANGED}


def test_only_common_seeds_count_if_there_are_several(backend):
    result = diff(side("a", Noisy(backend), seeds=8), side("b", Noisy(backend), seeds=5, seed=3))
    assert result.points[0].seeds == ((3, 4, 5, 6, 7),) * 2
    assert not result.is_identical and not result.is_changed


def test_repetitions_of_one_run_are_no_replicates(backend):
    """Without noise, all seeds give the same run, so no interval can be computed."""
    base, head = (side("x", Noisy(backend, factor, noise=0)) for factor in (1, 0.5))
    result = diff(base, head)
    assert set(outcomes(result).values()) == {Outcome.UNJUDGED}
    assert result.is_changed
    assert result.points[0].repeats == 2 * (SEEDS - 1)
    assert not diff(base, base).is_changed


def test_disturbed_runs_do_not_count(backend):
    head = Noisy(backend, unsound=(2, 3))
    result = diff(side("a", Noisy(backend)), side("b", head))
    assert result.points[0].unsound == 2
    assert 2 not in result.points[0].seeds[0]
    nothing = diff(side("a", Noisy(backend)), side("b", Noisy(backend, unsound=range(99))))
    assert set(outcomes(nothing).values()) == {Outcome.UNJUDGED}


def test_each_point_of_a_sweep_is_compared_with_the_same_point(backend):
    text = TWO_FLOWS + '[sweep.vary]\n"topology.rate" = ["10mbit", "20mbit"]\n'
    result = diff(side("a", Noisy(backend), text), side("b", Noisy(backend, 0.9), text))
    assert [point.factors for point in result.points] == [{"topology.rate": f"{n}0mbit"} for n in (1, 2)]
    assert result.counts[Outcome.CHANGED] == 4


# --- verdicts


def test_a_figure_that_only_one_side_defines_is_a_change(backend):
    result = diff(side("a", Noisy(backend)), side("b", Noisy(backend, math.nan)))
    assert set(outcomes(result).values()) == {Outcome.ONE_SIDED}
    assert result.is_changed


class Unfinished(Noisy):
    def __init__(self, backend, seeds):
        super().__init__(backend)
        self.without = seeds

    def run(self, plan):
        output = super().run(plan)
        if plan["seed"] in self.without:
            flows = output["flows"]
            output = output | {"flows": flows | {"goodput_bps": [math.nan] * len(flows["name"])}}
        return output


def test_a_figure_that_fewer_runs_define_is_a_change(backend):
    base = side("a", Unfinished(backend, ()))
    result = diff(base, side("b", Unfinished(backend, range(4, 99))))
    found = {item.series.figure: item.outcome for item in result.compared if item.series.name == "cubic"}
    assert found["goodput_bps_defined"] is Outcome.CHANGED and result.is_changed
    one = diff(base, side("b", Unfinished(backend, [4])))
    assert not one.is_changed
    alike = diff(side("a", Unfinished(backend, [4])), side("b", Unfinished(backend, [4])))
    assert set(outcomes(alike).values()) == {Outcome.EQUAL}


def test_the_correction_counts_all_figures_of_all_scenarios(backend):
    text = TWO_FLOWS + '[[flows]]\nname = "c"\ncount = 8\n'
    base, noise, changed = (
        side("", Noisy(backend, factor, stream=stream), text, seed=seed).results[""]
        for factor, stream, seed in ((1.0, 1, 1), (1.0, 2, 50), (0.9, 3, 80))
    )
    one = diff(Side("", {"a": base}), Side("", {"a": changed}))
    many = diff(
        Side("", {"a": base} | dict.fromkeys("uvwxyz", base)),
        Side("", {"a": changed} | dict.fromkeys("uvwxyz", noise)),
    )
    raw, alone, together = ({}, {}, {})
    for result, found in ((one, alone), (many, together)):
        for item in result.parts[0].compared:
            if not math.isnan(item.p):
                key = (item.series.name, item.series.figure)
                raw[key], found[key] = item.difference.p, item.p
    smallest = min(raw, key=raw.__getitem__)
    assert raw[smallest] < alone[smallest] < together[smallest]


def test_unchanged_sides_with_other_seeds_alarm_at_most_at_the_stated_level(backend):
    """At 95 % confidence, about 5 alarms are expected in 105 comparisons.

    More are allowed, because the comparisons are not independent.
    """
    base = [side("", Noisy(backend, stream=stream), seeds=5) for stream in range(15)]
    alarms = [diff(a, b).is_changed for i, a in enumerate(base) for b in base[:i]]
    assert sum(alarms) <= 14


# --- measures


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("jian", "--measure: found 'jian', expected a measure; nearest is 'jain'"),
        ("jain:flow=a", "--measure jain: flow: found an unknown argument of jain; nearest is 'flows'"),
        (
            "rtt:statistic=medan",
            "--measure rtt: statistic: found 'medan', expected one of mean, p50, p95, p99, max; "
            "nearest is 'mean'",
        ),
        ("jain:a", "--measure: found 'a', expected ARGUMENT=VALUE"),
        ("share", "--measure share: of: found nothing, expected this argument of share"),
    ],
)
def test_a_wrong_measure_gives_one_line(text, message):
    with pytest.raises(NarrowsError) as caught:
        parse_ask(text)
    assert str(caught.value) == message


def test_arguments_are_toml_or_words():
    ask = parse_ask('drop_rate:links=["a", "b"]')
    assert (ask.measure.name, ask.args, ask.of_each) == ("drop_rate", {"links": ["a", "b"]}, "")
    ask = parse_ask("rtt:statistic=p95,flows=web*")
    assert ask.args == {"statistic": "p95", "flows": "web*"}
    assert parse_ask("goodput").of_each == "flows" and parse_ask("sojourn").of_each == "link"


def test_a_measure_is_compared_for_all_flows_and_for_each(backend):
    base, head = side("a", Noisy(backend)), side("b", Noisy(backend, 0.9))
    result = diff(base, head, [parse_ask("goodput"), parse_ask("sojourn:statistic=mean")])
    assert outcomes(result, "goodput") == dict.fromkeys(["all", "cubic", "bbr"], Outcome.CHANGED)
    assert outcomes(result, "sojourn")["bottleneck"] is Outcome.EQUAL
    means = {item.series.name: item.base.mean for item in result.compared}
    assert means["all"] == pytest.approx(means["cubic"] + means["bbr"])


def test_a_measure_of_a_large_group_is_that_of_its_flows(backend):
    text = TWO_FLOWS + '[[flows]]\nname = "c"\ncount = 9\n'

    class Grouped(Noisy):
        def run(self, plan):
            output = super().run(plan)
            flows = output["flows"]
            return output | {
                "flows": flows | {"source": [*flows["source"][:2], *["c"] * (len(flows["name"]) - 2)]}
            }

    result = diff(
        side("a", Grouped(backend), text), side("b", Grouped(backend), text), [parse_ask("goodput")]
    )
    means = {item.series.name: item.base.mean for item in result.compared}
    assert list(means) == ["all", "cubic", "bbr", "c"]
    assert means["all"] == pytest.approx(means["cubic"] + means["bbr"] + means["c"])


def test_a_link_with_a_bracket_in_its_name_is_found(backend):
    class Bracketed(Noisy):
        def run(self, plan):
            output = super().run(plan)
            names = [name.replace("bottleneck", "a[1]->b") for name in output["links"]["name"]]
            return output | {"links": output["links"] | {"name": names}}

    sides = [side(label, Bracketed(backend)) for label in "ab"]
    assert (
        outcomes(diff(*sides, [parse_ask("sojourn:statistic=mean")]), "sojourn")["a[1]->b"] is Outcome.EQUAL
    )


@pytest.mark.parametrize(
    "ask", ["goodput_over_bound:capacity_mbit=0", "goodput_over_bound:capacity_mbit=10,loss=absent"]
)
def test_an_argument_that_a_measure_cannot_use_is_refused_in_one_line(backend, ask):
    with pytest.raises(NarrowsError, match=r"^measure goodput_over_bound: found .*, which it cannot use \("):
        diff(side("a", Noisy(backend)), side("b", Noisy(backend)), [parse_ask(ask)])


# --- the command


def test_the_command_prints_and_writes_the_changes(narrows, backend, tmp_path):
    pytest.importorskip("altair")
    base, head = both(backend, 0.9, tmp_path)
    page, markdown = tmp_path / "diff.html", tmp_path / "diff.md"
    code, out, err = narrows("diff", base, head, "--out", page, "--markdown", markdown)
    assert (code, err) == (1, "")
    assert out.count("changed\n") >= 2 and "-10 " in out and "2 changed" in out
    assert f"page in {page}" in out
    html = page.read_text()
    assert "Differences between base and head" in html and "cubic, goodput (Mbit/s)" in html
    assert markdown.read_text().count("| changed |") == 2
    code, data, _ = narrows("diff", base, head, "--json")
    figures = json.loads(data)["scenarios"][0]["figures"]
    changed = [item for item in figures if item["outcome"] == "changed"]
    assert code == 1
    assert [(item["flow"], item["figure"]) for item in changed] == [
        ("cubic", "goodput_bps"),
        ("bbr", "goodput_bps"),
    ]
    assert all(item["interval"][0] < item["difference"] < item["interval"][1] < 0 for item in changed)


def test_the_help_names_the_default_confidence(narrows):
    assert f"(default: {metrics.CONFIDENCE:g})" in " ".join(narrows("diff", "--help")[1].split())


def test_results_without_a_change_exit_with_0_unless_exact(narrows, backend, tmp_path):
    base, head = both(backend, 1 + 1e-12, tmp_path)
    options = ("--measure", "rtt")
    code, out, _ = narrows("diff", base, head, *options)
    assert code == 0 and "of which 0 are bit-for-bit equal" in out
    assert narrows("diff", base, head, *options, "--exact")[0] == 1
    code, out, _ = narrows("diff", base, base, "--exact")
    assert code == 0 and f"identical: {SEEDS} pairs of runs are bit-for-bit equal" in out


def test_folders_with_several_results_are_compared_by_name(narrows, backend, tmp_path):
    for name, factor in (("base", 1), ("head", 0.9)):
        for scenario in ("one", "two"):
            slower = factor if scenario == "two" else 1
            sweep.run(
                loads(TWO_FLOWS), seeds=5, backend=Noisy(backend, slower), out=tmp_path / name / scenario
            )
    sweep.run(loads(TWO_FLOWS), seeds=5, backend=Noisy(backend), out=tmp_path / "base/three")
    code, out, _ = narrows("diff", tmp_path / "base", tmp_path / "head", "--all")
    assert code == 1
    rows = [line.split() for line in out.splitlines() if line.endswith("changed")]
    assert {row[0] for row in rows} == {"two"}
    assert "only in BASE: scenario three" in out


def test_flows_of_only_one_side_are_a_change(narrows, backend, tmp_path):
    sweep.run(loads(TWO_FLOWS), seeds=3, backend=Noisy(backend), out=tmp_path / "base")
    sweep.run(
        loads(TWO_FLOWS + '[[flows]]\nname = "c"\n'), seeds=3, backend=Noisy(backend), out=tmp_path / "head"
    )
    code, out, _ = narrows("diff", tmp_path / "base", tmp_path / "head")
    assert code == 1 and "only in HEAD: c, link s3->r1" in out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("base", "nothing"), "nothing: no such folder, expected a folder of results"),
        (
            ("base", "base", "--confidence", "1"),
            "--confidence: found 1.0, expected at least 0.5 and less than 1",
        ),
        (("base", "base", "--out", "x.pdf"), "--out: found 'x.pdf', expected a name that ends with .html"),
        (
            ("base", "base", "--seeds", "3"),
            "--seeds: found no --scenario, expected one, because this option applies only to runs",
        ),
    ],
)
def test_bad_input_gives_one_line(narrows, backend, tmp_path, monkeypatch, words, message):
    monkeypatch.chdir(tmp_path)
    both(backend, 1, tmp_path, seeds=2)
    before = sorted(tmp_path.iterdir())
    assert narrows("diff", *words) == (2, "", f"{message}\n")
    assert sorted(tmp_path.iterdir()) == before


def test_results_without_anything_in_common_give_one_line(narrows, backend, tmp_path):
    sweep.run(loads(TWO_FLOWS), backend=backend, out=tmp_path / "a")
    text = TWO_FLOWS + '[sweep.vary]\n"topology.rate" = ["10mbit", "20mbit"]\n'
    sweep.run(loads(text), backend=backend, out=tmp_path / "b")
    code, out, err = narrows("diff", tmp_path / "a", tmp_path / "b")
    line = f"{tmp_path / 'a'}, {tmp_path / 'b'}: found no flow or bottleneck link in common\n"
    assert (code, out, err) == (2, "", line)


def test_markdown_escapes_names(backend):
    base, head = Side("a|b", side("", Noisy(backend)).results), side("h", Noisy(backend, 0.5))
    assert files.markdown(diff(base, head)).startswith("**a\\|b → h**: ")


def test_a_folder_with_results_and_others_inside_is_one_side(backend, tmp_path):
    sweep.run(loads(TWO_FLOWS), backend=backend, out=tmp_path / "x")
    sweep.run(loads(TWO_FLOWS), backend=backend, out=tmp_path / "x/sim")
    assert list(read_side(tmp_path / "x").results) == [""]
    assert list(read_side(tmp_path).results) == ["x"]
