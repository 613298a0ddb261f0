"""Progress of runs: simulated time, time left, and the bar on a terminal."""

import contextlib
import io
import json
import math
import os
import pty
import re
import signal
import subprocess
import sys
import threading
import time

import pytest
from narrows import sweep
from narrows.backends import Pace
from narrows.cli.progress import Events, Lines, progress_of, simulated
from narrows.results import segments
from narrows.results.results import Results
from narrows.scenario.load import loads

native = pytest.importorskip("narrows._native")
SCENARIO = """
duration = "DURATION"
[topology]
kind = "dumbbell"
rate = "100mbit"
rtt = "20ms"
[[flows]]
"""


def scenario(duration):
    return loads(SCENARIO.replace("DURATION", duration), "a.toml")


@pytest.mark.parametrize(
    ("passed_s", "whole_s", "left_s", "text"),
    [
        (12.0, 60.0, 8.0, "12.0 of 60.0 s simulated, 8 s left"),
        (0.0, 60.0, None, "0.0 of 60.0 s simulated"),
        (59.96, 60.0, 0.2, "60.0 of 60.0 s simulated, 1 s left"),
        (60.0, 60.0, 0.0, "60.0 of 60.0 s simulated, 0 s left"),
        (1.0, 900.0, 59.5, "1.0 of 900.0 s simulated, 1 min 0 s left"),
        (1.0, 900.0, 754.0, "1.0 of 900.0 s simulated, 12 min 34 s left"),
        (0.5, 0.5e6, 7322.0, "0.5 of 500000.0 s simulated, 2 h 2 min left"),
    ],
)
def test_the_line_of_a_run_has_simulated_time_and_time_left(passed_s, whole_s, left_s, text):
    assert simulated(passed_s, whole_s, left_s) == text


class Terminal(io.StringIO):
    def isatty(self):
        return True


@contextlib.contextmanager
def shown(monkeypatch, duration_s):
    """A bar, and its updates."""
    monkeypatch.setattr(sys, "stderr", Terminal())
    with progress_of("demo", int(duration_s * 1e9)) as bar:
        updates = []
        real = bar.bar.update

        def update(task, **values):
            updates.append(values)
            real(task, **values)

        monkeypatch.setattr(bar.bar, "update", update)
        yield bar, updates


def completed(updates):
    return [values["completed"] for values in updates if "completed" in values]


def states(updates):
    return [values["state"] for values in updates if "state" in values]


def test_a_bar_never_moves_back_and_ends_at_the_duration(monkeypatch):
    with shown(monkeypatch, 60) as (bar, updates):
        for seconds in (
            0.0,
            12.0,
            30.0,
            60.0,
            0.0,
        ):  # the run has ended, and its tables are being written
            bar.clock(Pace(seconds, 0), 1)
        bar(1, 1)
    assert completed(updates) == [0.0, 12.0, 30.0, 60.0, 60.0, 60.0]
    assert states(updates)[0] == "0.0 of 60.0 s simulated"
    assert re.fullmatch(r"30\.0 of 60\.0 s simulated, \d+ s left", states(updates)[2])


def test_a_bar_of_a_sweep_counts_runs(monkeypatch):
    with shown(monkeypatch, 10) as (bar, updates):
        bar.clock(Pace(8.0, 0), 3)
        bar(1, 3)
        bar.clock(Pace(9.0, 0), 3)
    assert completed(updates) == [8.0, 10.0, 19.0]
    assert states(updates) == ["0 of 3 runs", "1 of 3 runs", "1 of 3 runs"]


def test_a_bar_without_a_clock_pulses(monkeypatch):
    with shown(monkeypatch, 10) as (bar, updates):
        bar(0, 1)
    assert updates == [{"total": None, "state": "10 s to simulate"}]


def test_without_a_terminal_a_single_run_prints_nothing(monkeypatch, capsys):
    with progress_of("demo", 10) as progress:
        assert isinstance(progress, Lines)
        progress.clock(Pace(1.0, 1000), 1)
        progress(1, 1)
    assert capsys.readouterr().err == ""


def test_without_a_terminal_a_long_run_prints_a_line_a_minute(monkeypatch, capsys):
    now = 100.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress_of("demo", 100_000_000_000) as progress:
        for _ in range(150):
            now += 1.0
            progress.clock(Pace((now - 100) / 4, int(now - 100) * 2_000_000), 1)
    assert capsys.readouterr().err.splitlines() == [
        "demo: 15.0 of 100.0 s simulated, 2 M events/s, 5 min 40 s left",
        "demo: 30.0 of 100.0 s simulated, 2 M events/s, 4 min 40 s left",
    ]


def test_the_time_left_does_not_count_kept_runs(monkeypatch, capsys):
    now = 0.0
    monkeypatch.setattr(time, "monotonic", lambda: now)
    with progress_of("demo", 1_000_000_000) as progress:
        progress(900, 1000)
        progress.clock(Pace(0.0, 0), 1000)
        now = 60.0
        progress(910, 1000)
        capsys.readouterr()
        now = 120.0
        progress(920, 1000)
        now = 180.0
        progress.clock(Pace(0.0, 0), 1000)
    assert capsys.readouterr().err.endswith(" 12 min 0 s left\n")


def test_the_rate_of_events_goes_on_if_a_run_ends():
    events = Events()
    for second, active in enumerate([0, 100, 200, 60, 160, 260]):
        events(active, float(second))
    assert events.rate == 400 / 5


