"""Parts of the soak that need no network: options, schedule of faults, and judgement of goodput."""

from __future__ import annotations

import runpy
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

sys.path.append(str(Path(__file__).parents[2] / "tools/soak"))

from fairness import RECENT_S, SETTLED_S, WINDOW_S, Disturbance, Sample, judge
from faults import Faults, agent_at, is_without_interface
from programs import Program
from result import Result
from schedule import AGENTS, KINDS, LINKS, REST_S, Fault, schedule

MAIN = Path(__file__).parents[2] / "tools/soak/__main__.py"
CAPACITY_BPS = 80e6
FAIR = CAPACITY_BPS / 8 / 2
STEP_S = 0.25


def samples(seconds, goodput):
    """The receiver's samples of two flows. `goodput(flow, at_s)` is relative to the fair share."""
    received, found = {1: 0, 2: 0}, []
    for step in range(int(seconds / STEP_S) + 1):
        at_s = step * STEP_S
        found.append(Sample(at_s, 2, dict(received), {1: 0.0, 2: 10.0}))
        for flow in received:
            received[flow] += int(goodput(flow, at_s) * FAIR * STEP_S)
    return found


def judged(found, *faults):
    """The worst figures of rated connections and of orphans, and the number of stalls."""
    figures = judge(found, [Disturbance(0, 0, "the start"), *faults], (1, 2), CAPACITY_BPS)
    return figures.rated, figures.orphans, figures.stalls


def test_a_seed_determines_the_faults():
    assert list(schedule(1, 600, 8)) == list(schedule(1, 600, 8))
    assert list(schedule(1, 600, 8)) != list(schedule(2, 600, 8))


def test_an_hour_has_every_kind_of_fault_on_every_target():
    caused = {(fault.kind.name, fault.target) for fault in schedule(1, 3600, 8)}
    assert caused == {(kind.name, target) for kind in KINDS for target in kind.targets}


def test_a_target_has_one_fault_at_a_time():
    free_s = {}
    for fault in schedule(3, 3600, 2):
        assert fault.at_s >= free_s.get(fault.target, 0)
        free_s[fault.target] = fault.at_s + fault.lasts_s + REST_S


def test_only_a_deleted_link_excuses_an_agent_that_ends():
    at_links = [
        Fault(0, kind, target, 1) for kind in KINDS for target in kind.targets if kind.targets == LINKS
    ]
    excused = {(str(fault), agent_at(fault)) for fault in at_links if agent_at(fault)}
    assert excused == {
        ("link deleted s1", "sender-s1"),
        ("link deleted s2", "sender-s2"),
        ("link deleted c", "switch"),
    }
    assert {agent for _, agent in excused} == set(AGENTS)


@pytest.mark.parametrize(
    ("log", "is_excuse"),
    [
        ("narrows-agent: interfaces: no network interface is called `r`; see `ip link`", True),
        ("narrows-agent: no interface c; `ip link` lists the existing ones", True),
        ("narrows-agent: attaching to an interface (tcx): No such device (os error 19); Linux 6.6", True),
        ('WARN event="interface-gone" interface="r" its packets are not marked', False),
        ("thread 'main' panicked at src/host/links.rs:1", False),
        ("", False),
    ],
)
def test_an_agent_that_ends_must_say_that_its_interface_is_missing(log, is_excuse, tmp_path):
    """The message excuses the end only if the interface was deleted.

    The logs of earlier starts are ignored.
    """
    assert is_without_interface(log) == is_excuse
    (kind,) = (kind for kind in KINDS if kind.name == "link deleted")
    for is_deleted, is_earlier in [(True, False), (True, True), (False, False)]:
        path = tmp_path / f"{is_deleted}{is_earlier}.log"
        path.write_text(log if is_earlier else "an earlier start\n")
        words = ["true"] if is_earlier else ["sh", "-c", 'echo "$0" >> "$1"', log, str(path)]
        program = Program("sender-s1", lambda words=words: subprocess.Popen(words), path, lambda: True)
        programs = SimpleNamespace(deployed={program.name: program}, traffic={})
        faults = Faults(None, programs, 1, Result())
        if is_deleted:
            faults._just_ended.append(Fault(0, kind, "s1", 1))
        program.start()
        program.process.wait()
        faults._find_ended()
        program.process.wait()
        assert program.starts == 2
        is_excused = is_excuse and is_deleted and not is_earlier
        assert bool(faults.result.failures) != is_excused, (is_deleted, is_earlier)


def test_equal_flows_have_their_share_in_every_window():
    figures, _, _ = judged(samples(30, lambda flow, at_s: 1))
    assert figures.least == 1 and figures.longest_s == 0
    assert figures.windows == 2 * (1 + (30 - SETTLED_S - WINDOW_S) / STEP_S)


def test_a_starved_flow_is_found_in_windows_without_faults():
    figures, _, _ = judged(samples(30, lambda flow, at_s: 0.1 if flow == 2 and 15 <= at_s < 22 else 1))
    assert figures.least == pytest.approx(0.1, abs=1e-3) and "flow 2" in figures.least_where
    assert figures.longest_s == pytest.approx(7, abs=1)


def test_time_below_half_counts_from_the_end_of_a_fault():
    starved = samples(60, lambda flow, at_s: 0 if 20 <= at_s < 30 else 1)
    figures, _, _ = judged(starved, Disturbance(20, 26, "kill switch"))
    assert figures.least == 1, "windows with a fault are not judged"
    assert figures.longest_s == pytest.approx(4, abs=1)
    assert "after kill switch" in figures.longest_where


def test_a_new_fault_restarts_the_time_below_half():
    starved = samples(60, lambda flow, at_s: 0 if 20 <= at_s < 30 else 1)
    figures, _, _ = judged(starved, Disturbance(20, 21, "pause switch"), Disturbance(25, 28, "kill switch"))
    assert figures.longest_s == pytest.approx(4, abs=1)


def test_nothing_is_judged_while_the_receiver_is_not_scheduled():
    paused = samples(30, lambda flow, at_s: 0 if 12 <= at_s < 16 else 1)
    assert judged(paused)[0].least < 0.5
    figures, _, stalls = judged([one for one in paused if not 12 < one.at_s < 16])
    assert (stalls, figures.least) == (1, 1) and figures.longest_s < RECENT_S


def test_connections_older_than_their_agent_are_judged_separately():
    uneven = samples(30, lambda flow, at_s: 0.3 if at_s >= 12 else 1)
    rated, orphans, _ = judged(uneven, Disturbance(4, 5, "kill sender", frozenset((1, 2))))
    assert "flow 2" in rated.least_where and "flow 1" in orphans.least_where
    assert orphans.least == rated.least == pytest.approx(0.3, abs=1e-3)
    rated, orphans, _ = judged(uneven, Disturbance(4, 5, "pause sender"))
    assert orphans.windows == 0


@pytest.mark.parametrize(
    "words",
    [
        ("--minutes", "0"),
        ("--minutes", "inf"),
        ("--minutes", "three"),
        ("--every", "-1"),
        ("--seed", "1.5"),
        ("--keep", "full"),
        ("--keep", "full/log"),
    ],
)
def test_a_wrong_option_costs_one_line(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    Path("full").mkdir()
    Path("full/log").touch()
    with pytest.raises(SystemExit) as stop:
        runpy.run_path(str(MAIN))["parsed"](words)
    assert stop.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert words[0] in line and words[1] in line
