"""The Slurm executor, on a Slurm cluster or with submitit's local processes."""

import subprocess

import pytest
from narrows import sweep
from narrows.errors import ScenarioError
from sketch import Sketch
from test_executors import RUNS, Refusing, files, scenario

pytest.importorskip("submitit", reason="the extra slurm is not installed")
from narrows.executors.slurm import Slurm


def has_slurm():
    try:
        return subprocess.run(["sinfo"], capture_output=True, check=False, timeout=20).returncode == 0
    except (OSError, subprocess.TimeoutExpired):
        return False


CLUSTERS = ["local", pytest.param("slurm", marks=pytest.mark.skipif(not has_slurm(), reason="no Slurm"))]


@pytest.fixture(autouse=True)
def path(monkeypatch, request):
    """Puts the modules of these tests into PYTHONPATH, because Slurm jobs import them."""
    root = request.path.parents[1]
    monkeypatch.setenv("PYTHONPATH", f"{root.parents[1] / 'python'}:{root}:{request.path.parent}")


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_the_tables_are_those_of_threads(tmp_path, cluster):
    sweep.run(scenario(), out=tmp_path / "local", backend=Sketch())
    hosts = []
    sweep.run(
        scenario(),
        out=tmp_path / "a",
        backend=Sketch(),
        executor=Slurm(2, cluster),
        hosts=lambda *at: hosts.append(at),
    )
    assert files(tmp_path / "a") == files(tmp_path / "local")
    assert sum(done for _, done, _ in hosts) == RUNS


@pytest.mark.parametrize("cluster", CLUSTERS)
def test_a_run_that_fails_ends_the_sweep(tmp_path, cluster):
    with pytest.raises(ScenarioError, match=r"^demo\.toml: flows\.0: refused$"):
        sweep.run(scenario(), out=tmp_path / "a", backend=Refusing(1), executor=Slurm(1, cluster))
