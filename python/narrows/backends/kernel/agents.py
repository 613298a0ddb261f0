"""The agents of a run and their configurations. No side effects, except the search for the program.

A run has one `narrows-agent switch` for each node with controlled ports. A run also has one `sender` for all
namespaces where BRF flows begin, and one `receiver` for all namespaces where BRF flows end. PACEC flows have
another `sender`, because it gets their rates in messages. They have no `receiver`, because PACEC on real
switches does not change receivers (rule PAC-5). The module `agency` starts the agents.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from narrows import rate
from narrows.backends.kernel import control
from narrows.backends.kernel.layout import Layout, has_agent
from narrows.backends.kernel.namespaces import path
from narrows.backends.kernel.shell import KernelError
from narrows.congestion import chosen, parameters
from narrows.errors import ScenarioError
from narrows.parameters import Parameter, Value
from narrows.plan import ControllerPlan, FlowPlan, Plan

NAME = "narrows-agent"
VARIABLE = "NARROWS_AGENT"
BRF = "brf"
PACEC = "pacec"
SENDERS = (BRF, PACEC)
"""The congestion controllers that come with the agent."""
HTB = "4e57:"
"""Handle of the agent's HTB (crates/narrows-agent/src/htb/layout.rs)."""
MAX_FLOWS = 16_384
"""Size of a switch's flow table. The switch scans the whole table five times a second."""
LIMIT = 1_000_000
"""Maximum number of packets in a leaf queue without a configured limit."""


def find() -> Path | None:
    """The path of narrows-agent, or None.

    If the environment variable `VARIABLE` is set, only the path in this variable is tried. Otherwise, this
    function searches this package's folder, a checkout's target/, the folder of the running Python (where pip
    installs narrows-agent), and PATH, in this order.
    """
    named = os.environ.get(VARIABLE)
    if named:
        return Path(named) if _runs(Path(named)) else None
    package = Path(__file__).resolve().parents[2]
    target = Path(os.environ.get("CARGO_TARGET_DIR") or package.parents[1] / "target")
    # Do not resolve the path: in a virtual environment, the interpreter is a link to the system's interpreter
    # in another folder.
    scripts = Path(sys.executable).parent
    for candidate in (package / NAME, target / "release" / NAME, target / "debug" / NAME, scripts / NAME):
        if _runs(candidate):
            return candidate
    found = shutil.which(NAME)
    return Path(found) if found else None


def _runs(path: Path) -> bool:
    """Whether the path is an executable file. A check of X_OK alone would also accept folders."""
    return path.is_file() and os.access(path, os.X_OK)


def program(use: str = "needed for 'brf' and for controllers") -> Path:
    """The path of narrows-agent.

    Raises:
        KernelError: if narrows-agent is not installed. The message contains `use`.
    """
    found = find()
    if found is None:
        raise KernelError(
            f"found no {NAME}, {use}; run `pip install 'narrows[kernel]'`, or `make agent` in a clone, "
            f"or set {VARIABLE}"
        )
    return found


@dataclass(frozen=True)
class Agent:
    """An agent, with the changes and outages that are planned for it during the run."""

    role: str
    """``switch``, ``sender`` or ``receiver``."""
    name: str
    """Name without the run's prefix."""
    namespace: str
    """Namespace of its process, without the run's prefix."""
    config: Mapping[str, Any]
    """Configuration of the agent. The key ``name`` is added when the agent starts."""
    links: Mapping[str, int] = field(default_factory=dict)
    """For a switch: the plan's number of each controlled link, by the interface of the link's port."""
    rates: tuple[tuple[int, str, int], ...] = ()
    """For a switch: its changes of rates after the start, as (ns, interface, bytes/s), in order of time."""
    outages: tuple[tuple[int, int], ...] = ()
    """For a switch: the periods during which the agent is stopped, as (from, to) in ns."""


def agents(plan: Plan, layout: Layout, prefix: str) -> list[Agent]:
    """All agents of a run, in the order in which they start.

    Raises:
        ScenarioError: if agents do not support the plan.
    """
    found = [_switch(plan, layout, node, numbers, prefix) for node, numbers in _by_node(plan).items()]
    for name in SENDERS:
        flows = [flow for flow in plan["flows"] if chosen(flow) == name]
        if not flows:
            continue
        if name == BRF:
            ends = sorted({flow["to"] for flow in flows})
            found.append(_host("receiver", "receiver", ends, layout, prefix, {}))
        # iperf3 -C sets the algorithm after the handshake. This is too late, because the sender requests
        # feedback in the SYN.
        options = plan.get("kernel")
        by_iperf3 = options is not None and options.get("tool") == "iperf3"
        own: dict[str, Any] = {
            "choice": "unchosen" if by_iperf3 else "chosen",
            "algorithm": algorithm(prefix, name),
        }
        if name == PACEC:
            own["messages"] = True
        elif _designates(plan):
            own["designate"] = True
        starts = sorted({flow["from"] for flow in flows})
        found.append(_host("sender", "sender" if name == BRF else name, starts, layout, prefix, own))
    return found


