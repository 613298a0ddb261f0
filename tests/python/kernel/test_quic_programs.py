"""A QUIC client and server, built from this workspace, as unmodified programs of a run on the kernel.

The tests compare the counts of the programs with those of the results, so other work on the machine does not
disturb them.
"""

from __future__ import annotations

import pytest
import quic_lab
from narrows import sweep
from narrows.scenario.load import load


@pytest.fixture(scope="module")
def transfer():
    """The program, which is both client and server."""
    return quic_lab.program()


@pytest.mark.usefixtures("real", "tidy")
def test_a_quic_client_and_server_run_on_the_kernel(transfer, backend, tmp_path):
    scenario = load(quic_lab.SCENARIO, {"flows.quic.program.files": [str(transfer)]})
    made = sweep.run(scenario, backend=backend, out=tmp_path / "out")
    quic_lab.check(made, tmp_path / "out/logs/0")


@pytest.mark.usefixtures("real", "tidy")
def test_an_unknown_controller_of_the_client_is_named(transfer, backend):
    client = "./transfer client {server} {port} 1 bbr9"
    overrides = {
        "flows.quic.program.files": [str(transfer)],
        "flows.quic.program.client": client,
        "duration": "3s",
        "flows.quic.stop": "2s",
    }
    made = sweep.run(load(quic_lab.SCENARIO, overrides), backend=backend)
    said = 'the client of quic ended with exit code 2: transfer: found "bbr9", expected'
    reasons = made.soundness["0"]["reasons"]
    assert any(said in why for why in reasons), reasons
