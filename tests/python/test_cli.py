"""The command line, with a backend that does not simulate."""

import json
import math
import re
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest
from narrows import _native, congestion, sweep
from narrows.cli import listing
from narrows.cli.commands.shared import On
from narrows.cli.folders import results_folder
from narrows.matrix.plan import helped
from narrows.results.results import Results
from narrows.scenario import limits, schema
from narrows.scenario.load import expand, load
from narrows.scenario.notes import notes
from texts import TWO_FLOWS

SCENARIOS = Path(__file__).parents[2] / "scenarios"
TEXT = TWO_FLOWS


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch, backend):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sweep, "simulator", lambda: backend)
    (tmp_path / "demo.toml").write_text(TEXT)


def test_run_prints_a_table_and_writes_others(narrows, tmp_path):
    code, out, _ = narrows("run", "demo.toml")
    assert code == 0
    assert "cubic" in out
    assert "66.7" in out
    assert (tmp_path / "results" / "demo" / "flows.parquet").exists()


def test_a_run_that_fails_names_the_folder_of_the_finished_runs(narrows, backend):
    backend.fail_seed = 2
    code, out, err = narrows("run", "demo.toml", "--seeds", "3", "--jobs", "1")
    assert (code, out.strip()) == (2, "")
    assert err.splitlines()[-1] == "demo.toml: refused; 1 finished run readable in results/demo"


def test_a_path_without_results_is_explained(narrows, tmp_path):
    assert narrows("run", "demo.toml")[0] == 0
    assert narrows("run", "demo.toml", "--seed", "3")[0] == 0
    expected = "expected a folder of results"
    lines = {
        "nope": f"nope: no such folder, {expected}",
        "results": f"results: found no metadata.json, {expected}; results holds: demo, demo-seed=3",
        "demo.toml": f"demo.toml: found a scenario, {expected}; run it first: narrows run demo.toml",
        "results/demo/runs.csv": f"results/demo/runs.csv: found a file, {expected}",
    }
    for path, line in lines.items():
        assert narrows("report", path) == (2, "", f"{line}\n")
    (tmp_path / "empty").mkdir()
    assert narrows("report", "empty")[2] == f"empty: found no readable metadata.json, {expected}\n"
    for i in range(9):
        (tmp_path / f"many/{i}").mkdir(parents=True)
        (tmp_path / f"many/{i}/metadata.json").touch()
    assert narrows("report", "many")[2].endswith("; many holds: 0, 1, 2, 3, 4, 5, 6, 7, ...\n")


def test_run_takes_overrides(narrows):
    code, out, _ = narrows(
        "run", "demo.toml", "--set", "flows.*.cc=reno", "--seeds", "2", "--seed", "5", "--json"
    )
    data = json.loads(out)
    assert code == 0
    assert data["runs"] == 2
    assert [flow["cc"] for flow in data["flows"]] == ["reno", "reno"]
    assert data["flows"][0]["goodput_bps"] == 1e6 + 5.5
    assert data["flows"][0]["fct_s"] is None


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["run", "none.toml"], "none.toml: found no file, expected a scenario\n"),
        (
            ["run", "demo.toml", "--set", "topology.rat=1"],
            "demo.toml: topology.rat: found an unknown key; nearest is 'rate'\n",
        ),
        (["run", "demo.toml", "--no-sim"], "--no-sim: found --on sim, expected --on kernel or vm\n"),
        (["run", "demo.toml", "--set", "x"], "--set: found 'x', expected key=value\n"),
        (["run"], "narrows run: Missing argument 'SCENARIO'; see narrows run -h\n"),
        (["walk"], "narrows: No such command 'walk'; see narrows -h\n"),
        (["run", "demo.toml", "--set"], "narrows: Option '--set' requires an argument; see narrows -h\n"),
        (
            ["run", "demo.toml", "--seeds", "x"],
            "narrows run: --seeds: found 'x', expected a whole number; see narrows run -h\n",
        ),
        (
            ["run", "demo.toml", "--jobs", "0"],
            "narrows run: --jobs: found '0', expected at least 1; see narrows run -h\n",
        ),
        (
            ["run", "demo.toml", "--jobs", "2000"],
            "narrows run: --jobs: found '2000', expected at most 1024; see narrows run -h\n",
        ),
        (
            ["run", "demo.toml", "--on", "kernell"],
            "narrows run: --on: found 'kernell', expected one of sim, kernel, vm; nearest is 'kernel'; "
            "see narrows run -h\n",
        ),
        (
            ["check", "demo.toml", "--set", "topology.kind=ring"],
            "demo.toml: topology.kind: found 'ring', expected a kind: dumbbell, parking-lot, star\n",
        ),
        (
            ["list", "queue"],
            "list: found 'queue', expected one of congestion, rate, stacks, queues, "
            "topologies, networks, loss, measures; nearest is 'queues'\n",
        ),
    ],
)
def test_mistakes_give_a_one_line_error_and_exit_2(narrows, tmp_path, args, message):
    assert narrows(*args) == (2, "", message)
    assert not (tmp_path / "results").exists()


