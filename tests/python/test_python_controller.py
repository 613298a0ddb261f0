"""Congestion controllers written in Python."""

import functools
from pathlib import Path
from types import SimpleNamespace
from typing import ClassVar

import narrows
import pytest
from narrows import congestion
from narrows.backends.sim import Simulator
from narrows.custom import BuiltIn
from narrows.sweep import Resolver

SCENARIO = """
duration = "5s"
[topology]
kind = "dumbbell"
rate = "10mbit"
rtt = "40ms"
[[flows]]
cc = "{cc}"
"""


class Aimd:
    def __init__(self) -> None:
        self.count = 0

    def on_ack(self, ack: SimpleNamespace, window: SimpleNamespace) -> None:
        if not ack.cwnd_limited:
            return
        if window.cwnd < window.ssthresh:
            window.cwnd += ack.acked
            return
        self.count += ack.acked
        if self.count >= window.cwnd:
            self.count -= window.cwnd
            window.cwnd += 1

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        assert event.signal in ("loss", "ecn", "timeout")
        window.ssthresh = max(window.cwnd // 2, 2)


class Paced:
    """A constant rate of 5 Mbit/s."""

    owns_recovery = True

    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        window.cwnd = 100
        window.pacing_rate = 5e6 / 8

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Does nothing."""


class Broken:
    def on_ack(self, _ack: SimpleNamespace, _window: SimpleNamespace) -> None:
        raise ZeroDivisionError("on purpose")

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Does nothing."""


def goodput_mbit(cc: str, **controllers: type) -> float:
    scenario = narrows.loads(SCENARIO.format(cc=cc))
    results = narrows.run(scenario, backend=Simulator(controllers))
    return results.flows.column("goodput_bps")[0].as_py() / 1e6


def test_reno_in_python_behaves_as_reno_in_rust() -> None:
    assert goodput_mbit("aimd", aimd=Aimd) == pytest.approx(goodput_mbit("reno"), rel=0.02)


def test_a_python_controller_can_pace() -> None:
    assert goodput_mbit("paced", paced=Paced) == pytest.approx(5 * 1448 / 1500, rel=0.02)


def test_an_exception_in_a_controller_ends_the_run_and_is_raised() -> None:
    with pytest.raises(ZeroDivisionError, match="on purpose") as caught:
        goodput_mbit("broken", broken=Broken)
    # The handshake takes one RTT (40 ms). The first ACK arrives one RTT later, plus the transmission time.
    (note,) = caught.value.__notes__
    assert note.startswith("in Broken.on_ack, at 0.08") and note.endswith(" s of the simulation")


class Unlucky(Aimd):
    def on_congestion(self, event: SimpleNamespace, _window: SimpleNamespace) -> None:
        self.fail(event.now)

    def fail(self, now: float) -> None:
        raise ValueError(f"at {now:.9g} s")


def test_the_exceptions_note_names_the_hook() -> None:
    with pytest.raises(ValueError, match="at ") as caught:
        goodput_mbit("unlucky", unlucky=Unlucky)
    assert caught.value.__notes__ == [f"in Unlucky.on_congestion, {caught.value} of the simulation"]


class Negative:
    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        window.cwnd = -5

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Does nothing."""


class Silent(Paced):
    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        window.pacing_rate = float("nan")


class Half:
    """Has no `on_congestion`."""

    def on_ack(self, ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Does nothing."""


@pytest.mark.parametrize(
    ("cls", "error", "says"),
    [
        (Negative, ValueError, "window.cwnd: found -5, expected a whole number"),
        (Silent, ValueError, "window.pacing_rate: found nan"),
        (Half, TypeError, "has no method on_congestion"),
    ],
)
def test_invalid_decisions_are_refused_by_name(cls: type, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        goodput_mbit("own", own=cls)
    assert not isinstance(caught.value, narrows.NarrowsError), "the error is not a mistake in the scenario"
    assert any(cls.__name__ in text for text in (str(caught.value), *getattr(caught.value, "__notes__", ())))


class Counted(Aimd):
    acks = 0

    def on_ack(self, ack: SimpleNamespace, window: SimpleNamespace) -> None:
        type(self).acks += 1
        if self.acks == 100:
            raise ZeroDivisionError("the hundredth")
        super().on_ack(ack, window)


def test_a_class_that_raised_is_not_called_again_and_the_simulator_stays_usable() -> None:
    Counted.acks = 0
    simulator = Simulator({"counted": Counted, "aimd": Aimd})
    with pytest.raises(ZeroDivisionError, match="the hundredth"):
        narrows.run(narrows.loads(SCENARIO.format(cc="counted")), backend=simulator)
    assert Counted.acks == 100
    plan = Resolver(simulator)(narrows.loads(SCENARIO.format(cc="aimd")))
    assert simulator.run(plan)["flows"]["cc"] == ["aimd"]


def test_a_partial_is_a_controller() -> None:
    class Gain(Aimd):
        def __init__(self, window: int) -> None:
            super().__init__()
            self.window = window

        def on_ack(self, ack: SimpleNamespace, window: SimpleNamespace) -> None:
            window.cwnd = self.window

    four, eight = (goodput_mbit("own", own=functools.partial(Gain, window=n)) for n in (4, 8))
    assert eight / four == pytest.approx(2, rel=0.02)


NETWORK = """
duration = "8s"
[topology]
kind = "dumbbell"
rate = "20mbit"
rtt = "30ms"
queue = {{ kind = "threshold", limit = "40p", mark = "15p" }}
loss = "0.2%"
[probes]
interval = "100ms"
traces = true
{service}
[[flows]]
cc = "{cc}"
ecn = true
[[flows]]
cc = "{cc}"
start = "1s"
app = {{ rate = "8mbit", on = "500ms", off = "400ms" }}
[[flows]]
cc = "cubic"
start = "2s"
"""
"""A scenario with losses, marks, timeouts and idle times, so that all hooks are called."""


def outputs(cc: str, backend: Simulator, service: str) -> dict[str, dict[str, list[object]]]:
    output = backend.run(Resolver(backend)(narrows.loads(NETWORK.format(cc=cc, service=service))))
    tables = {
        name: {key: value if name == "run" else list(value) for key, value in table.items()}
        for name, table in output.items()
    }
    for key in ("name", "cc", "source"):
        tables["flows"].pop(key)
    for name in ("flow_samples", "traces", "distributions", "events", "signalling"):
        for key in ("name", "entity", "source"):
            tables.get(name, {}).pop(key, None)
    return tables


def services() -> dict[str, str]:
    """The rate controllers that the algorithms need."""
    return {
        name: f'[[rate_controllers]]\nkind = "{row.service.kind}"\nlink = "bottleneck"' if row.service else ""
        for name, row, preset in congestion.names()
        if preset is None
        and (row.service is None or (row.service.feedback == "option" and not row.service.domain))
    }


@pytest.mark.parametrize("name", services())
def test_a_wrapped_built_in_controller_behaves_exactly_like_it(name: str) -> None:
    wrapped = Simulator({"own": functools.partial(BuiltIn, name)})
    expected = outputs(name, Simulator(), services()[name])
    found = outputs("own", wrapped, services()[name])
    assert found.keys() == expected.keys()
    for table, columns in expected.items():
        assert repr(found[table]) == repr(columns), table


def test_a_subclass_of_a_built_in_controller_changes_it() -> None:
    class Half(BuiltIn):
        def __init__(self) -> None:
            super().__init__("cubic", beta=0.85)

        def on_ack(self, ack: SimpleNamespace, window: SimpleNamespace) -> None:
            super().on_ack(ack, window)
            window.cwnd = min(window.cwnd, 4)

    assert goodput_mbit("half", half=Half) == pytest.approx(4 * 1448 * 8 / 0.0412 / 1e6, rel=0.02)


@pytest.mark.parametrize(
    ("name", "params", "says"),
    [
        ("cubik", {}, "cubik"),
        ("cubic", {"bta": 0.5}, "bta"),
        ("cubic", {"beta": 7}, "beta"),
        ("xcp", {}, "expected a controller without congestion headers"),
        ("pacec", {}, "expected a controller without congestion headers and messages"),
    ],
)
def test_an_unknown_built_in_controller_is_refused(name: str, params: dict[str, object], says: str) -> None:
    with pytest.raises(narrows.ScenarioError, match=says):
        BuiltIn(name, **params)


class Observer(Aimd):
    seen: ClassVar[list[tuple[str, object]]] = []

    def on_established(self, connection: SimpleNamespace, _window: SimpleNamespace) -> None:
        self.name = connection.flow
        self.seen.append(("flow", (connection.flow, connection.flow_id)))
        self.timer = connection.now + 0.25

    def on_timer(self, event: SimpleNamespace, _window: SimpleNamespace) -> None:
        self.seen.append(("timer", (self.name, round(event.now, 6))))
        self.timer = event.now + 0.25

    def on_sample(self, ack: SimpleNamespace) -> None:
        self.seen.append(("sample", ack.state))

    def on_lost(self, lost: SimpleNamespace, window: SimpleNamespace) -> None:
        self.seen.append(("lost", lost.lost_since_sent))
        window.cwnd = 1

    def trace(self) -> dict[str, float]:
        return {"count": float(self.count)}


def test_the_optional_hooks_are_called() -> None:
    Observer.seen.clear()
    text = SCENARIO.replace(
        "[[flows]]", '[probes]\ntraces = true\n[[flows]]\nname = "web"\ncount = 2\nspacing = "1s"'
    )
    results = narrows.run(narrows.loads(text.format(cc="own")), backend=Simulator({"own": Observer}))
    seen = {kind: [value for key, value in Observer.seen if key == kind] for kind, _ in Observer.seen}
    assert seen["flow"] == [("web.0", 0), ("web.1", 1)]
    first = [at for name, at in seen["timer"] if name == "web.0"]
    assert len(first) == 19 and first == pytest.approx([first[0] + 0.25 * i for i in range(19)])
    assert {"open", "recovery"} <= set(seen["sample"])
    flows = results.flows.to_pylist()
    assert sum(flow["retransmits"] for flow in flows) > 0 and all(value >= 1 for value in seen["lost"])
    assert min(results.flow_samples.column("cwnd").to_pylist()) > 1, "on_lost cannot change the window"
    traces = results.table("traces").to_pylist()
    assert {row["entity"] for row in traces} == {"web.0", "web.1"} and {row["key"] for row in traces} == {
        "count"
    }


class Marks(Aimd):
    exact_ce_echo = True
    total = marked = 0

    def on_sample(self, ack: SimpleNamespace) -> None:
        Marks.total += ack.acked
        Marks.marked += ack.acked * ack.ece


def test_the_exact_echo_tells_which_packets_were_marked() -> None:
    Marks.total = Marks.marked = 0
    queue = 'queue = { kind = "threshold", limit = "60p", mark = "20p" }\n[[flows]]'
    text = SCENARIO.replace("{cc}", "own").replace("[[flows]]", queue)
    results = narrows.run(narrows.loads(text), backend=Simulator({"own": Marks}))
    (link,) = [row for row in results.links.to_pylist() if row["name"] == "bottleneck"]
    assert Marks.total > 1000
    assert Marks.marked == pytest.approx(link["marks"], abs=20), (
        "all packets except the last few are acknowledged"
    )


class BadTimer(Aimd):
    timer = float("nan")

    def on_timer(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Does nothing."""


def test_an_invalid_timer_is_refused() -> None:
    with pytest.raises(ValueError, match="timer: found nan, expected a time in seconds, or None"):
        goodput_mbit("own", own=BadTimer)


class Late(Paced):
    runs = 0

    def on_established(self, connection: SimpleNamespace, _window: SimpleNamespace) -> None:
        self.timer = connection.now + 0.5

    def on_timer(self, _event: SimpleNamespace, _window: SimpleNamespace) -> None:
        """Leaves the timer as it is."""
        Late.runs += 1


def test_a_timer_runs_once() -> None:
    Late.runs = 0
    goodput_mbit("late", late=Late)
    assert Late.runs == 1


class OwnError(Aimd):
    def trace(self) -> dict[str, float]:
        event = 3
        raise OSError(f"no file {event}")


def test_an_os_error_of_a_class_stays_what_it_is(tmp_path: Path) -> None:
    text = SCENARIO.format(cc="own").replace(
        "[[flows]]", '[probes]\ntraces = true\n[capture]\nhosts = ["s1"]\n[[flows]]'
    )
    with pytest.raises(OSError, match="no file 3") as caught:
        narrows.run(narrows.loads(text), backend=Simulator({"own": OwnError}), out=tmp_path / "out")
    assert caught.value.__notes__ == ["in OwnError.trace"]


def test_a_partial_has_the_description_of_its_class() -> None:
    offered = dict(Simulator({"own": functools.partial(Paced)}).congestion_controllers())
    assert offered["own"] == "A constant rate of 5 Mbit/s."
