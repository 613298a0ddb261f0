"""Progress of runs: simulated time, time left, and the bar on a terminal."""

import contextlib
import io
import json
import os
import pty
import re
import signal
import subprocess
import sys
import threading

import pytest
from narrows import sweep
from narrows.cli.progress import Lines, progress_of, simulated
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
    """A bar, and the updates that it made."""
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
        ):  # the run has left the clock, and its tables are being written
            bar.clock(seconds, 1)
        bar(1, 1)
    assert completed(updates) == [0.0, 12.0, 30.0, 60.0, 60.0, 60.0]
    assert states(updates)[0] == "0.0 of 60.0 s simulated"
    assert re.fullmatch(r"30\.0 of 60\.0 s simulated, \d+ s left", states(updates)[2])


def test_a_bar_of_a_sweep_counts_runs(monkeypatch):
    with shown(monkeypatch, 10) as (bar, updates):
        bar.clock(8.0, 3)
        bar(1, 3)
        bar.clock(9.0, 3)
    assert completed(updates) == [8.0, 10.0, 19.0]
    assert states(updates) == ["0 of 3 runs", "1 of 3 runs", "1 of 3 runs"]


def test_a_bar_without_a_clock_pulses(monkeypatch):
    with shown(monkeypatch, 10) as (bar, updates):
        bar(0, 1)
    assert updates == [{"total": None, "state": "10 s to simulate"}]


def test_without_a_terminal_a_single_run_prints_nothing(monkeypatch, capsys):
    with progress_of("demo", 10) as progress:
        assert isinstance(progress, Lines)
        assert progress.clock is None
        progress(1, 1)
    assert capsys.readouterr().err == ""


def test_the_clock_of_a_run_is_monotone_and_ends_at_the_duration():
    backend = sweep.simulator()
    plan = sweep.Resolver(backend)(scenario("40s"))
    plan.pop("kernel", None)
    clock, seen = native.Clock(), []
    run = threading.Thread(target=native.run, args=(json.dumps(plan),), kwargs={"clock": clock})
    assert clock.nanos() == 0
    run.start()
    while run.is_alive():
        seen.append(clock.nanos())
    assert seen == sorted(seen)
    assert clock.nanos() == 40_000_000_000


def test_the_simulator_reports_the_time_of_active_runs_only():
    backend, seen, stop = sweep.simulator(), [], threading.Event()

    def clock(seconds, total):
        seen.append((seconds, total))
        if seconds > 0:
            stop.set()
            backend.cancel()

    with pytest.raises(KeyboardInterrupt):
        sweep.run(scenario("1000000s"), backend=backend, clock=clock)
    assert stop.is_set()
    assert [seconds for seconds, _ in seen] == sorted(seconds for seconds, _ in seen)
    assert {total for _, total in seen} == {1}
    assert backend.active_seconds() == 0


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
    expected = re.compile(r"(\d+\.\d) of 1000000\.0 s simulated, \d+ (h|min|s)( \d+ (min|s))? left")
    try:
        while not expected.search(text):
            text += os.read(terminal, 4096).decode()
        assert float(expected.search(text)[1]) > 0
        command.send_signal(signal.SIGINT)
        with contextlib.suppress(OSError):  # the terminal closes with the command
            while part := os.read(terminal, 4096):
                text += part.decode()
        assert command.wait() == 130
    finally:
        command.kill()
        command.wait()
        os.close(terminal)
    assert "interrupted: 0 of 1 runs finished" in text