@pytest.mark.parametrize("option", [("--seeds", "0"), ("--jobs", "x"), ("--colour",)])
def test_mistakes_in_options_give_a_one_line_error_and_exit_2(narrows, tmp_path, option):
    code, out, err = narrows("run", "demo.toml", *option)
    assert (code, out) == (2, "")
    assert err.startswith("narrows run: ")
    assert option[0] in err
    assert err.endswith("; see narrows run -h\n")
    assert err.count("\n") == 1
    assert not (tmp_path / "results").exists()


def test_the_command_alone_explains_itself(narrows):
    _, out, err = narrows()
    assert "Simulate, verify" in out + err


def test_the_version(narrows):
    code, out, _ = narrows("--version")
    assert (code, out) == (0, f"narrows {version('narrows')}\n")


def test_an_interrupted_run_promises_no_results(narrows, tmp_path, backend):
    def stop(_plan):
        raise KeyboardInterrupt

    backend.run = stop
    assert narrows("run", "demo.toml") == (130, "", "interrupted: 0 of 1 runs finished, nothing is written\n")
    assert not (tmp_path / "results").exists()


def test_an_interrupted_run_says_that_earlier_results_stay(narrows, tmp_path, backend):
    def stop(_plan):
        raise KeyboardInterrupt

    narrows("run", "demo.toml")
    backend.run = stop
    assert narrows("run", "demo.toml")[2] == (
        "interrupted: 0 of 1 runs finished, nothing is written; results/demo still has the earlier results\n"
    )
    assert len(Results.read(tmp_path / "results/demo").runs) == 1


@pytest.mark.parametrize("name", ["out.pdf", "out"])
def test_a_report_is_an_html_page(narrows, tmp_path, name):
    narrows("run", "demo.toml")
    message = f"--out: found '{name}', expected a name that ends with .html\n"
    assert narrows("report", "results/demo", "--out", name) == (2, "", message)
    assert not (tmp_path / name).exists()


def test_reuse_continues_an_interrupted_sweep(narrows, tmp_path, backend):
    answer = backend.run

    def stop_at_the_third(plan):
        if len(backend.plans) == 2:
            raise KeyboardInterrupt
        return answer(plan)

    backend.run = stop_at_the_third
    sweep = ["run", "demo.toml", "--seeds", "5", "--jobs", "1"]
    code, _, errors = narrows(*sweep)
    stopped = "interrupted: 2 of 5 runs finished, readable in results/demo; to run only the rest, add --reuse"
    assert (code, errors.splitlines()[-1]) == (130, stopped)
    backend.run = answer
    backend.plans.clear()
    code, out, _ = narrows(*sweep, "--reuse")
    assert (code, len(backend.plans)) == (0, 3)
    assert out.endswith("tables in results/demo\n")
    assert len(Results.read(tmp_path / "results/demo").runs) == 5


