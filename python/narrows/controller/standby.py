"""Which of two controllers is active. Pure: time is an argument.

Each controller tells the other one whether it is active. The standby takes over when, for some time, neither
the other controller nor any switch has shown that one is active. A switch shows it by its generation id
(OpenFlow 1.3.5, 6.3.6), which the active controller raises every second. So a broken connection between the
controllers alone changes nothing.

If both are active after all, e.g. because each saw only its half of a divided network, the controller with
the higher generation stays.
"""

from __future__ import annotations

GENERATIONS = 1 << 64
"""Generation ids have 64 bits. The largest one stands for none."""


class Election:
    """One controller's view of the two.

    Args:
        now_ns: time of the start. The controller starts as a standby.
        own: name of this controller.
        other: name of the other one.
        takeover_ns: after this time without a sign of an active controller the standby takes over.
    """

    def __init__(self, now_ns: int, own: str, other: str, takeover_ns: int) -> None:
        self.is_active = False
        self.generation = 0
        """The largest generation that any controller has used, as far as this one knows."""
        self._own, self._other, self._takeover_ns = own, other, takeover_ns
        self._sign_ns = now_ns

    def on_peer(self, now_ns: int, is_active: bool, generation: int) -> bool:
        """Handles the other controller's state. Returns whether this controller must step down."""
        if self.is_active:
            return is_active and (generation, self._other) > (self.generation, self._own)
        self.generation = max(self.generation, generation)
        # If both are standbys, the first by name becomes active, and the other one waits for it.
        if is_active or self._other < self._own:
            self._sign_ns = now_ns
        return False

    def on_switch(self, now_ns: int, generation: int, demoted: bool) -> bool:
        """Handles the generation id of a switch. Returns whether this controller must step down.

        Args:
            now_ns: the time.
            generation: the switch's generation id.
            demoted: whether this connection was the switch's master and no longer is.
        """
        generation = 0 if generation == GENERATIONS - 1 else generation
        if self.is_active and demoted and (generation, self._other) > (self.generation, self._own):
            return True
        if generation > self.generation:
            self.generation = generation
            if not self.is_active:
                self._sign_ns = now_ns
        return False

    def tick(self, now_ns: int) -> bool:
        """Handles the passage of time. Returns whether this controller becomes active now."""
        if self.is_active or now_ns - self._sign_ns < self._takeover_ns:
            return False
        self.is_active = True
        self.raise_generation()
        return True

    def raise_generation(self) -> int:
        """The next generation, by which switches see that this controller is alive."""
        self.generation = min(self.generation + 1, GENERATIONS - 2)
        return self.generation
