"""Comparison of two results."""

import json
import math
import re

import pytest
from narrows import sweep
from narrows.errors import OutputError
from narrows.results.compare import compare
from narrows.results.results import Results
from narrows.scenario.load import loads
from texts import TWO_FLOWS

TEXT = TWO_FLOWS


class Slower:
    """A backend that changes the figures of another backend."""

    def __init__(self, backend, goodput, rtt):
        self._backend, self._goodput, self._rtt = backend, goodput, rtt

    def __getattr__(self, name):
        return getattr(self._backend, name)

    def run(self, plan):
        output = self._backend.run(plan)
        output["flows"]["goodput_bps"] = output["flows"]["goodput_bps"] * self._goodput
        output["flows"]["rtt_mean_s"] = output["flows"]["rtt_mean_s"] * self._rtt
        return output | {"soundness": {"sound": False, "reasons": ["the relay was late"]}}


def both(backend, goodput, rtt, **out):
    scenario = loads(TEXT)
    a = sweep.run(scenario, backend=backend, out=out.get("a"))
    return a, sweep.run(scenario, backend=Slower(backend, goodput, rtt), out=out.get("b"))


def test_figures_within_and_beyond_their_tolerances(backend):
    comparison = compare(*both(backend, 0.96, 1.2))
    by_figure = {(pair.name, pair.figure): pair for pair in comparison.pairs if pair.entity == "flow"}
    assert by_figure["cubic", "goodput_bps"].difference == pytest.approx(-0.04)
    assert not by_figure["cubic", "goodput_bps"].large
    assert by_figure["bbr", "rtt_mean_s"].large
    assert not by_figure["bbr", "rtt_p95_s"].judged
    assert [pair.figure for pair in comparison.large] == ["rtt_mean_s", "rtt_mean_s"]


def test_a_result_agrees_with_itself(backend):
    a, _ = both(backend, 1, 1)
    comparison = compare(a, a)
    assert comparison.pairs and not comparison.large
    assert all(pair.difference == 0 for pair in comparison.pairs)


def test_zero_against_something_is_no_percentage(backend):
    a, b = both(backend, 1, 1)
    retransmits = next(p for p in compare(a, b).pairs if p.figure == "retransmits" and p.name == "bbr")
    assert retransmits.difference == 0
    assert math.isnan(type(retransmits)({}, "flow", "x", "retransmits", 0.0, 3.0).difference)


def test_flows_of_only_one_result_are_named(backend):
    a = sweep.run(loads(TEXT), backend=backend)
    b = sweep.run(loads(TEXT + 'name = "other"\n'), backend=backend)
    comparison = compare(a, b)
    assert (comparison.only_a, comparison.only_b) == (["bbr"], ["other"])


def renamed(backend, *names, table="flows"):
    """A backend that renames the first flows or links."""

    class Renamed:
        def __getattr__(self, name):
            return getattr(backend, name)

        def run(self, plan):
            output = backend.run(plan)
            old = output[table]["name"]
            return output | {table: output[table] | {"name": [*names, *old[len(names) :]]}}

    return Renamed()


def compared(narrows, tmp_path, a, b):
    """Exit code and last line of `narrows compare`. With `--json`, the exit code must be the same."""
    for name, backend in (("a", a), ("b", b)):
        sweep.run(loads(TEXT), backend=backend, out=tmp_path / name)
    code, out, _ = narrows("compare", tmp_path / "a", tmp_path / "b")
    as_json, data, _ = narrows("compare", tmp_path / "a", tmp_path / "b", "--json")
    assert as_json == code
    assert json.loads(data)["agrees"] is (code == 0)
    return code, out


def test_a_figure_that_is_zero_in_one_result_only_is_beyond_its_tolerance(narrows, backend, tmp_path):
    zero = Slower(backend, 0, 1)
    for a, b, shown in ((backend, zero, "-100.0<"), (zero, backend, "from 0<")):
        code, out = compared(narrows, tmp_path, a, b)
        assert code == 1
        assert out.count(shown) == 2
        assert out.endswith("; 2 of 4 judged figures differ by more (<)\n")
    code, out = compared(narrows, tmp_path, zero, zero)
    assert code == 0 and out.endswith("; all judged figures are within them\n")


def test_a_difference_from_zero_is_null_in_json_and_beyond_its_tolerance(narrows, backend, tmp_path):
    compared(narrows, tmp_path, Slower(backend, 0, 1), backend)
    _, data, _ = narrows("compare", tmp_path / "a", tmp_path / "b", "--json")
    goodputs = [f for f in json.loads(data)["figures"] if f["figure"] == "goodput_bps"]
    assert [(f["a"], f["difference"], f["beyond_tolerance"]) for f in goodputs] == [(0.0, None, True)] * 2


def test_a_figure_that_one_result_does_not_define_exits_with_1(narrows, backend, tmp_path):
    for a, b in ((backend, Slower(backend, 1, math.nan)), (Slower(backend, 1, math.nan), backend)):
        code, out = compared(narrows, tmp_path, a, b)
        assert code == 1
        last = "; all judged figures are within them; 2 figures are undefined in one result\n"
        assert out.endswith(last)


def test_figures_that_no_result_defines_are_not_judged(narrows, backend, tmp_path):
    unknown = Slower(backend, math.nan, math.nan)
    code, out = compared(narrows, tmp_path, unknown, unknown)
    assert code == 1
    assert out.endswith("; none of these figures is defined in both results, so nothing was judged\n")


