"""The executor on a Ray cluster of several nodes on this machine. benches/cluster.py runs a larger sweep."""

import signal
import subprocess
import sys
import time

import pytest
from narrows.results import exchange, segments
from test_executors import files
from texts import TWO_FLOWS

pytest.importorskip("ray", reason="the extra ray is not installed")
pytest.importorskip("narrows._native", reason="no simulator")
from cluster import Cluster

RUNS = 120
SCENARIO = f'name = "my"\nduration = "4s"{TWO_FLOWS}[sweep]\nseeds = {RUNS}\n'
LIMIT_SECONDS = 120


@pytest.fixture(scope="module")
def cluster():
    with Cluster() as made:
        made.add("a")
        made.add("b")
        yield made


@pytest.fixture
def driver(tmp_path, cluster):
    """Starts a command on the cluster without waiting for it."""
    (tmp_path / "my.toml").write_text(SCENARIO)
    started = []

    def start(*words):
        command = [sys.executable, "-m", "narrows", "run", "my.toml", "--formats", "parquet", *words]
        pipe = subprocess.PIPE
        started.append(
            subprocess.Popen(command, cwd=tmp_path, env=cluster.env, stdout=pipe, stderr=pipe, text=True)
        )
        return started[-1]

    yield start
    for process in started:
        process.kill()
        process.wait()


def finished(process):
    out, err = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 0, err
    return out, err


def wait_for(out, runs, process):
    deadline = time.monotonic() + LIMIT_SECONDS
    while segments.count(out / exchange.PART) < runs:
        assert time.monotonic() < deadline and process.poll() is None
        time.sleep(0.05)


def test_a_sweep_outlives_a_node_and_its_driver(tmp_path, cluster, driver):
    finished(driver("--out", "local"))
    ray, out = ("--out", "ray", "--executor", f"ray:{cluster.address}"), tmp_path / "ray"
    first = driver(*ray)
    wait_for(out, 1, first)
    cluster.kill("b")
    cluster.add("c")
    wait_for(out, RUNS // 4, first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    kept = segments.count(out / exchange.PART)
    _, told = finished(driver(*ray, "--reuse"))
    assert kept < RUNS and f"my: {RUNS} of {RUNS} runs, " in told and " 0 failed (" in told
    assert files(out) == files(tmp_path / "local")


def test_ctrl_c_ends_remote_runs_and_keeps_finished_ones(tmp_path, cluster, driver):
    process = driver("--out", "ray", "--executor", f"ray:{cluster.address}")
    wait_for(tmp_path / "ray", 1, process)
    process.send_signal(signal.SIGINT)
    _, err = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 130
    assert f"of {RUNS} runs finished, readable in ray; to run only the rest, add --reuse" in err
    assert segments.runs_in(tmp_path / "ray")
    assert not list((tmp_path / "ray").rglob(".*"))


def test_an_address_without_a_cluster_is_one_line(driver):
    process = driver("--out", "ray", "--executor", "ray:127.0.0.1:9")
    _, err = process.communicate(timeout=LIMIT_SECONDS)
    assert process.returncode == 2
    assert err == "executor ray:127.0.0.1:9: found no cluster (Connection refused)\n"