def test_reuse_does_not_run_complete_results_again(narrows, backend):
    narrows("run", "demo.toml")
    backend.plans.clear()
    assert narrows("run", "demo.toml", "--reuse")[1].endswith("tables in results/demo\n")
    assert not backend.plans
    out = narrows("run", "demo.toml", "--reuse", "--seeds", "2")[1]
    assert out.endswith("tables in results/demo (earlier results replaced)\n")
    assert len(backend.plans) == 2


def test_a_report_goes_with_the_results_that_it_is_of(narrows, tmp_path):
    narrows("run", "demo.toml")
    narrows("report", "results/demo")
    page = tmp_path / "results/demo/report.html"
    assert page.exists()
    narrows("run", "demo.toml", "--set", "flows.0.cc=reno", "--out", "results/demo")
    assert not page.exists()


def test_figures_of_a_report_can_be_had_as_files(narrows, tmp_path):
    sweep = ("--set", "sweep.vary={'flows.0.cc' = ['cubic', 'reno']}", "--out", "results/demo")
    narrows("run", "demo.toml", *sweep)
    code, out, _ = narrows("report", "results/demo", "--figures", "pictures")
    assert (code, out) == (0, "report in results/demo/report.html, figures in pictures\n")
    written = {path.suffix for path in (tmp_path / "pictures").glob("points.*")}
    assert written >= {".svg", ".png", ".pdf"}
    # A folder with figures in the results does not prevent later reports and runs.
    assert narrows("report", "results/demo", "--figures", "results/demo/figures")[0] == 0
    assert narrows("run", "demo.toml", *sweep)[0] == 0
    assert (tmp_path / "results/demo/figures/points.pdf").exists()
    (tmp_path / "file").write_text("")
    code, _, err = narrows("report", "results/demo", "--figures", "file")
    assert code == 2 and err.startswith("file: ") and err.count("\n") == 1


@pytest.mark.parametrize(
    ("on", "overrides", "expected"),
    [
        (On.SIM, {}, "my"),
        (On.KERNEL, {}, "my-kernel"),
        (On.SIM, {"name": "my"}, "my"),
        (On.SIM, {"seed": 5}, "my-seed=5"),
        (On.VM, {"topology.rate": "20mbit"}, "my-vm-topology.rate=20mbit"),
        (On.SIM, {"flows.0.cc": "reno", "flows.0.ecn": True}, "my-flows.0.cc=reno-flows.0.ecn=true"),
        (On.SIM, {"flows.0.name": "a-b"}, "my-flows.0.name=a-b"),
    ],
)
def test_the_default_folder_names_the_options_of_a_run(on, overrides, expected):
    assert results_folder("my", on, overrides) == Path("results") / expected


@pytest.mark.parametrize(
    "runs",
    [
        [("my", On.SIM, {"flows.0.name": name}) for name in ("\xe4", "\xf6", "", "-", "\xe4-")],
        [("my", On.SIM, {"flows.0.name": name}) for name in ("a/b", "a-b", "a b", "a:b")],
        [("my", On.SIM, {key: "reno"}) for key in ("flows.*.cc", "flows.-.cc", "flows.?.cc")],
        [("my-kernel", On.SIM, {}), ("my", On.KERNEL, {})],
        [("my-vm", On.SIM, {"seed": 5}), ("my", On.VM, {"seed": 5})],
        [("my-vm", On.KERNEL, {}), ("my-vm-kernel", On.SIM, {})],
        [("my-seed=5", On.SIM, {}), ("my", On.SIM, {"seed": 5})],
        [("my", On.SIM, {"a": "1", "b": "2"}), ("my", On.SIM, {"a": "1-b=2"})],
        [("my", On.SIM, {"a": "1", "b-c": "2"}), ("my", On.SIM, {"a": "1-b", "c": "2"})],
    ],
)
def test_runs_that_differ_have_different_folders(runs):
    folders = {results_folder(*run).name for run in runs}
    assert len(folders) == len(runs)
    assert all(re.fullmatch(r"my[\w.=-]*", name, re.ASCII) for name in folders)


