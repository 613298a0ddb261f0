"""Congestion controllers written in Python."""

from types import SimpleNamespace

import narrows
import pytest
from narrows.backends.sim import Simulator

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
    """Reno in Python: additive increase, multiplicative decrease."""

    def __init__(self) -> None:
        self.count = 0

    def on_ack(self, ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Slow start, then a segment per window."""
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
        """Halves the window."""
        assert event.signal in ("loss", "ecn", "timeout")
        window.ssthresh = max(window.cwnd // 2, 2)


class Paced:
    """A constant rate of 5 Mbit/s."""

    owns_recovery = True

    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Sets the constant rate."""
        window.cwnd = 100
        window.pacing_rate = 5e6 / 8

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Does nothing."""


class Broken:
    """Raises an exception."""

    def on_ack(self, _ack: SimpleNamespace, _window: SimpleNamespace) -> None:
        """Raises."""
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
    # The handshake takes an RTT of 40 ms. The first ACK of data takes another RTT and the transmission time.
    (note,) = caught.value.__notes__
    assert note.startswith("in Broken.on_ack, at 0.08") and note.endswith(" s of the simulation")


class Unlucky(Aimd):
    """Raises late, in a function that its hook calls."""

    def on_congestion(self, event: SimpleNamespace, _window: SimpleNamespace) -> None:
        """Raises."""
        self.fail(event.now)

    def fail(self, now: float) -> None:
        """A helper that a method calls."""
        raise ValueError(f"at {now:.9g} s")


def test_the_exceptions_note_names_the_hook() -> None:
    with pytest.raises(ValueError, match="at ") as caught:
        goodput_mbit("unlucky", unlucky=Unlucky)
    assert caught.value.__notes__ == [f"in Unlucky.on_congestion, {caught.value} of the simulation"]


class Negative:
    """Sets an invalid window."""

    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Sets less than one segment."""
        window.cwnd = -5

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Does nothing."""


class Silent(Paced):
    """Sets a rate at which the flow would never send again."""

    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Sets an invalid rate."""
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
    assert not isinstance(caught.value, narrows.NarrowsError), "it is not the scenario's fault"
    assert any(cls.__name__ in text for text in (str(caught.value), *getattr(caught.value, "__notes__", ())))
