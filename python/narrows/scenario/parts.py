"""Makes the parts of a plan that depend on a single entry of the scenario."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TypeVar

from narrows import congestion as catalogue
from narrows import stacks, units
from narrows.errors import ScenarioError, found
from narrows.parameters import Value, in_base_units
from narrows.plan import AppPlan, JitterPlan, LossPlan, SizePlan, StepsRatePlan, TransportPlan
from narrows.scenario.network import Bernoulli, Change, GilbertElliott, Jitter
from narrows.scenario.sizes import MEASURED
from narrows.scenario.traffic import MAX_FLOWS, App, Flow, SizeDistribution

QUIC_PACKET = 1200
"""Bytes of a packet that QUIC can send over every path (RFC 9000, section 14). It is the unit of
`receive_window` for QUIC."""

MAX_UDP_PACKETS = 10_000_000_000
"""Maximum number of packets of a UDP flow or group. A simulation of this many packets takes about an hour."""

_Value = TypeVar("_Value")


def rate(first: int, changes: list[Change]) -> StepsRatePlan:
    """The rates of a link over time, converted from bit/s to bytes/s."""
    later = [(change.time or 0, change.rate // 8) for change in changes if change.rate is not None]
    return {"kind": "steps", "steps": _steps(first // 8, later)}


def delay(first: int, changes: list[Change]) -> list[tuple[int, int]]:
    """The propagation delays of a link over time."""
    return _steps(first, [(change.time or 0, change.delay) for change in changes if change.delay is not None])


def loss(first: Bernoulli | GilbertElliott | None, changes: list[Change]) -> list[tuple[int, LossPlan]]:
    """The random losses of a link over time; empty if there are none."""
    later = [(change.time or 0, loss_plan(change.loss)) for change in changes if change.loss is not None]
    if first is None and not later:
        return []
    return _steps(loss_plan(first or Bernoulli(model="bernoulli", p=0.0)), later)


def jitter(changes: list[Change]) -> list[tuple[int, JitterPlan]]:
    """The changes of a link's jitter; empty if there are none.

    If several changes have the same time, the last one applies.
    """
    later = {c.time or 0: jitter_plan(c.jitter) for c in changes if c.jitter is not None}
    return sorted(later.items(), key=lambda step: step[0])


def jitter_plan(given: Jitter) -> JitterPlan:
    """The jitter of a link, as a plan."""
    return {"max": given.max, "reorder": given.reorder}


def _steps(first: _Value, later: Sequence[tuple[int, _Value]]) -> list[tuple[int, _Value]]:
    """Steps with unique times. A change at 0 replaces the first value.

    If several changes have the same time, the last one applies.
    """
    by_time = {0: first}
    by_time.update(later)
    return sorted(by_time.items(), key=lambda step: step[0])


def loss_plan(model: Bernoulli | GilbertElliott) -> LossPlan:
    """Random loss, as a plan."""
    if isinstance(model, Bernoulli):
        return {"kind": "bernoulli", "p": model.p}
    return {"kind": "gilbert-elliott", "p": model.p, "r": model.r, "good": model.good, "bad": model.bad}


def names(flows: list[Flow]) -> list[str]:
    """Names of flows. A flow without a name is named after its kind (`Flow.kind`).

    If several flows without a name have the same kind, their names get a number.
    """
    return result_names([(flow.name, flow.kind) for flow in flows])


def result_names(flows: Sequence[tuple[str | None, str]]) -> list[str]:
    """Names of flows in results.

    Args:
        flows: for each flow, its name (None: it has no name), and its congestion controller or ``udp``.
    """
    unnamed = Counter(kind for name, kind in flows if name is None)
    numbers: Counter[str] = Counter()
    result = []
    for name, kind in flows:
        numbers[kind] += name is None
        alone = kind if unnamed[kind] == 1 else f"{kind}-{numbers[kind]}"
        result.append(name or alone)
    return result


def congestion(flow: Flow, key: str) -> str | dict[str, Value]:
    """The congestion controller: its name, and its parameters in base units if there are any.

    Raises:
        ScenarioError: if the flow sets a parameter that its controller lacks, or if a value is outside the
            parameter's range.
    """
    params = flow.cc.params
    if not params:
        return flow.cc.name
    name = stacks.catalogue_name(flow.transport, flow.cc.name)
    if name is None:
        given = next(iter(params))
        raise ScenarioError(
            f"found a parameter of {flow.transport}'s own {flow.cc.name}, expected none "
            f"(cc = '{stacks.prefix()}{flow.cc.name}' is Narrows' own controller)",
            f"{key}.{given}",
        )
    row = catalogue.find(name)
    if row is not None:
        return {"name": flow.cc.name, **in_base_units(params, row[0].parameters, row[0].name, key)}
    # The controller is a user's class. The class itself checks names and ranges of its parameters.
    for name, value in params.items():
        if not isinstance(value, bool | int | float | str):
            raise ScenarioError(
                f"found {found(value)}, expected a number, a string, true or false", f"{key}.{name}"
            )
    return {"name": flow.cc.name, **params}


def transport(flow: Flow, duration: int, key: str) -> TransportPlan:
    """TCP, UDP, or an external stack.

    Raises:
        ScenarioError: if a UDP flow would send more than `MAX_UDP_PACKETS` packets.
    """
    if flow.transport == "udp":
        rate = (flow.rate or 0) // 8
        packets = flow.count * rate * duration // (flow.packet * units.NANOS_PER_SEC)
        if packets > MAX_UDP_PACKETS:
            raise ScenarioError(
                f"found {units.format_rate(flow.rate or 0)} ({packets} packets), "
                f"expected at most {MAX_UDP_PACKETS} packets",
                f"{key}.rate",
            )
        return {"kind": "udp", "rate": rate, "packet": flow.packet}
    if flow.is_stack:
        window = flow.receive_window
        return {
            "kind": "stack",
            "name": flow.transport,
            "cc": congestion(flow, f"{key}.cc"),
            "receive_window": None if window is None else window * QUIC_PACKET,
        }
    return {
        "kind": "tcp",
        "cc": congestion(flow, f"{key}.cc"),
        "ecn": flow.ecn,
        "pacing": flow.pacing,
        "receive_window": flow.receive_window,
        "mss": flow.mss,
        "initial_window": flow.initial_window,
    }


def app(flow: Flow, duration: int, key: str) -> AppPlan:
    """The traffic of the application.

    Raises:
        ScenarioError: if too many flows would arrive.
    """
    if flow.arrivals is not None:
        arrivals = flow.arrivals
        expected = arrivals.rate * ((flow.stop or duration) - flow.start) / units.NANOS_PER_SEC
        if expected > MAX_FLOWS:
            raise ScenarioError(
                f"found {arrivals.rate:g} flows per second ({expected:.0f} in all), "
                f"expected at most {MAX_FLOWS} in all",
                f"{key}.arrivals.rate",
            )
        return {"kind": "poisson", "per_sec": arrivals.rate, "size": _size(arrivals.size)}
    if flow.requests is not None:
        requests = flow.requests
        return {
            "kind": "requests",
            "size": _size(requests.size),
            "parallel": requests.parallel,
            "count": requests.count,
            "think": requests.think,
        }
    if flow.size is not None:
        return {"kind": "size", "bytes": flow.size}
    if flow.app is not None:
        return _limited(flow.app, f"{key}.app")
    return {"kind": "bulk"}


def _limited(app: App, key: str) -> AppPlan:
    """An application with a rate.

    Raises:
        ScenarioError: if the changes of the rate are out of order.
    """
    if not app.at and app.rate is not None:
        return {"kind": "limited", "rate": app.rate // 8, "on": app.on, "off": app.off}
    timed = [(change.time or 0, _bytes(change.rate)) for change in app.at if change.when is None]
    if timed != sorted(timed, key=lambda step: step[0]):
        raise ScenarioError("found changes out of order, expected rising times", f"{key}.at")
    return {"kind": "scheduled", "steps": _steps(_bytes(app.rate), timed)}


def _bytes(rate: int | None) -> int | None:
    """A rate in bytes/s."""
    return None if rate is None else rate // 8


def _size(size: SizeDistribution) -> SizePlan:
    measured = MEASURED.get(size.distribution)
    if measured is not None:
        return {"kind": "empirical", "points": measured.scaled(size.mean)}
    # For all other distributions, the check of the scenario requires a mean.
    mean = float(size.mean or 0)
    match size.distribution:
        case "fixed":
            return {"kind": "fixed", "bytes": mean}
        case "exponential":
            return {"kind": "exponential", "mean": mean}
        case _:
            return {"kind": "pareto", "mean": mean, "shape": size.shape}
