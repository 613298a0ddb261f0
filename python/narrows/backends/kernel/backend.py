"""The kernel backend runs a plan on real Linux TCP stacks, in namespaces of this machine, in real time."""

from __future__ import annotations

import json
import os
import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import Any

from narrows import _native, rate
from narrows.backends import BY_AGENT, CAPTURE, Output
from narrows.backends.captures import kept_folder
from narrows.backends.kernel import (
    agency,
    captures,
    cc,
    changes,
    control,
    features,
    iperf3,
    modules,
    ovs,
    program,
    record,
    sdn,
    soundness,
)
from narrows.backends.kernel.agents import SENDERS, Agent, agents, check_datapath
from narrows.backends.kernel.agents import program as agent_program
from narrows.backends.kernel.build import built
from narrows.backends.kernel.commands import OFFLOADS_OFF
from narrows.backends.kernel.layout import WIRE, Layout, lay_out
from narrows.backends.kernel.load import Load
from narrows.backends.kernel.pings import Pings
from narrows.backends.kernel.processes import Processes
from narrows.backends.kernel.shell import KernelError, call
from narrows.backends.kernel.spec import spec
from narrows.backends.kernel.transfer import Transfer
from narrows.errors import ScenarioError
from narrows.plan import Datapath, Delayer, Forwarding, KernelPlan, Plan, Tool

_SETTLE_NANOS = 300_000_000
"""Pause between the creation of the sockets and the start of the run. Without the pause, the setup would
disturb the first packets."""

_NO_PREFIX = "nrw-0-0-"
"""Prefix of names for a plan that is only checked, not run."""


class Kernel:
    """Runs plans one after the other. Every run removes its kernel objects, even if the run fails.

    Args:
        say: called with a line of text before an action that takes a while.
        virtual: whether this machine is a guest whose time is virtual.

    Raises:
        KernelError: if this machine or user lacks a requirement. The text is one line.
    """

    name = "kernel"
    most_jobs: int | None = 1

    def __init__(self, say: Callable[[str], None] = lambda _: None, virtual: bool = False) -> None:
        features.require(features.root, features.tools, features.emulator, features.qdiscs)
        self._cancel = _native.Cancel()
        self._alone = threading.Lock()
        self._say = say
        self._virtual = virtual

    def facts(self) -> dict[str, Any]:
        """The kernel and its settings, for `metadata.json`."""
        return {
            "kernel": os.uname().release,
            "offloads_off": list(OFFLOADS_OFF),
            "gso_max_segs": 1,
            "agent_congestion_controllers": cc.NAMES,
        }

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        layout = check_plan(plan)
        features.require(lambda: features.wanted(layout.disciplines))
        features.require(lambda: features.asked(plan.get("kernel") or {}))
        modules.check(modules.settings(plan))
        if ovs.by_module(layout):
            features.require(features.datapath)
        if captures.places(plan, layout):
            features.require(lambda: features.programs([captures.TOOL]))
        if has_agents(plan, layout):
            features.require(features.agent, features.kernel, parts=("deploy",))
            check_agents(plan, layout)
        if cc.needed(plan):
            features.require(features.agent, features.kernel, parts=("deploy",))
        if layout.control:
            features.require(features.sdn)
            control.check_paths(plan, layout)

    def run(self, plan: Plan) -> Output:
        """Run a plan. Captured packets are in a temporary folder, which the caller must move or remove."""
        layout = check_plan(plan)
        places = captures.places(plan, layout)
        if not places:
            return self._run(plan, layout)
        with kept_folder() as folder:
            begin = partial(captures.Captures.begin, places=places, folder=folder)
            return {**self._run(plan, layout, begin), CAPTURE: folder}

    def _run(
        self, plan: Plan, layout: Layout, capture: Callable[[Processes], captures.Captures] | None = None
    ) -> dict[str, Any]:
        with (
            self._alone,
            cc.at_hand(cc.needed(plan)) as notes,
            modules.applied(plan, modules.settings(plan)),
            built(layout) as programs,
            sdn.domain(programs, plan, layout) as domain,
        ):
            prefix = programs.prefix
            controllers = cc.state(cc.needed(plan)) if plan["probes"]["traces"] else []
            crew = agency.Agency(programs, agents(plan, layout, prefix))
            if crew.agents:
                crew.start(agent_program())
            external = _options(plan).tool == iperf3.TOOL
            load = Load(
                programs, [*program.calls(plan, layout), *(iperf3.calls(plan, layout) if external else [])]
            )
            captured = capture(programs) if capture else None
            load.listen(self._cancel.is_set)
            domain.learn(spec(plan, layout, prefix, 0, _options(plan).interval), self._cancel)
            start = time.monotonic_ns() + _SETTLE_NANOS
            clock = time.time() + (start - time.monotonic_ns()) / 1e9
            told = spec(plan, layout, prefix, start, _options(plan).interval, external)
            told["bounds"] = soundness.bounds(self._virtual)
            told["controllers"] = controllers
            with (
                changes.making(changes.changes(layout), prefix, start) as complaints,
                crew.at_work(start, plan["probes"]["interval"] if plan["probes"]["flows"] else 0),
                load.at_work(start),
                domain.at_work(start),
            ):
                output: dict[str, Any] = self._emulate(told)
            programs.check()
            lost = captured.end() if captured else []
            switched = ovs.logs(layout, programs)
            drops = _device_drops(prefix, layout)
            output["logs"] = crew.logs() | load.logs() | domain.logs() | switched
        complaints += crew.complaints + load.complaints
        if crew.agents:
            _record(output, crew, plan, layout, start, clock)
        output["soundness"] = soundness.judge(
            output.get("soundness", {}), complaints, drops, [*domain.notes, *notes, *lost]
        )
        return output

    def perform(self, asked: Transfer | Pings) -> dict[str, Any]:
        """Perform a transfer or pings."""
        features.require(lambda: features.programs(asked.tools))
        with self._alone:
            return asked.perform(self._cancel.is_set)

    def lacking(self, algorithms: Iterable[str]) -> dict[str, str]:
        """The algorithms in `algorithms` that transfers cannot use, each with the reason.

        The call also loads the kernel modules of `algorithms`.
        """
        modules.load(set(algorithms) - set(features.congestion_controls()))
        known = features.congestion_controls()
        why = (
            f"Linux {os.uname().release} has only {', '.join(known)} ({features.CONGESTION}), "
            "and lacks the modules of other algorithms"
        )
        return {name: why for name in algorithms if name not in known}

    def _emulate(self, told: dict[str, Any]) -> dict[str, Any]:
        try:
            return _native.emulate(json.dumps(told, separators=(",", ":"), allow_nan=False), self._cancel)
        except _native.PlanError as error:
            raise ScenarioError(str(error)) from None
        except _native.EmulationError as error:
            raise KernelError(str(error)) from None

    def cancel(self) -> None:
        """Tell all runs to end, without waiting for their end."""
        self._cancel.set()
        if self._alone.locked():
            self._say("removing the network ...")

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Values that `cc` may have: the algorithms of this kernel and of the agent."""
        return [
            (name, BY_AGENT if name in SENDERS or name in cc.NAMES else "of this kernel")
            for name in features.congestion_controls()
        ]

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Values that a controller's `kind` may have: the kinds that the agent offers."""
        return [(kind, BY_AGENT) for kind in rate.on_switches()]


