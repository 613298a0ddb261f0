"""Checks the flows that iperf3 generates instead of the emulator (`kernel.tool`), and makes their commands.

The functions have no side effects. The emulator finds each flow in sock_diag by its ports. The JSON report of
iperf3 is kept with the logs.
"""

from __future__ import annotations

from narrows import _native
from narrows.backends.kernel.agents import by_agent
from narrows.backends.kernel.layout import Layout
from narrows.backends.kernel.load import Call, check_names, log_name
from narrows.backends.kernel.spec import source_ports
from narrows.congestion import chosen, registered
from narrows.errors import ScenarioError
from narrows.plan import Plan
from narrows.units import NANOS_PER_SEC

TOOL = "iperf3"


def check(plan: Plan) -> None:
    """Check that iperf3 can generate all flows.

    Raises:
        ScenarioError: for the first flow that iperf3 cannot generate.
    """
    check_names(plan)
    own: dict[int, str | None] = {}
    for number, flow in enumerate(plan["flows"]):
        key = f"flows.{number}"
        app, transport = flow["app"], flow["transport"]
        if transport["kind"] != "tcp":
            raise _cannot(transport["kind"], "tcp", f"{key}.transport")
        if app["kind"] == "poisson":
            raise _cannot("arrivals", "a single flow", f"{key}.arrivals")
        if app["kind"] == "size":
            # A message on iperf3's control connection can overtake data that is still in the sender's
            # buffer. In this case, the server closes the flow's connection too early.
            raise _cannot(
                "a size",
                "none (iperf3 ends when all data is written, not when it has arrived)",
                f"{key}.size",
            )
        if app["kind"] == "limited" and (app["on"] or app["off"]):
            raise _cannot("on and off", "a rate alone", f"{key}.app")
        if app["kind"] == "scheduled":
            raise _cannot("changes of the rate", "a rate alone", f"{key}.app.at")
        if flow["count"] != 1:
            raise _cannot(str(flow["count"]), "1", f"{key}.count")
        if transport["receive_window"] is not None:
            raise _cannot("a receive window", "none", f"{key}.receive_window")
        # BRF requests feedback in the SYN, but `iperf3 -C` sets the algorithm only after the SYN. The agent
        # sets BRF instead, for all flows of a node. A node with both BRF and other algorithms is therefore an
        # error. The same holds for PACEC.
        if own.setdefault(flow["from"], by_agent(flow)) != by_agent(flow):
            name = by_agent(flow) or own[flow["from"]]
            raise _cannot(
                f"{name!r} and another algorithm at one node",
                f"{name!r} for all of its flows or for none",
                f"{key}.cc",
            )


def _cannot(found: str, would_do: str, key: str) -> ScenarioError:
    return ScenarioError(f"found {found}, expected {would_do}, because kernel.tool is iperf3", key)


def calls(plan: Plan, layout: Layout) -> list[Call]:
    """The iperf3 call for each flow of a plan."""
    ports = source_ports(plan)
    return [_call(plan, layout, number, ports[number]) for number in range(len(plan["flows"]))]


def _call(plan: Plan, layout: Layout, number: int, source_port: int | None) -> Call:
    flow, ends = plan["flows"][number], layout.endpoints[layout.of_flow[number]]
    port = str(_native.FIRST_PORT + number)
    stop = min(flow["stop"] or plan["duration"], plan["duration"])
    client = [TOOL, "-c", ends.to_address, "-B", ends.source_address, "-p", port, "-J", "-i", "0"]
    client += [] if source_port is None else ["--cport", str(source_port)]
    transport = flow["transport"]
    if transport["kind"] == "tcp":
        client += ["-M", str(transport["mss"])]
        client += [] if by_agent(flow) else ["-C", registered(chosen(flow))]
    app = flow["app"]
    # iperf3 accepts only whole seconds, so its duration is longer than the flow's. The run interrupts the
    # client at the flow's exact stop time.
    client += ["-t", str(-(-(stop - flow["start"]) // NANOS_PER_SEC) + 1)]
    if app["kind"] == "limited":
        client += ["-b", str(app["rate"] * 8)]
    server = [TOOL, "-s", "-B", ends.to_address, "-p", port, "-1", "-J"]
    names = [layout.namespace(node) for node in (ends.source, ends.to)]
    return Call(
        number=number,
        name=flow["name"],
        start=flow["start"],
        stop=stop,
        client_in=names[0],
        server_in=names[1],
        server=server,
        client=client,
        port=_native.FIRST_PORT + number,
        protocol="tcp",
        kept={"client": f"iperf3-{log_name(flow['name'])}.json"},
    )