def test_replaced_characters_add_a_hash_to_the_folders_name():
    folder = results_folder("my", On.SIM, {"flows.*.cc": "reno"})
    assert re.fullmatch(r"my-flows\.-\.cc=reno-[0-9a-f]{8}", folder.name)
    assert folder == results_folder("my", On.SIM, {"flows.*.cc": "reno"})


def test_long_or_nested_overrides_are_hashed_in_the_folders_name():
    tables = [{"sweep.vary": {"flows.0.cc": [cc]}} for cc in ("reno", "cubic")]
    folders = {results_folder("my", On.SIM, table).name for table in tables}
    assert len(folders) == 2
    assert all(re.fullmatch(r"my-set-[0-9a-f]{8}", name) for name in folders)
    assert len(results_folder("my", On.SIM, {"topology.trace": "x" * 500}).name) < 40


def test_overrides_do_not_replace_the_results_of_another_run(narrows):
    narrows("run", "demo.toml")
    out = narrows("run", "demo.toml", "--set", "flows.0.cc=reno")[1]
    assert out.endswith("tables in results/demo-flows.0.cc=reno\n")
    assert Results.read("results/demo").flows["cc"].to_pylist() == ["cubic", "bbr"]


def test_run_says_that_earlier_results_were_replaced(narrows):
    assert narrows("run", "demo.toml")[1].endswith("tables in results/demo\n")
    assert narrows("run", "demo.toml")[1].endswith("tables in results/demo (earlier results replaced)\n")


WHOLE = "retransmits, drops: whole run; all other figures: after the warm-up of 3 s"
OWN = (
    "goodput: while the flow is active; flows start or end at different times, so the sum may exceed "
    "the link's rate"
)


@pytest.mark.parametrize(
    ("start", "end", "differ"),
    [
        ([0.0, 0.0], [math.nan, math.nan], False),
        ([0.0, 2.9], [30.0, 30.0], False),  # both flows start within the warm-up
        ([0.0, 3.1], [30.0, 30.0], False),  # the start times differ only a little, e.g. by jitter
        ([0.0, 5.0], [30.0, 30.0], True),
        ([0.0, 5.0], [math.nan, math.nan], True),
        ([0.0, 0.0], [30.0, 12.0], True),
        ([0.0, 0.0], [math.nan, 12.0], True),
    ],
)
def test_run_says_that_figures_cover_different_times(narrows, backend, start, end, differ):
    run = backend.run

    def with_times(plan):
        output = run(plan)
        output["flows"] |= {"start_s": start, "end_s": end}
        output["links"]["dropped_packets"] += np.uint64(1)
        return output

    backend.run = with_times
    lines = narrows("run", "demo.toml")[1].splitlines()
    assert WHOLE in lines
    assert (OWN in lines) == differ


def test_figures_that_are_zero_need_no_note_about_their_time(narrows, backend):
    run = backend.run

    def without(plan):
        output = run(plan)
        output["flows"]["retransmits"] *= np.uint64(0)
        return output

    backend.run = without
    out = narrows("run", "demo.toml")[1]
    assert "whole run" not in out and OWN not in out


def test_run_says_that_seeds_have_no_effect(narrows, backend):
    run = backend.run
    backend.run = lambda plan: run(plan | {"seed": 1})
    assert "=: all seeds give the same result" in narrows("run", "demo.toml", "--seeds", "2")[1]
    assert "seeds" not in narrows("run", "demo.toml")[1]


