"""Parameters of the kernel's congestion control modules, on a copy of their files."""

import json

import pytest
from narrows import locks
from narrows.backends.kernel import modules
from narrows.backends.kernel.shell import KernelError
from narrows.errors import ScenarioError
from narrows.scenario.load import loads
from narrows.scenario.resolve import resolve
from texts import DUMBBELL

DEFAULTS = {"beta": "717", "fast_convergence": "1", "hystart": "1", "hystart_ack_delta_us": "2000"}


def plan(*ccs):
    return resolve(loads(DUMBBELL + "".join(f"[[flows]]\ncc = {cc}\n" for cc in ccs)))


def refused(*ccs):
    with pytest.raises(ScenarioError) as caught:
        modules.settings(plan(*ccs))
    return str(caught.value)


@pytest.fixture
def sysfs(tmp_path, monkeypatch):
    """The files of tcp_cubic's parameters."""
    monkeypatch.setattr(modules, "SYSFS", tmp_path / "sys")
    monkeypatch.setattr(modules, "_FOLDER", tmp_path / "run")
    folder = tmp_path / "sys/tcp_cubic/parameters"
    folder.mkdir(parents=True)
    for name, value in DEFAULTS.items():
        (folder / name).write_text(value + "\n")
    return folder


def values(folder):
    return {path.name: path.read_text().strip() for path in folder.iterdir()}


def test_values_become_the_modules_whole_numbers():
    params = 'beta = 0.5, fast_convergence = false, hystart_ack_delta = "3ms", slow_start = "plain"'
    cubic = f'{{ name = "cubic", {params} }}'
    wanted = {"beta": 512, "fast_convergence": 0, "hystart_ack_delta_us": 3000, "hystart": 0}
    assert modules.settings(plan(cubic, cubic, '"reno"')) == {"tcp_cubic": wanted}
    assert modules.settings(plan('{ name = "hybla", reference_rtt = "50ms" }')) == {"tcp_hybla": {"rtt0": 50}}
    assert modules.settings(plan('{ name = "vegas", alpha = 3 }', '"cubic"')) == {"tcp_vegas": {"alpha": 3}}
    assert modules.settings(plan('"cubic"', '"bbr"')) == {}


def test_the_defaults_of_the_catalogue_are_the_kernels():
    params = 'beta = 0.7, fast_convergence = true, hystart_ack_delta = "2ms", slow_start = "hystart"'
    cubic = f'{{ name = "cubic", {params} }}'
    assert modules.settings(plan(cubic)) == {"tcp_cubic": {name: int(v) for name, v in DEFAULTS.items()}}


@pytest.mark.parametrize(
    ("name", "key", "value", "usable"),
    [
        ("bbr", "cwnd_gain", "3.0", "none"),
        ("reno", "beta", "0.6", "none"),
        ("bbr-a", "reading", '"literal"', "none"),
        ("vegas", "min_window", "3", "one of alpha, beta, gamma"),
    ],
)
def test_a_parameter_that_the_kernel_lacks_is_refused_with_the_reason(name, key, value, usable):
    found = refused(f'{{ name = "{name}", {key} = {value} }}')
    reason = f"found a parameter of {name} that the kernel cannot change, expected {usable}"
    assert found == f"flows.0.cc.{key}: {reason}"


def test_a_value_that_the_kernel_lacks_is_refused():
    found = refused('{ name = "cubic", slow_start = "hystart++" }')
    reason = "found 'hystart++', expected 'hystart' or 'plain': the kernel has no other"
    assert found == f"flows.0.cc.slow_start: {reason}"


def test_flows_of_one_algorithm_must_agree():
    reason = "expected the same: the kernel has one value for all flows of cubic"
    found = f"flows.1.cc: found other parameters than in flows.0, {reason}"
    assert refused('{ name = "cubic", beta = 0.5 }', '"cubic"') == found
    assert refused('"cubic"', '{ name = "cubic", beta = 0.5 }') == found
    assert refused('{ name = "cubic", beta = 0.5 }', '{ name = "cubic", beta = 0.6 }') == found


def test_a_run_sets_parameters_and_restores_them(sysfs):
    one = plan('{ name = "cubic", beta = 0.5 }')
    with modules.applied(one, modules.settings(one)):
        assert values(sysfs) == {**DEFAULTS, "beta": "512"}
    assert values(sysfs) == DEFAULTS
    with pytest.raises(RuntimeError), modules.applied(one, modules.settings(one)):
        raise RuntimeError
    assert values(sysfs) == DEFAULTS


def test_the_values_of_a_killed_run_are_restored_by_the_next(sysfs, tmp_path):
    (tmp_path / "run").mkdir()
    (tmp_path / "run/tcp_cubic.json").write_text(json.dumps({"beta": "717", "gone": "1"}))
    (sysfs / "beta").write_text("512")
    plain = plan('"cubic"')
    with modules.applied(plain, modules.settings(plain)):
        assert values(sysfs) == DEFAULTS
    assert not (tmp_path / "run/tcp_cubic.json").exists()


@pytest.mark.parametrize("cc", ['"cubic"', '{ name = "cubic", beta = 0.5 }'])
def test_a_run_that_sets_parameters_waits_for_runs_that_use_the_algorithm(sysfs, tmp_path, cc):
    one = plan(cc)
    with (
        modules.applied(one, modules.settings(one)),
        (tmp_path / "run/tcp_cubic.lock").open("w") as other,
    ):
        assert not locks.take(other.fileno())
    with (tmp_path / "run/tcp_cubic.lock").open("w") as other:
        assert locks.take(other.fileno())


def test_a_kernel_without_the_parameter_is_named(sysfs):
    (sysfs / "beta").unlink()
    with pytest.raises(KernelError) as caught:
        modules.check(modules.settings(plan('{ name = "cubic", beta = 0.5 }')))
    assert str(caught.value) == f"{sysfs / 'beta'}: found nothing, expected a parameter that can be set"
