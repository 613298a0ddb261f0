"""With `--cache`, a run whose output is in the cache is not repeated, and its tables are the same."""

import json
import math
import os
import random
import signal
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import pytest
from narrows import _native, sweep
from narrows.backends.sim import Simulator
from narrows.cache import Cache, Cached, cached
from narrows.cache import backend as cached_backend
from narrows.cache import entries as entry_files
from narrows.errors import NarrowsError, OutputError
from narrows.executors.local import Processes
from narrows.scenario.load import expand, loads
from narrows.sweep import Resolver
from test_sweep import files

TEXT = """
name = "kept"
duration = "2s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
[[flows]]
cc = "cubic"
[[flows]]
cc = "bbr"
[probes]
traces = true
[sweep]
seeds = 3
[sweep.vary]
"topology.queue" = ["1bdp", "2bdp"]
"""


def point(text=TEXT):
    return Resolver(Simulator())(expand(loads(text), 1)[0].point)


def entries(folder):
    return sorted(entry.path for entry in Cache(folder).entries())


def run(out, cache, **options):
    backend = cached(cache)
    sweep.run(loads(TEXT), out=out, backend=backend, **options)
    return backend.found


def test_tables_with_and_without_a_cache_are_equal_byte_for_byte(tmp_path):
    sweep.run(loads(TEXT), out=tmp_path / "plain")
    assert run(tmp_path / "first", tmp_path / "cache") == 0
    assert run(tmp_path / "again", tmp_path / "cache") == 6
    assert files(tmp_path / "first") == files(tmp_path / "plain")
    assert files(tmp_path / "again") == files(tmp_path / "plain")


def test_another_sweep_takes_only_the_runs_that_it_shares(tmp_path):
    run(tmp_path / "first", tmp_path / "cache")
    backend = cached(tmp_path / "cache")
    wider = loads(TEXT.replace('["1bdp", "2bdp"]', '["2bdp", "3bdp", "1bdp"]').replace("kept", "wider"))
    sweep.run(wider, out=tmp_path / "wider", backend=backend)
    assert backend.found == 6
    sweep.run(wider, out=tmp_path / "plain")
    assert files(tmp_path / "wider") == files(tmp_path / "plain")


def test_workers_in_other_processes_share_the_cache(tmp_path):
    run(tmp_path / "first", tmp_path / "cache", executor=Processes(2))
    assert len(entries(tmp_path / "cache")) == 6
    assert run(tmp_path / "again", tmp_path / "cache") == 6
    assert files(tmp_path / "again") == files(tmp_path / "first")


@pytest.mark.parametrize(
    "change",
    [
        lambda plan: plan | {"seed": plan["seed"] + 1},
        lambda plan: plan | {"duration": plan["duration"] + 1},
        lambda plan: plan | {"links": [plan["links"][0] | {"delay": [[0, 1]]}, *plan["links"][1:]]},
    ],
)
def test_every_part_of_a_plan_is_in_the_key(change):
    plan = point()
    assert cached_backend.key_of(plan) == cached_backend.key_of(dict(plan))
    assert cached_backend.key_of(change(plan)) != cached_backend.key_of(plan)


def test_another_behaviour_has_other_keys(monkeypatch):
    before = cached_backend.key_of(point())
    monkeypatch.setattr(_native, "behaviour", _native.behaviour + 1)
    cached_backend._behaviour.cache_clear()
    changed = cached_backend.key_of(point())
    monkeypatch.undo()
    cached_backend._behaviour.cache_clear()
    assert changed != before == cached_backend.key_of(point())


class Fixed:
    def on_ack(self, ack, window):
        window.cwnd = 10

    def on_congestion(self, event, window):
        pass


def test_runs_with_a_class_are_not_kept(tmp_path):
    backend = Cached(Simulator({"cubic": Fixed}), Cache(tmp_path))
    plan = point()
    assert backend.run(plan)["run"] != Simulator().run(plan)["run"]
    assert entries(tmp_path) == []
    reno = point(TEXT.replace("cubic", "reno"))
    backend.run(reno)
    assert len(entries(tmp_path)) == 1