def test_points_whose_seeds_make_no_difference_are_marked(narrows, backend):
    run = backend.run
    backend.run = lambda plan: run(plan | ({"seed": 1} if _first_cc(plan) == "reno" else {}))
    path = Path("demo.toml")
    path.write_text(path.read_text() + '[sweep]\nseeds = 2\nvary = { "flows.0.cc" = ["reno", "cubic"] }\n')
    _, out, _ = narrows("run", path)
    lines = [line for line in out.splitlines() if line.startswith(("reno", "cubic"))]
    assert len(lines) >= 4
    for line in lines:
        assert ("=" in line, "±" in line) == ((True, False) if line.startswith("reno") else (False, True))
    assert "=: all seeds of this point give the same result" in out and "± is the 95 %" in out


def _first_cc(plan):
    return plan["flows"][0]["transport"]["cc"]


TOGETHER = (
    "note: 2 flows start at the same time, so the order of their first packets can decide their shares. To "
    "start each at a random time, set start_jitter = '1ms'"
)


def test_check(narrows, tmp_path):
    code, out, _ = narrows("check", "demo.toml")
    assert code == 0
    assert out.splitlines() == ["demo.toml: 1 run of 30s, 6 nodes, 5 links, 2 flows", TOGETHER]
    (tmp_path / "link.toml").write_text(
        '[[links]]\nbetween = ["a", "b"]\nrate = "1mbit"\n[[flows]]\nfrom="a"\nto="b"'
    )
    assert narrows("check", "link.toml")[1] == "link.toml: 1 run of 30s, 2 nodes, 1 link, 1 flow\n"
    code, out, _ = narrows("check", "demo.toml", "--show")
    shown = json.loads(out)
    assert shown["scenario"]["duration"] == "30s"
    assert shown["plan"]["links"][0]["queue"]["limit"]["bytes"] == 25_000


def test_check_prints_a_plan_for_rust_programs(narrows, tmp_path):
    text = (tmp_path / "demo.toml").read_text() + '[kernel]\nforwarding = "bridge"\n'
    (tmp_path / "kernel.toml").write_text(text)
    plan = json.loads(narrows("check", "kernel.toml", "--plan", "--set", "flows.0.cc=own")[1])
    assert "kernel" not in plan and plan["flows"][0]["transport"]["cc"] == "own"
    plan["flows"][0]["transport"]["cc"] = "cubic"
    plan["duration"] = plan["warmup"] + 1_000_000_000
    assert _native.run(json.dumps(plan))["run"]["events"] > 0
    code, out, err = narrows("check", "demo.toml", "--plan", "--on", "vm")
    assert (code, out, err) == (2, "", "--plan: found --on vm, expected --on sim\n")


def test_check_takes_the_seeds_of_a_run(narrows):
    plan = json.loads(narrows("check", "demo.toml", "--seed", "7", "--show")[1])["plan"]
    assert plan["seed"] == 7
    assert narrows("check", "demo.toml", "--seeds", "3")[1].startswith("demo.toml: 3 runs of 30s")
    for command in ("check", "run"):
        code, out, err = narrows(command, "demo.toml", "--seed", "-1")
        assert (code, out) == (2, "") and err.startswith("--seed: found -1, expected ")
        code, out, err = narrows(command, "demo.toml", "--seed", str(2**63 - 1), "--seeds", "2")
        expected = f"demo.toml: seed: found 2 seeds from {2**63 - 1} on, expected none above {2**63 - 1}\n"
        assert (code, out, err) == (2, "", expected)


def test_run_says_that_no_rate_controller_answers_a_sender(narrows, tmp_path):
    note = "note: brf asks the network for its rate, but no [[rate_controllers]] of kind 'brf' exists: "
    for command in ("check", "run"):
        out = narrows(command, "demo.toml", "--set", "flows.0.cc=brf")[1]
        assert out.count("note: ") == 2 and note in out
        assert "note: brf" not in narrows(command, "demo.toml")[1]
    (tmp_path / "served.toml").write_text(
        TEXT.replace('"bbr"', '"brf-literal"') + '[[rate_controllers]]\nkind = "brf"\nlink = "bottleneck"'
    )
    assert "note: brf" not in narrows("check", "served.toml")[1]


