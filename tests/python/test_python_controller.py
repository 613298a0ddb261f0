"""A Python class serves as a congestion controller."""

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
    """Additive increase, multiplicative decrease: Reno, written in Python."""

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
        """Half."""
        assert event.signal in ("loss", "ecn", "timeout")
        window.ssthresh = max(window.cwnd // 2, 2)


class Paced:
    """Five megabits per second, whatever happens."""

    owns_recovery = True

    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Always the same."""
        window.cwnd = 100
        window.pacing_rate = 5e6 / 8

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Nothing to do."""


class Broken:
    """Raises."""

    def on_ack(self, _ack: SimpleNamespace, _window: SimpleNamespace) -> None:
        """Fail."""
        raise ZeroDivisionError("on purpose")

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Nothing to do."""


def goodput_mbit(cc: str, **controllers: type) -> float:
    scenario = narrows.loads(SCENARIO.format(cc=cc))
    results = narrows.run(scenario, backend=Simulator(controllers))
    return results.flows.column("goodput_bps")[0].as_py() / 1e6


def test_the_python_reno_does_what_the_rust_reno_does() -> None:
    assert goodput_mbit("aimd", aimd=Aimd) == pytest.approx(goodput_mbit("reno"), rel=0.02)


def test_a_python_controller_paces() -> None:
    assert goodput_mbit("paced", paced=Paced) == pytest.approx(5 * 1448 / 1500, rel=0.02)


def test_an_exception_in_a_controller_ends_the_run_and_comes_out() -> None:
    with pytest.raises(ZeroDivisionError, match="on purpose") as caught:
        goodput_mbit("broken", broken=Broken)
    # The handshake takes an RTT of 40 ms, the first ACK of data another and what transmission takes.
    (note,) = caught.value.__notes__
    assert note.startswith("in Broken.on_ack, at 0.08") and note.endswith(" s of the simulation")


class Unlucky(Aimd):
    """Raises beyond its own methods, and late."""

    def on_congestion(self, event: SimpleNamespace, _window: SimpleNamespace) -> None:
        """Fail."""
        self.fail(event.now)

    def fail(self, now: float) -> None:
        """A helper that a method calls."""
        raise ValueError(f"at {now:.9g} s")


def test_the_note_is_of_the_method_that_was_called() -> None:
    with pytest.raises(ValueError, match="at ") as caught:
        goodput_mbit("unlucky", unlucky=Unlucky)
    assert caught.value.__notes__ == [f"in Unlucky.on_congestion, {caught.value} of the simulation"]


class Negative:
    """Decides nonsense."""

    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Below one segment."""
        window.cwnd = -5

    def on_congestion(self, event: SimpleNamespace, window: SimpleNamespace) -> None:
        """Nothing to do."""


class Silent(Paced):
    """Would never send again."""

    def on_ack(self, _ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Not a rate."""
        window.pacing_rate = float("nan")


class Half:
    """Lacks a hook."""

    def on_ack(self, ack: SimpleNamespace, window: SimpleNamespace) -> None:
        """Nothing to do."""


@pytest.mark.parametrize(
    ("cls", "error", "says"),
    [
        (Negative, ValueError, "window.cwnd: found -5, expected a whole number"),
        (Silent, ValueError, "window.pacing_rate: found nan"),
        (Half, TypeError, "has no method on_congestion"),
    ],
)
def test_nonsense_is_refused_by_name(cls: type, error: type[Exception], says: str) -> None:
    with pytest.raises(error, match=says) as caught:
        goodput_mbit("own", own=cls)
    assert not isinstance(caught.value, narrows.NarrowsError), "it is not the scenario's fault"
    assert any(cls.__name__ in text for text in (str(caught.value), *getattr(caught.value, "__notes__", ())))