@pytest.mark.parametrize("damage", ["empty", "cut", "flipped", "other"])
def test_a_damaged_entry_counts_as_absent_and_is_replaced(tmp_path, damage):
    plan = point()
    backend = cached(tmp_path)
    whole = backend.run(plan)
    (path,) = entries(tmp_path)
    content = path.read_bytes()
    middle = len(content) // 2
    path.write_bytes(
        {
            "empty": b"",
            "cut": content[:-1],
            "flipped": content[:middle] + bytes([content[middle] ^ 1]) + content[middle + 1 :],
            "other": b"not an entry",
        }[damage]
    )
    assert Cache(tmp_path).get(cached_backend.key_of(plan)) is None
    assert backend.run(plan)["run"] == whole["run"] and backend.found == 0
    assert path.read_bytes() == content


WRITER = """
import sys
from pathlib import Path
from narrows.cache import Cache
cache, output = Cache(Path(sys.argv[1])), {"run": {"events": 1}, "flows": {"name": ["a"] * 200_000}}
number = 0
while True:
    cache.put(f"{number % 256:02x}{number:062x}", output)
    number += 1
    print(number, flush=True)
"""


def test_killed_writers_leave_no_broken_entry(tmp_path):
    draw = random.Random(5)
    for _ in range(4):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE, text=True
        ) as writer:
            writer.stdout.readline()
            time.sleep(draw.uniform(0, 0.05))
            writer.send_signal(signal.SIGKILL)
    kept = entries(tmp_path)
    assert kept
    for path in kept:
        assert Cache(tmp_path).get(path.parent.name + path.stem)["flows"]["name"] == ["a"] * 200_000


def test_a_cache_that_cannot_be_written_does_not_end_the_sweep(tmp_path, monkeypatch):
    backend = cached(tmp_path / "cache")

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Cache, "put", full)
    sweep.run(loads(TEXT), out=tmp_path / "out", backend=backend)
    problem = "cannot be written (No space left on device); free some space and run again"
    assert backend.problem == f"{tmp_path / 'cache'}: {problem}"


def test_a_stopped_simulator_reads_no_entry(tmp_path):
    backend = cached(tmp_path)
    backend.run(point())
    backend.stop()
    with pytest.raises(KeyboardInterrupt):
        backend.run(point())
    backend.begin()
    assert backend.run(point())["run"] and backend.found == 1


@pytest.mark.parametrize(
    "body",
    [
        [],
        {"run": 5, "tables": {}, "plain_bytes": 0},
        {"run": {}, "tables": [], "plain_bytes": 0},
        {"run": {}, "tables": {}, "plain_bytes": -1},
        {"run": {}, "tables": {}, "plain_bytes": 1 << 50},
        {"run": {}, "tables": {}, "plain_bytes": 0, "later": 1},
        {"run": {}, "tables": {"flows": [["name", "x9", 8]]}, "plain_bytes": 0},
    ],
)
def test_an_entry_of_another_program_counts_as_absent(tmp_path, body):
    cache, key = Cache(tmp_path), "ab" + "0" * 62
    text = json.dumps(body).encode()
    content = len(text).to_bytes(4, "big") + text + entry_files._CODEC.compress(b"", asbytes=True)
    (tmp_path / "ab").mkdir()
    path = tmp_path / "ab" / ("0" * 62 + ".run")
    path.write_bytes(entry_files._MAGIC + entry_files._checksum(key, content) + content)
    assert cache.get(key) is None


def test_an_entry_belongs_to_its_key(tmp_path):
    cache = kept_runs(tmp_path, 1)
    here, there = (tmp_path / "00" / f"{digit * 62}.run" for digit in "01")
    here.rename(there)
    assert cache.get("00" + "1" * 62) is None


def test_a_module_that_was_built_after_the_start_is_refused(tmp_path, monkeypatch):
    cached_backend._behaviour.cache_clear()
    monkeypatch.setattr("narrows.backends.sim.LOADED_S", 0.0)
    with pytest.raises(NarrowsError, match="expected the one loaded at startup; restart the program"):
        cached(tmp_path).run(point())


def test_many_processes_may_create_a_cache(tmp_path):
    for number in range(30):
        with ThreadPoolExecutor(4) as pool:
            assert len(list(pool.map(Cache, [tmp_path / str(number)] * 4))) == 4


def test_the_cache_of_another_program_is_refused(tmp_path):
    (tmp_path / "CACHEDIR.TAG").write_text("Signature: 8a477f597d28d172789f06886806bc55\n# by cargo\n")
    with pytest.raises(OutputError, match="expected an empty folder or a cache"):
        Cache(tmp_path)