def test_run_says_that_flows_start_together(narrows):
    for command in ("check", "run"):
        assert TOGETHER in narrows(command, "demo.toml")[1].splitlines()
        apart = narrows(command, "demo.toml", "--set", "flows.1.start=1us")[1]
        random = narrows(command, "demo.toml", "--set", "flows.1.start_jitter=1us")[1]
        assert "start at the same time" not in apart + random


MARKS = {
    "": False,
    'queue = "red"': False,
    'queue = "threshold"': True,
    'queue = { kind = "codel", ecn = true }': True,
}


@pytest.mark.parametrize("queue", MARKS)
def test_run_says_that_no_queue_marks_for_dctcp(narrows, tmp_path, backend, queue):
    backend.congestion_controllers = lambda: [("cubic", "c"), ("dctcp", "d")]
    text = TEXT.replace('"bbr"', '"dctcp"').replace('rtt = "20ms"', f'rtt = "20ms"\n{queue}')
    (tmp_path / "marked.toml").write_text(text)
    why = "no queue marks (kind 'threshold', or ecn = true): the results show Reno"
    note = f"note: dctcp reacts to ECN marks, but {why}"
    for command in ("check", "run"):
        out = narrows(command, "marked.toml")[1]
        assert (note in out.splitlines()) == (not MARKS[queue]) == ("note: dctcp" in out)


def of(words, scenario):
    """The notes with these words."""
    return [note for note in notes(expand(scenario)) if words in note]


def test_a_queue_anywhere_that_marks_is_enough(tmp_path):
    link = '[[links]]\nbetween = ["{}", "{}"]\nrate = "9mbit"\nqueue = "100p"\n'
    text = link.format("a", "b") + link.format("b", "c") + '[[flows]]\nfrom = "a"\nto = "c"\ncc = "dctcp"\n'
    (tmp_path / "x.toml").write_text(text)
    assert len(of("reacts to ECN marks", load(tmp_path / "x.toml"))) == 1
    marking = {"links.1.back": {"queue": {"kind": "red", "ecn": True}}}
    assert not of("reacts to ECN marks", load(tmp_path / "x.toml", marking))


@pytest.mark.parametrize(
    ("controller", "answered"),
    [
        ('kind = "rcp"\nparams = { signal = "ack" }', {"brf"}),
        ('kind = "rcp"', {"rcp"}),
        ('kind = "bdr"\nparams = { signal = "ack" }', {"brf"}),
        ('kind = "pacec"\nparams = { signal = "in-band" }', {"brf"}),
        ('kind = "pacec"', {"pacec"}),
    ],
)
def test_rates_in_acks_are_answers_to_brf_senders(tmp_path, controller, answered):
    more = f'[[rate_controllers]]\n{controller}\nlink = "bottleneck"\n[sdn]\n'
    for cc in ("brf", "rcp", "pacec"):
        (tmp_path / "served.toml").write_text(TEXT.replace('"bbr"', f'"{cc}"') + more)
        assert (not of("asks the network", load(tmp_path / "served.toml"))) == (cc in answered)


def test_no_scenario_of_the_project_asks_in_vain():
    paths = sorted(SCENARIOS.glob("*.toml"))
    assert paths and not [path.name for path in paths if of("asks the network", load(path))]


def test_the_matrix_knows_the_same_controllers_that_need_the_network():
    needed = {name: row.service.kind for name, row, _ in congestion.names() if row.service is not None}
    assert {name: more["rate_controllers"][0]["kind"] for name, more in helped().items()} == needed


def test_list(narrows):
    code, out, _ = narrows("list")
    assert code == 0
    for name in ("cubic", "brf", "fq-codel", "parking-lot", "gilbert-elliott"):
        assert name in out
    assert "named" not in out.split(), "published networks have no kind"