def test_the_clock_of_a_run_is_monotone_and_ends_at_the_duration():
    backend = sweep.simulator()
    plan = sweep.Resolver(backend)(scenario("40s"))
    plan.pop("kernel", None)
    monitor, seen = native.Monitor(), []
    run = threading.Thread(target=native.run, args=(json.dumps(plan),), kwargs={"monitor": monitor})
    assert monitor.nanos() == monitor.events() == 0
    run.start()
    while run.is_alive():
        seen.append((monitor.nanos(), monitor.events()))
    assert seen == sorted(seen)
    assert monitor.nanos() == 40_000_000_000 and monitor.events() > 10_000


def test_the_simulator_reports_the_time_of_active_runs_only():
    backend, seen, stop = sweep.simulator(), [], threading.Event()

    def clock(pace, total):
        seen.append((pace.seconds, total))
        if pace.events > 0:
            stop.set()
            backend.cancel()

    with pytest.raises(KeyboardInterrupt):
        sweep.run(scenario("1000000s"), backend=backend, clock=clock)
    assert stop.is_set()
    assert [seconds for seconds, _ in seen] == sorted(seconds for seconds, _ in seen)
    assert {total for _, total in seen} == {1}
    assert backend.pace() == Pace(0, 0)


def test_an_interrupted_run_leaves_what_it_has_so_far(tmp_path):
    def clock(pace, total):
        if pace.seconds > 2:
            raise KeyboardInterrupt

    with pytest.raises(sweep.Interrupted) as caught:
        sweep.run(scenario("1000000s"), out=tmp_path / "long", clock=clock)
    assert caught.value.done == 0 and not (tmp_path / "long").exists()
    stopped = Results.read(tmp_path / "long-stopped")
    end = stopped.metadata["stopped_s"]["0"]
    assert end > 2 and len(stopped.flows) > 0
    whole = sweep.run(scenario(f"{round(end * 1e9)}ns"), out=tmp_path / "short")
    for name in ("flow_samples", "link_samples", "events"):
        # The tables are compared as text, because NaN does not equal NaN.
        assert repr(stopped.table(name).to_pydict()) == repr(whole.table(name).to_pydict()), name
    # The run was stopped before the default warm-up ended.
    assert all(map(math.isnan, stopped.flows["goodput_bps"].to_pylist()))
    assert all(map(math.isnan, stopped.links["utilisation"].to_pylist()))


def test_a_sweep_into_the_current_folder_can_be_interrupted(tmp_path, monkeypatch):
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")

    def clock(pace, total):
        if pace.events > 0:
            raise KeyboardInterrupt

    with pytest.raises(sweep.Interrupted) as caught:
        sweep.run(scenario("1000000s"), out=".", clock=clock)
    assert caught.value.stopped.folder == tmp_path / "here-stopped"


def test_results_of_stopped_runs_do_not_replace_other_results(tmp_path):
    other = sweep.run(scenario("3s"), out=tmp_path / "x-stopped").flows

    def clock(pace, total):
        if pace.events > 0:
            raise KeyboardInterrupt

    backend = sweep.simulator()
    for _ in range(2):  # a simulator can run again after an interruption
        with pytest.raises(sweep.Interrupted) as caught:
            sweep.run(scenario("1000000s"), out=tmp_path / "x", backend=backend, clock=clock)
        assert caught.value.stopped.folder == tmp_path / "x-stopped-2"
    assert repr(Results.read(tmp_path / "x-stopped").flows.to_pydict()) == repr(other.to_pydict())
    assert len(sweep.run(scenario("1s"), backend=backend).flows) > 0


def test_an_interruption_reports_that_partial_results_cannot_be_written(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    def clock(pace, total):
        if pace.events > 0:
            monkeypatch.setattr(segments, "put", full)
            raise KeyboardInterrupt

    with pytest.raises(sweep.Interrupted) as caught:
        sweep.run(scenario("1000000s"), out=tmp_path / "x", clock=clock)
    assert caught.value.stopped is None and "No space left on device" in caught.value.problem
    assert list(tmp_path.iterdir()) == []


def test_an_interrupted_sweep_separates_finished_from_stopped_runs(tmp_path):
    text = SCENARIO.replace("DURATION", "3s") + '[sweep.vary]\nduration = ["2s", "1000000s"]\n'

    def clock(pace, total):
        if pace.seconds > 3:
            raise KeyboardInterrupt

    with pytest.raises(sweep.Interrupted) as caught:
        sweep.run(loads(text), out=tmp_path / "out", clock=clock, jobs=1)
    assert caught.value.done == 1
    assert Results.read(tmp_path / "out").runs["run"].to_pylist() == [0]
    assert Results.read(tmp_path / "out-stopped").runs["run"].to_pylist() == [1]


def test_a_terminal_shows_simulated_time_and_time_left_until_an_interruption(tmp_path):
    (tmp_path / "long.toml").write_text(SCENARIO.replace("DURATION", "1000000s"))
    terminal, end = pty.openpty()
    command = subprocess.Popen(
        [sys.executable, "-m", "narrows", "run", "long.toml", "--out", "out"],
        cwd=tmp_path,
        stdout=subprocess.DEVNULL,
        stderr=end,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(end)
    text = ""
    expected = re.compile(
        r"(\d+\.\d) of 1000000\.0 s simulated, [\d.]+ M events/s, \d+ (h|min|s)( \d+ (min|s))? left"
    )
    try:
        while not expected.search(text):
            text += os.read(terminal, 4096).decode()
        assert float(expected.search(text)[1]) > 0
        command.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the terminal closes when the command ends
            while part := os.read(terminal, 4096):
                text += part.decode()
        assert command.wait() == 130
    finally:
        command.kill()
        command.wait()
        os.close(terminal)
    assert "interrupted: 0 of 1 runs finished" in text
    assert re.search(
        r"the active run was stopped after \d+\.\d s of simulated time; results so far: out-stopped", text
    )
    assert len(Results.read(tmp_path / "out-stopped").flows) > 0