def test_pruning_removes_only_entries(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    cache = kept_runs(tmp_path / "cache", 2)
    (elsewhere / ("0" * 62 + ".run")).write_text("mine")
    (cache.folder / "cd").symlink_to(elsewhere)
    (cache.folder / "00" / "data.run").write_text("mine")
    (cache.folder / "01" / ("0" * 62 + ".run")).write_bytes(b"")  # an empty file, as after a power failure
    assert len(cache.prune(unused_s=-math.inf)) == 2
    assert (cache.folder / "00" / "data.run").exists() and len(list(elsewhere.iterdir())) == 1


def kept_runs(folder, count):
    cache = Cache(folder)
    for number in range(count):
        cache.put(f"{number:02x}" + "0" * 62, {"run": {}, "flows": {"name": [str(number)] * 100}})
        path = cache.folder / f"{number:02x}" / ("0" * 62 + ".run")
        os.utime(path, (1e9 + number, 1e9 + number))
    return cache


def test_pruning_keeps_the_runs_that_were_used_last(tmp_path):
    cache = kept_runs(tmp_path, 5)
    each = max(entry.size_bytes for entry in cache.entries())
    cache.get("00" + "0" * 62)
    removed = cache.prune(most_bytes=2 * each)
    assert sorted(entry.path.parent.name for entry in removed) == ["01", "02", "03"]
    assert {entry.path.parent.name for entry in cache.entries()} == {"00", "04"}
    assert [entry.path.parent.name for entry in cache.prune(unused_s=3600)] == ["04"]


def test_pruning_removes_what_killed_writers_left_but_nothing_that_is_being_written(tmp_path):
    cache = kept_runs(tmp_path, 1)
    old, new = (tmp_path / "00" / f".{digit * 62}.run-{digit * 8}" for digit in "01")
    for path in (old, new):
        path.write_bytes(b"")
    os.utime(old, (1e9, 1e9))
    assert cache.prune(most_bytes=10**9) == []
    assert not old.exists() and new.exists()


def test_a_folder_with_other_files_is_refused(tmp_path):
    (tmp_path / "thesis.tex").write_text("")
    with pytest.raises(OutputError, match="found other files, expected an empty folder or a cache"):
        Cache(tmp_path)


def test_the_command(narrows, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "kept.toml").write_text(TEXT)
    assert narrows("run", "kept.toml", "--cache", "runs")[0] == 0
    code, out, _ = narrows("run", "kept.toml", "--cache", "runs", "--out", "again")
    assert code == 0 and "6 runs from the cache" in out
    monkeypatch.setenv("NARROWS_CACHE", "runs")
    assert "6 runs from the cache" in narrows("run", "kept.toml")[1]
    assert "from the cache" not in narrows("run", "kept.toml", "--no-cache")[1]
    assert narrows("cache", "show")[1].startswith(f"{tmp_path}/runs: 6 runs, ")
    assert "removed 0 runs, 0 B, kept 6 runs" in narrows("cache", "prune", "--unused", "1")[1]
    assert "removed 6 runs" in narrows("cache", "prune", "--all")[1]


@pytest.mark.parametrize(
    ("call", "error"),
    [
        (["run", "x.toml", "--cache", "c", "--no-cache"], "--cache: found also --no-cache"),
        (["run", "x.toml", "--cache", "c", "--on", "kernel"], "--cache: found --on kernel"),
        (["cache", "show"], "--cache: found no folder, and NARROWS_CACHE is not set"),
        (
            ["cache", "show", "--cache", "absent"],
            "--cache: found 'absent', expected a folder that --cache made",
        ),
        (["cache", "prune", "--cache", "."], "found no option, expected --most, --unused or --all"),
        (["cache", "prune", "--most", "1GB", "--all"], "--all: found also --most or --unused"),
        (
            ["run", "x.toml", "--cache", "x.toml"],
            "--cache: x.toml: found a file, expected a folder for a cache",
        ),
        (["cache", "prune", "--cache", ".", "--most", "5"], "--most: found '5', expected"),
        (
            ["cache", "prune", "--cache", ".", "--unused", "-1"],
            "--unused: found '-1', expected a number of days",
        ),
        (
            ["cache", "prune", "--cache", ".", "--all"],
            "--cache: found '.', expected a folder that --cache made",
        ),
    ],
)
def test_wrong_input(narrows, tmp_path, monkeypatch, call, error):
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("NARROWS_CACHE", raising=False)
    (tmp_path / "x.toml").write_text(TEXT)
    code, out, err = narrows(*call)
    assert code == 2 and out == "" and err.count("\n") == 1 and error in err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["x.toml"]