def test_list_and_check_print_json(narrows):
    queues = json.loads(narrows("list", "queues", "--json")[1])
    assert list(queues) == ["queues"]
    assert {"name", "summary"} == set(queues["queues"][0])
    everything = json.loads(narrows("list", "--json")[1])
    assert list(everything) == list(listing.KINDS)
    assert {"name": "brf", "summary": "f", "family": "by the network"} in everything["congestion"]
    code, out, _ = narrows("check", "demo.toml", "--set", "flows.0.cc=brf", "--json")
    told = json.loads(out)
    assert code == 0
    assert len(told.pop("notes")) == 2
    assert told == {
        "scenario": "demo.toml",
        "runs": 1,
        "duration_s": 30.0,
        "nodes": 6,
        "links": 5,
        "flows": 2,
    }


@pytest.mark.parametrize("value", ["1", "1.0", '"1"'])
def test_a_bare_loss_of_one_is_refused(narrows, value):
    code, out, err = narrows("check", "demo.toml", "--set", f"topology.loss={value}")
    assert (code, out) == (2, "")
    assert err.startswith("demo.toml: topology.loss: found ")
    assert err.endswith("expected a loss such as '1%' or 0.01 ('100%' loses every packet)\n")
    assert narrows("check", "demo.toml", "--set", "topology.loss=100%")[0] == 0
    assert narrows("check", "demo.toml", "--set", "topology.loss=0.01")[0] == 0


def test_flows_have_their_names_in_results_as_keys(narrows, tmp_path):
    path = tmp_path / "many.toml"
    path.write_text(TEXT + '[[flows]]\ncc = "bbr"\n[[flows]]\nname = "mine"\n')
    keys = ("flows.cubic.cc=reno", "flows.bbr-2.mss=1000", "flows.mine.ecn=true")
    words = [word for key in keys for word in ("--set", key)]
    shown = json.loads(narrows("check", path, "--show", *words)[1])["scenario"]["flows"]
    assert [flow["cc"] for flow in shown] == ["reno", "bbr", "bbr", "cubic"]
    assert [flow["mss"] for flow in shown] == [1448, 1448, 1000, 1448]
    assert [flow["ecn"] for flow in shown] == [False, False, False, True]
    err = narrows("check", path, "--set", "flows.bbr.cc=reno")[2]
    assert "flows.bbr: found 'bbr', expected an entry from 0 to 3; nearest is 'bbr-2'\n" in err


def test_the_reference_does_not_call_the_name_of_a_file_scenario():
    assert "| `name` | name | the file's stem |" in schema.markdown()
    assert "default" not in json.loads(schema.text())["properties"]["name"]


def test_list_puts_linuxs_controllers_first_and_each_on_a_line_when_piped(narrows, monkeypatch):
    known = [("bbr3", "v3 " * 30), ("reno", "Reno " * 30), ("xcp", "XCP"), ("yeah", "YeAH")]
    monkeypatch.setitem(listing.KINDS, "congestion", lambda: known)
    lines = [line.split()[0] for line in narrows("list", "congestion")[1].splitlines()]
    assert lines == ["as", "reno", "yeah", "beyond", "bbr3", "by", "xcp"]


def test_the_schema_in_the_package_is_the_models(narrows):
    code, out, _ = narrows("schema")
    assert code == 0
    assert out == schema.FILE.read_text(encoding="utf-8"), (
        "run: narrows schema > python/narrows/scenario/schema.json"
    )


def test_options_have_the_limits_of_scenarios():
    keys = json.loads(schema.text())
    assert keys["properties"]["seed"]["maximum"] == limits.MAX_SEED
    assert keys["$defs"]["Sweep"]["properties"]["seeds"]["maximum"] == limits.MAX_SEEDS


def test_the_list_of_measures_shows_the_possible_values_of_an_argument(narrows):
    code, out, _ = narrows("list", "measures")
    assert code == 0
    assert 'statistic = "mean" (mean|p50|p95|p99|max), flows = "*"' in out
    assert 'of = "rewrites" (rewrites|messages)' in out
