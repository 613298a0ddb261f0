"""Starts the real SDN controller of a run, waits for its discovery of the network, and stops it for outages.

The measured network carries packets only during the run, so the controller needs two preparations:

- LLDP frames must cross the links before the run. The relays carry these frames in a rehearsal without flows.
- Hosts never send ARP requests, because all neighbours are static. Each host is therefore announced.
  Without the announcement, a host's first packets would be flooded.

LLDP frames also reach hosts, where the kernel would count them as dropped. To avoid that, sockets at the
hosts receive these frames.
"""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from ipaddress import IPv4Address
from pathlib import Path
from typing import Any

import tomli_w

import narrows
from narrows import _native
from narrows.backends.kernel import agents, control, namespaces
from narrows.backends.kernel.layout import CONTROL, WIRE, Layout, Port
from narrows.backends.kernel.namespaces import path
from narrows.backends.kernel.processes import Processes
from narrows.backends.kernel.shell import KernelError, run
from narrows.backends.kernel.sockets import socket_in
from narrows.backends.kernel.timeline import Timeline
from narrows.plan import Plan
from narrows.units import format_duration

_START_SECONDS = 30.0
_ASK_SECONDS = 0.2
_PATIENCE_SECONDS = 5.0
_ETH_LLDP, _ETH_ARP = 0x88CC, 0x0806


class Domain:
    """The SDN controller of a run. All methods do nothing if the plan has no SDN controller."""

    def __init__(self, programs: Processes, plan: Plan, layout: Layout) -> None:
        self.notes: list[str] = []
        self._programs, self._plan, self._layout = programs, plan, layout
        self._sdn = plan.get("sdn")
        self._process: Any = None
        self._sockets: dict[str, socket.socket] = {}
        """Sockets that receive LLDP, by namespace (without the run's prefix)."""

    def start(self) -> None:
        """Start the controller without waiting for it."""
        if not self._layout.control or self._sdn is None:
            return
        prefix = self._programs.prefix
        edges = {self._layout.namespace(port.node) for port in control.edges(self._plan, self._layout)}
        for namespace in sorted(edges | ({WIRE} if self._layout.relays else set())):
            self._sockets[namespace] = socket_in(
                path(prefix + namespace), socket.AF_PACKET, socket.SOCK_RAW, socket.htons(_ETH_LLDP)
            )
        _make_keys(prefix, sorted(control.known(self._plan, self._layout).agents))
        config = self._programs.folder / f"{control.NAME}.toml"
        config.write_text(tomli_w.dumps(control.config(self._plan, self._layout, prefix)), encoding="utf-8")
        command = [sys.executable, "-m", "narrows.cli.main", "controller", "--config", str(config)]
        # Let the controller import the package that runs here, not another installed package.
        home = str(Path(narrows.__file__).parents[1])
        env = {**os.environ, "PYTHONPATH": os.pathsep.join([home, os.environ.get("PYTHONPATH", "")])}
        self._process = self._programs.start(CONTROL, control.NAME, command, env)
        self.notes.append(
            "the delay between the SDN controller and the switches is that of this machine, not "
            f"sdn.delay ({format_duration(self._sdn['delay'])})"
        )

    def learn(self, relays: Mapping[str, Any], cancel: _native.Cancel) -> None:
        """Wait until the controller has discovered all agents, links and hosts.

        Args:
            relays: the specification of the run for `_native.emulate`, see `spec`.
            cancel: ends the wait when it is set.

        Raises:
            KernelError: if the controller does not discover all agents, links and hosts in time.
            KeyboardInterrupt: if the wait was cancelled.
        """
        if self._process is None:
            return
        wanted = control.known(self._plan, self._layout)
        edges = control.edges(self._plan, self._layout)
        until = time.monotonic() + _START_SECONDS
        with _rehearsal(relays if wanted.links or wanted.hosts else {"relays": []}) as failed:
            lacking = "an answer"
            while lacking:
                if cancel.is_set():
                    raise KeyboardInterrupt
                self._programs.check()
                if failed:
                    raise failed[0]
                if time.monotonic() > until:
                    raise KernelError(
                        f"the SDN controller did not discover {lacking} within {_START_SECONDS:g} s"
                    )
                for port in edges:
                    for address in control.addresses(self._layout, port):
                        self._announce(port, address)
                with contextlib.suppress(OSError, http.client.HTTPException, ValueError):
                    lacking = wanted.lacks(self._ask("state"))
                time.sleep(_ASK_SECONDS if lacking else 0)

    def logs(self) -> dict[str, str]:
        """The controller's log, by file name."""
        if self._process is None:
            return {}
        return {f"{control.NAME}.log": self._programs.log(control.NAME).read_text("utf-8", "replace")}

    @contextmanager
    def at_work(self, start: int) -> Iterator[None]:
        """Stop and resume the controller at the planned times while the context lasts.

        Args:
            start: start of the run, ns of CLOCK_MONOTONIC.
        """
        if self._process is None:
            yield
            return
        with Timeline(start).working(self._fail):
            yield

    def close(self) -> None:
        """Close the sockets. The program ends with the run's other programs."""
        for opened in self._sockets.values():
            opened.close()

    def _fail(self, timeline: Timeline) -> None:
        todo = [
            (when, number)
            for outage in (self._sdn["outages"] if self._sdn else ())
            for when, number in zip(outage, (signal.SIGSTOP, signal.SIGCONT), strict=True)
        ]
        for when, number in todo:
            if not timeline.wait_until(when):
                break
            self._process.send_signal(number)
        if todo:  # a stopped process does not handle SIGTERM
            self._process.send_signal(signal.SIGCONT)

    def _ask(self, what: str) -> Any:
        """The answer of the controller's REST API, which listens on the loopback of its namespace."""
        client = http.client.HTTPConnection("127.0.0.1", control.HTTP)
        with socket_in(
            path(self._programs.prefix + CONTROL), socket.AF_INET, socket.SOCK_STREAM
        ) as connection:
            connection.settimeout(_PATIENCE_SECONDS)
            connection.connect(("127.0.0.1", control.HTTP))
            client.sock = connection
            client.request("GET", f"/api/v1/{what}")
            return json.loads(client.getresponse().read())

    def _announce(self, port: Port, text: str) -> None:
        """Announce a host by an ARP request for its own address (RFC 5227)."""
        mac, address = bytes.fromhex(port.mac.replace(":", "")), IPv4Address(text).packed
        frame = b"\xff" * 6 + mac + _ETH_ARP.to_bytes(2, "big")
        # The fields: Ethernet, IPv4, the lengths of their addresses, and the operation "request" (RFC 826).
        frame += bytes.fromhex("0001080006040001") + mac + address + bytes(6) + address
        self._sockets[self._layout.namespace(port.node)].sendto(frame, (port.device, _ETH_ARP))