def _designates(plan: Plan) -> bool:
    """Whether the parameter `designate` is set for the BRF flows.

    One agent serves all BRF flows, so all these flows must have the same value of `designate`.
    """
    found: dict[bool, int] = {}
    for number, flow in enumerate(plan["flows"]):
        if chosen(flow) == BRF:
            found.setdefault(bool(parameters(flow).get("designate", False)), number)
    if len(found) > 1:
        raise ScenarioError(
            f"found another value than in flows.{min(found.values())}, expected the same: one agent serves "
            "all flows of brf",
            f"flows.{max(found.values())}.cc.designate",
        )
    return True in found


def by_agent(flow: FlowPlan) -> str | None:
    """The flow's congestion controller, if it comes with the agent."""
    return name if (name := chosen(flow)) in SENDERS else None


def algorithm(prefix: str, name: str = BRF) -> str:
    """The name with which a run registers its congestion controller `name` in the kernel.

    The name has at most 15 bytes and differs from run to run. All names begin with `BRF`, because BRF and
    PACEC use the same eBPF program at the sender.
    """
    _, pid, run, _ = prefix.split("-")
    return f"{BRF}{'' if name == BRF else 'm'}{pid}_{run}"[:15]


def named(config: Mapping[str, Any], role: str, name: str) -> dict[str, Any]:
    """Complete a configuration: add the agent's name, request a log in JSON, and switch metrics off."""
    return {
        **config,
        role: {"name": name, **config[role]},
        "metrics": {"enabled": False},
        # Decisions about single flows are in the log only at level debug.
        "log": {"format": "json", "level": "info,narrows_agent::events=debug"},
    }


def _by_node(plan: Plan) -> dict[int, list[int]]:
    """For each node with an agent, the numbers that its rate controllers have in the plan."""
    nodes: dict[int, list[int]] = {}
    for number, controller in enumerate(plan["rate_controllers"]):
        _check_kind(controller, number)
        if not has_agent(controller):
            continue
        nodes.setdefault(plan["links"][controller["link"]]["from"], []).append(number)
    return nodes


def _switch(plan: Plan, layout: Layout, node: int, numbers: list[int], prefix: str) -> Agent:
    controllers = [plan["rate_controllers"][number] for number in numbers]
    outages = controllers[0]["outages"]
    for number, controller in zip(numbers, controllers, strict=True):
        if controller["outages"] != outages:
            raise ScenarioError(
                "found outages that another rate controller of this node does not have, expected the same: "
                "both use one agent",
                f"rate_controllers.{number}.outages",
            )
    links = {layout.ports[c["link"]].device: c["link"] for c in controllers}
    others = [p.device for p in layout.ports if p.node == node and p.device not in links]
    rates: list[tuple[int, str, int]] = []
    tables = []
    for number, controller in zip(numbers, controllers, strict=True):
        device = layout.ports[controller["link"]].device
        steps = port_rate(plan, number)
        rates += [(when, device, rate) for when, rate in steps[1:]]
        tables.append(_port(controller, device, steps[0][1], layout.mtu))
    # No eBPF object is pinned. All programs and maps therefore disappear at the end of the run.
    config = {"switch": {"max_flows": MAX_FLOWS, "interfaces": others, "pin": False}, "ports": tables}
    if layout.control:
        config["controller"] = control.uplink(node, prefix)
    name = layout.namespace(node)
    return Agent("switch", name, name, config, links, tuple(sorted(rates)), tuple((a, b) for a, b in outages))


def _check_kind(controller: ControllerPlan, number: int) -> None:
    """Refuse a kind that agents do not support, and parameters that do not work in a run on the kernel."""
    kind, known = controller["kind"], rate.on_switches()
    if kind not in known:
        raise ScenarioError(
            f"found {kind!r}, which agents do not support, expected one of {', '.join(map(repr, known))}",
            f"rate_controllers.{number}.kind",
        )
    share = controller["params"].get("share")
    if share in ("vlan", "mark"):
        raise ScenarioError(
            f"found {share!r}, expected an address or a prefix: packets of a run have no VLANs or marks",
            f"rate_controllers.{number}.params.share",
        )
    for key in known[kind][0]:
        allowed = [alternative[key] for alternative in known[kind]]
        if (value := _in_force(controller, key)) not in allowed:
            found = repr(value) if key in controller["params"] else f"nothing, which means {value!r}"
            expected = " or ".join(map(repr, allowed))
            raise ScenarioError(
                f"found {found}, expected {expected}: unmodified hosts support no other value",
                f"rate_controllers.{number}.params.{key}",
            )


