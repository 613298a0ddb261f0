"""Generates flows with the unmodified program iperf3: checks, command lines (pure) and processes.

The emulator then only observes the flows. It finds each flow in sock_diag by its ports. The JSON report of
iperf3 is kept with the logs.
"""

from __future__ import annotations

import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from narrows.backends.kernel import cc
from narrows.backends.kernel.agents import is_brf
from narrows.backends.kernel.layout import Layout
from narrows.backends.kernel.processes import Processes
from narrows.backends.kernel.spec import FIRST_PORT, source_ports
from narrows.backends.kernel.timeline import Timeline
from narrows.congestion import chosen
from narrows.errors import ScenarioError
from narrows.plan import Plan
from narrows.units import NANOS_PER_SEC

TOOL = "iperf3"
_ENOUGH_SECONDS = 10.0


@dataclass(frozen=True)
class Call:
    """A flow: a server that waits, and a client that starts at the flow's start time."""

    name: str
    start: int
    """Time at which the client is started, ns."""
    stop: int
    """Time at which the client is stopped, ns."""
    from_: str
    """Namespace of the client, without the run's prefix. `to` is the namespace of the server."""
    to: str
    server: list[str]
    client: list[str]


def check(plan: Plan) -> None:
    """Check that iperf3 can generate all flows.

    Raises:
        ScenarioError: for the first flow that it cannot generate.
    """
    brf: dict[int, bool] = {}
    for number, flow in enumerate(plan["flows"]):
        key = f"flows.{number}"
        app, transport = flow["app"], flow["transport"]
        if transport["kind"] != "tcp":
            raise _cannot(transport["kind"], "tcp", f"{key}.transport")
        if app["kind"] == "poisson":
            raise _cannot("arrivals", "a single flow", f"{key}.arrivals")
        if app["kind"] == "size":
            # The control connection overtakes data in the sender's buffer, and the server closes too early.
            raise _cannot(
                "a size",
                "none (iperf3 ends when all data is written, not when it has arrived)",
                f"{key}.size",
            )
        if app["kind"] == "limited" and (app["on"] or app["off"]):
            raise _cannot("on and off", "a rate alone", f"{key}.app")
        if flow["count"] != 1:
            raise _cannot(str(flow["count"]), "1", f"{key}.count")
        if transport["receive_window"] is not None:
            raise _cannot("a receive window", "none", f"{key}.receive_window")
        # The SYN requests feedback, but `iperf3 -C` sets the algorithm only after the SYN. So the agent sets
        # it, for all flows of a node.
        if brf.setdefault(flow["from"], is_brf(flow)) != is_brf(flow):
            raise _cannot(
                "BRF and another algorithm at one node", "BRF for all of its flows or for none", f"{key}.cc"
            )


def _cannot(found: str, would_do: str, key: str) -> ScenarioError:
    return ScenarioError(f"found {found}, expected {would_do}, because kernel.tool is iperf3", key)


def calls(plan: Plan, layout: Layout) -> list[Call]:
    """The iperf3 call for each flow of a plan."""
    ports = source_ports(plan)
    return [_call(plan, layout, number, ports[number]) for number in range(len(plan["flows"]))]


def _call(plan: Plan, layout: Layout, number: int, source_port: int | None) -> Call:
    flow, ends = plan["flows"][number], layout.endpoints[layout.of_flow[number]]
    port = str(FIRST_PORT + number)
    stop = min(flow["stop"] or plan["duration"], plan["duration"])
    client = [TOOL, "-c", ends.to_address, "-B", ends.source_address, "-p", port, "-J", "-i", "0"]
    client += [] if source_port is None else ["--cport", str(source_port)]
    transport = flow["transport"]
    if transport["kind"] == "tcp":
        client += ["-M", str(transport["mss"])]
        client += [] if is_brf(flow) else ["-C", cc.registered(chosen(flow))]
    app = flow["app"]
    # iperf3 accepts only whole seconds. The run stops the client at its exact stop time.
    client += ["-t", str(-(-(stop - flow["start"]) // NANOS_PER_SEC) + 1)]
    if app["kind"] == "limited":
        client += ["-b", str(app["rate"] * 8)]
    server = [TOOL, "-s", "-B", ends.to_address, "-p", port, "-1", "-J"]
    names = [layout.namespace(node) for node in (ends.source, ends.to)]
    return Call(flow["name"], flow["start"], stop, names[0], names[1], server, client)


class Load:
    """The iperf3 processes of a run."""

    def __init__(self, programs: Processes, todo: Sequence[Call]) -> None:
        self._programs, self._todo = programs, todo
        self._logs: list[str] = []
        self.complaints: list[str] = []

    def listen(self) -> None:
        """Start the servers."""
        for call in self._todo:
            self._programs.start(call.to, f"iperf3-server-{call.name}", call.server, may_end=True)

    @contextmanager
    def at_work(self, start: int) -> Iterator[None]:
        """Start and stop clients at their times while the context lasts.

        Args:
            start: start of the run, ns of CLOCK_MONOTONIC.
        """
        with Timeline(start).working(self._work):
            yield

    def logs(self) -> dict[str, str]:
        """iperf3's JSON reports of the clients, by file name."""
        return {f"{name}.json": self._programs.log(name).read_text("utf-8", "replace") for name in self._logs}

    def _work(self, timeline: Timeline) -> None:
        clients = {}
        times = [(call.start, 0, call) for call in self._todo] + [(call.stop, 1, call) for call in self._todo]
        for when, ending, call in sorted(times, key=lambda entry: entry[:2]):
            if not timeline.wait_until(when) and not ending:
                continue
            if not ending:
                name = f"iperf3-{call.name}"
                self._logs.append(name)
                clients[call.name] = self._programs.start(call.from_, name, call.client, may_end=True)
            elif call.name in clients:
                # An interrupted iperf3 prints its report, too.
                clients[call.name].send_signal(signal.SIGINT)
        until = time.monotonic() + _ENOUGH_SECONDS
        for name, client in clients.items():
            try:
                client.wait(max(0.1, until - time.monotonic()))
            except subprocess.TimeoutExpired:
                self.complaints.append(f"iperf3 of {name} did not end")