def has_agents(plan: Plan, layout: Layout) -> bool:
    """Whether a run of this plan starts agents."""
    return bool(agents(plan, layout, _NO_PREFIX))


def check_agents(plan: Plan, layout: Layout) -> None:
    """Let the agent check the configurations of a plan's agents."""
    agency.check(agents(plan, layout, _NO_PREFIX), agent_program())


def check_plan(plan: Plan) -> Layout:
    """Make the checks of a plan that do not depend on the machine, and return the plan's layout.

    Raises:
        ScenarioError: if the plan has a feature that Linux lacks.
    """
    options = _options(plan)
    layout = lay_out(plan, options.forwarding, options.delay)
    layout.datapath = options.datapath
    if options.tool == iperf3.TOOL:
        iperf3.check(plan)
    program.check(plan)
    control.check_kinds(plan, options.forwarding)
    check_datapath(plan, layout)
    modules.settings(plan)
    return layout


def _record(
    output: dict[str, Any], crew: agency.Agency, plan: Plan, layout: Layout, start: int, clock: float
) -> None:
    """Add the agents' logs and reports to the tables."""
    switches: list[Agent] = [agent for agent in crew.agents if agent.role == "switch"]
    logs = output["logs"]
    rows = [
        row
        for agent in switches
        for row in record.events(agent, logs[f"switch-{agent.name}.jsonl"], plan, layout, clock)
    ]
    record.add_events(output, rows)
    if switches:
        record.add_allocations(output, crew.snapshots(), plan, layout, start)


@dataclass(frozen=True)
class _Options:
    """The scenario's table [kernel], with this backend's defaults."""

    forwarding: Forwarding = "route"
    datapath: Datapath = "netdev"
    interval: int = 10_000_000
    """Sampling interval, ns."""
    tool: Tool = "own"
    delay: Delayer = "relay"


def _options(plan: Plan) -> _Options:
    given: KernelPlan = plan.get("kernel") or {}
    return _Options(
        forwarding=given.get("forwarding") or _Options.forwarding,
        datapath=given.get("datapath") or _Options.datapath,
        interval=given.get("interval") or _Options.interval,
        tool=given.get("tool") or _Options.tool,
        delay=given.get("delay") or _Options.delay,
    )


def _device_drops(prefix: str, layout: Layout) -> dict[str, int]:
    """The number of packets that each device dropped, by node and device."""
    drops: dict[str, int] = {}
    names = {layout.namespace(number): node for number, node in enumerate(layout.nodes)}
    for namespace in layout.namespaces():
        node = names.get(namespace, "the relay" if namespace == WIRE else "the control network")
        for device in json.loads(call(["ip", "-n", prefix + namespace, "-s", "-j", "link"], [""])):
            stats = device.get("stats64", {})
            count = sum(int(stats.get(way, {}).get("dropped", 0)) for way in ("rx", "tx"))
            if count:
                drops[f"{device['ifname']} of {node}"] = count
    return drops
