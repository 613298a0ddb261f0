"""A QUIC client and server, built from this workspace, as unmodified programs of a run in a guest."""

from __future__ import annotations

import os

import pytest
import quic_lab
from narrows import sweep
from narrows.backends.vm import image, package
from narrows.backends.vm.backend import Vm
from narrows.scenario.load import load


def test_a_quic_client_and_server_run_in_a_guest(tmp_path):
    if package.found() is None or package.missing():
        lacking = "a prepared guest: narrows vm prepare"
        if os.environ.get("NARROWS_REQUIRE_KERNEL") == "1":
            pytest.fail(f"NARROWS_REQUIRE_KERNEL=1, but found no {lacking}")
        pytest.skip(f"found no {lacking}")
    image.ensure(lambda _: None)
    overrides = {
        "flows.quic.program.files": [str(quic_lab.program())],
        "flows.quic.program.client": "./transfer client {server} {port} 2 bbr3",
        "flows.quic.stop": "6s",
        "duration": "7s",
    }
    made = sweep.run(load(quic_lab.SCENARIO, overrides), backend=Vm(), out=tmp_path / "out")
    quic_lab.check(made, tmp_path / "out/logs/0")
