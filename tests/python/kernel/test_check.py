"""`narrows check --on kernel` prints the errors that a run would have, and runs nothing."""

from __future__ import annotations

import pytest
from narrows.cli.main import app
from typer.testing import CliRunner

SCENARIO = """
duration = "1s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "20ms"
queue = "100p"
[[flows]]
cc = "xcp"
"""

pytestmark = pytest.mark.usefixtures("real")


def test_features_that_only_the_simulator_has_are_refused(tmp_path):
    path = tmp_path / "a.toml"
    path.write_text(SCENARIO)
    assert CliRunner().invoke(app, ["check", str(path)]).exit_code == 0
    refused = CliRunner().invoke(app, ["check", str(path), "--on", "kernel"])
    assert "flows.0.cc: found 'xcp'" in str(refused.exception)
    fits = CliRunner().invoke(app, ["check", str(path), "--on", "kernel", "--set", "flows.0.cc=reno"])
    assert fits.exit_code == 0 and "1 flow" in fits.output