def _in_force(controller: ControllerPlan, key: str) -> Value:
    """The value of a parameter. If it is not set, the value is the default of scenarios, not of the agent."""
    default = rate.catalogue()[controller["kind"]].parameters[key].default
    return controller["params"].get(key, default)


def check_datapath(plan: Plan, layout: Layout) -> None:
    """Check that the switches of BDR can see the interface at which a packet arrived.

    Raises:
        ScenarioError: for BDR on Open vSwitch's userspace datapath, which hides the interface at which a
            packet arrived.
    """
    for number, controller in enumerate(plan["rate_controllers"]):
        node = plan["links"][controller["link"]]["from"]
        if controller["kind"] == "bdr" and layout.kinds[node] == "ovs" and layout.datapath != "system":
            raise ScenarioError(
                "found 'bdr' on Open vSwitch's datapath in user space, expected kernel.datapath = 'system' "
                "or another kernel.forwarding: bdr needs the interface at which an ACK arrived",
                f"rate_controllers.{number}.kind",
            )


def port_rate(plan: Plan, number: int) -> list[tuple[int, int]]:
    """The rate of a controller's port over time, as steps of (ns, bytes/s).

    Raises:
        ScenarioError: for a rate that HTB does not support.
    """
    controller = plan["rate_controllers"][number]
    if shape := controller["shape"]:
        steps, key = shape, f"rate_controllers.{number}.shape"
    else:
        link = plan["links"][controller["link"]]
        key = f"links.{link['name']}.rate"
        rate = link["rate"]
        if rate["kind"] != "steps" or rate.get("period") is not None:
            raise ScenarioError(
                "found a trace, expected a rate or steps: on the kernel backend an agent shapes this port",
                key,
            )
        steps = rate["steps"]
    if any(value == 0 for _, value in steps):
        raise ScenarioError(
            "found 0, expected a rate above 0: on the kernel backend an agent shapes this port", key
        )
    return [(when, value) for when, value in steps]


def _port(controller: ControllerPlan, device: str, bytes_per_s: int, mtu: int) -> dict[str, Any]:
    words = f"{bytes_per_s}B/s"
    capacity = {"rate": words} if controller["told"] else {"capacity": "measured", "shape": words}
    known = rate.catalogue()[controller["kind"]].parameters
    params = {key: _in_units(known[key], value) for key, value in controller["params"].items()}
    params |= {key: _in_force(controller, key) for key in rate.on_switches()[controller["kind"]][0]}
    if not controller["told"]:
        # If the capacity is measured, the simulator ignores `udp_ceiling`, but the agent would refuse it.
        # Leave it out.
        params.pop("udp_ceiling", None)
    elif controller["kind"] == BRF:
        params.setdefault("udp_ceiling", 0.0)  # the simulator's default, not the agent's
    limit = controller["limit"]
    packets, length = limit.get("packets"), limit.get("bytes")
    if packets is None:
        packets = LIMIT if length is None else length // mtu
    return {
        "interface": device,
        **capacity,
        "overhead": 0,  # HTB counts L3 bytes, as the simulator does
        "limit": f"{max(1, min(packets, LIMIT))}p",
        "rate_controller": controller["kind"],
        "params": params,
    }


def _in_units(parameter: Parameter, value: Value) -> Value:
    """Convert a parameter from base units to the form of the agent's configuration."""
    return f"{value}{_UNITS[parameter.kind]}" if parameter.kind in _UNITS else value


_UNITS = {"time": "ns", "rate": "B/s"}


def _host(role: str, name: str, nodes: list[int], layout: Layout, prefix: str, own: dict[str, Any]) -> Agent:
    def place(node: int) -> dict[str, Any]:
        entry: dict[str, Any] = {"path": path(prefix + layout.namespace(node))}
        if role == "sender":
            entry["interfaces"] = [port.device for port in layout.ports if port.node == node]
        return entry

    config = {role: own, "namespaces": [place(node) for node in nodes]}
    return Agent(role, name, layout.namespace(nodes[0]), config)
