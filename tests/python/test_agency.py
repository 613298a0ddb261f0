"""Tests the changes that the kernel backend sends to agents. A socket takes the place of the agent."""

import socket
import threading
import time
from types import SimpleNamespace
from typing import Any, cast

import pytest
from narrows.backends.kernel import agency
from narrows.backends.kernel.agents import Agent
from narrows.backends.kernel.timeline import Timeline


@pytest.mark.parametrize(
    ("answer", "complaints"),
    [
        (b'{"role":"switch"}\n', []),
        (b'{"error":"rates.c: found 0"}\n', ["a change of rate was refused (rates.c: found 0)"]),
    ],
)
def test_a_refused_change_of_rate_makes_the_run_untrustworthy(
    answer: bytes, complaints: list[str], tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agency, "SOCKETS", tmp_path)
    asked = []
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(tmp_path / "t-s.sock"))
        listener.listen()
        listener.settimeout(30)

        def serve() -> None:
            client, _ = listener.accept()
            with client:
                asked.append(client.recv(1000))
                client.sendall(answer)

        server = threading.Thread(target=serve)
        server.start()
        agent = Agent("switch", "s", "s", {}, rates=((0, "c", 1250000),))
        crew = agency.Agency(cast(Any, SimpleNamespace(prefix="t-")), [agent])
        crew._change(Timeline(time.monotonic_ns()))
        server.join()
    assert asked == [b'{"rates": {"c": 1250000}}\n']
    assert crew.complaints == complaints