def _make_keys(prefix: str, names: list[str]) -> None:
    """Create the keys of the controller and of the agents. Do nothing if there are no agents."""
    program = agents.find()
    if not names or program is None:
        return
    folder = namespaces.FILES / prefix
    for name in (control.NAME, *names):
        run([str(program), "key", name, "--folder", str(folder)])
    trusted = "".join((folder / f"{name}.crt").read_text(encoding="ascii") for name in names)
    (folder / f"{control.TRUSTED}.crt").write_text(trusted, encoding="ascii")


@contextmanager
def domain(programs: Processes, plan: Plan, layout: Layout) -> Iterator[Domain]:
    """Start the controller of a plan, and yield it while the context lasts."""
    made = Domain(programs, plan, layout)
    try:
        made.start()
        yield made
    finally:
        made.close()


@contextmanager
def _rehearsal(told: Mapping[str, Any]) -> Iterator[list[Exception]]:
    """Run the relays without the flows. Yield a list: if the relays fail, their error is added to it."""
    failed: list[Exception] = []
    if not told["relays"]:
        yield failed
        return
    cancel = _native.Cancel()
    endless = {**told["plan"], "duration": told["plan"]["duration"] + int(4 * _START_SECONDS * 1e9)}
    spec = {"plan": endless, "relays": told["relays"], "flows": [], "queues": []}

    def work() -> None:
        try:
            _native.emulate(json.dumps(spec, allow_nan=False), cancel)
        except KeyboardInterrupt:
            return  # the relays run until they are cancelled
        except (_native.PlanError, _native.EmulationError) as error:
            failed.append(KernelError(str(error)))

    thread = threading.Thread(target=work, name="narrows-rehearsal")
    thread.start()
    try:
        yield failed
    finally:
        cancel.set()
        thread.join()