@pytest.mark.parametrize("swapped", [False, True])
def test_flows_of_only_one_result_exit_with_1(narrows, backend, tmp_path, swapped):
    sides = [backend, renamed(backend, "x")]
    code, out = compared(narrows, tmp_path, *(reversed(sides) if swapped else sides))
    assert code == 1
    a, b = ("x", "cubic") if swapped else ("cubic", "x")
    assert f"only in A: {a}\nonly in B: {b}\n" in out
    assert out.endswith("; all judged figures are within them; 2 flows or links are in one result only\n")


def test_results_without_a_flow_in_common_exit_with_1(narrows, backend, tmp_path):
    code, out = compared(narrows, tmp_path, backend, renamed(backend, "x", "y"))
    assert code == 1
    last = "; no flow in common, so nothing was judged; 4 flows or links are in one result only\n"
    assert out.endswith(last)


def test_links_of_only_one_result_exit_with_1(narrows, backend, tmp_path):
    code, out = compared(narrows, tmp_path, backend, renamed(backend, "x", table="links"))
    assert code == 1
    assert "only in A: link bottleneck\nonly in B: link x\n" in out


def test_a_link_that_is_tight_in_one_result_only_is_compared(narrows, backend, tmp_path):
    class Idle(Slower):
        def run(self, plan):
            output = super().run(plan)
            return output | {"links": output["links"] | {"utilisation": output["links"]["utilisation"] / 10}}

    idle = Idle(backend, 1, 1)
    for a, b, shown in ((backend, idle, "-90.0"), (idle, backend, "+900.0")):
        code, out = compared(narrows, tmp_path, a, b)
        assert code == 0 and shown in out
    assert "bottleneck" not in compared(narrows, tmp_path, idle, idle)[1]


def test_many_flows_are_all_judged(narrows, backend, tmp_path):
    class Last(Slower):
        def run(self, plan):
            output = super().run(plan)
            output["flows"]["goodput_bps"][-1] *= 2
            return output

    text = TEXT + "".join(f'[[flows]]\nname = "f{i}"\n' for i in range(220))
    sweep.run(loads(text), backend=backend, out=tmp_path / "a")
    sweep.run(loads(text), backend=Last(backend, 1, 1), out=tmp_path / "b")
    code, out, _ = narrows("compare", tmp_path / "a", tmp_path / "b")
    assert code == 1 and "; 1 of 444 judged figures differ by more (<)\n" in out
    sweep.run(loads(TEXT), backend=backend, out=tmp_path / "b")
    code, out, _ = narrows("compare", tmp_path / "a", tmp_path / "b")
    assert code == 1
    assert re.search(r"only in A: f0, (f\d+, ){18}f19 and \d+ more\n", out)


def test_soundness_is_in_the_metadata(backend, tmp_path):
    _, b = both(backend, 1, 1, a=tmp_path / "a", b=tmp_path / "b")
    assert b.soundness["0"]["reasons"] == ["the relay was late"]
    assert json.loads((tmp_path / "b/metadata.json").read_text())["soundness"]["0"]["sound"] is False


def test_the_command(narrows, backend, tmp_path):
    both(backend, 0.9, 1, a=tmp_path / "a", b=tmp_path / "b")
    code, out, _ = narrows("compare", tmp_path / "a", tmp_path / "b")
    assert code == 1
    assert "-10.0<" in out
    assert "2 of 4 judged figures differ by more" in out
    code, out, _ = narrows("compare", tmp_path / "a", tmp_path / "b", "--json")
    assert code == 1
    figures = json.loads(out)["figures"]
    assert {f["flow"] for f in figures if f.get("beyond_tolerance")} == {"cubic", "bbr"}


def test_figures_within_their_tolerances_exit_with_0(narrows, backend, tmp_path):
    both(backend, 0.99, 1, a=tmp_path / "a", b=tmp_path / "b")
    assert narrows("compare", tmp_path / "a", tmp_path / "b")[0] == 0


def test_a_folder_without_results_gives_a_one_line_error(narrows, tmp_path):
    code, out, err = narrows("compare", tmp_path, tmp_path)
    assert (code, out) == (2, "")
    assert err.count("\n") == 1 and "expected a folder of results" in err


def test_remains_of_a_run_give_a_one_line_error(narrows, backend, tmp_path):
    both(backend, 1, 1, a=tmp_path / "a")
    (tmp_path / "b/runs").mkdir(parents=True)
    (tmp_path / "b/metadata.json").write_text((tmp_path / "a/metadata.json").read_text())
    line = f"{tmp_path / 'b'}: found no finished run, expected at least one\n"
    assert narrows("compare", tmp_path / "a", tmp_path / "b") == (2, "", line)
    assert narrows("report", tmp_path / "b") == (2, "", line)
    assert not (tmp_path / "b/report.html").exists()


@pytest.mark.parametrize("options", [[], ["--json"]])
def test_results_with_nothing_in_common_give_a_one_line_error(narrows, backend, tmp_path, options):
    sweep.run(loads(TEXT), backend=backend, out=tmp_path / "a")
    text = TEXT.replace("[[flows]]", '[[flows]]\nname = "x"', 1).replace('cc = "bbr"', 'name = "y"')
    text = text.replace('kind = "dumbbell"', 'kind = "star"\nleaves = 3')
    sweep.run(loads(text), backend=backend, out=tmp_path / "b")
    code, out, err = narrows("compare", tmp_path / "a", tmp_path / "b", *options)
    assert (code, out) == (2, "")
    assert err == f"{tmp_path / 'a'}, {tmp_path / 'b'}: found no flow or bottleneck link in common\n"


@pytest.mark.parametrize("text", ["[]", "[" * 100_000])
def test_a_folder_with_other_files_gives_a_one_line_error(tmp_path, text):
    (tmp_path / "metadata.json").write_text(text)
    with pytest.raises(OutputError, match="expected a folder of results"):
        Results.read(tmp_path)
