"""Decides which of two controllers is active. `Election` does no input or output, and reads no clock.

Each controller tells the other controller whether it is active. The active controller also raises the
generation id at each switch every second (OpenFlow 1.3.5, 6.3.6). The standby takes over if it has seen
neither of these signs for some time. It does not take over if only the connection between the controllers is
broken.

Both controllers can become active, e.g. if each can reach only one half of a divided network. As soon as one
active controller notices the other, only the controller with the higher generation stays active.
"""

from __future__ import annotations

GENERATIONS = 1 << 64
"""Number of generation ids, which have 64 bits. The largest id means that there is no generation."""


class Election:
    """One controller's view of the pair.

    Args:
        now_ns: time of the start. The controller starts as a standby.
        own: name of this controller.
        other: name of the other controller.
        takeover_ns: the standby takes over after this time without a sign of an active controller.
    """

    def __init__(self, now_ns: int, own: str, other: str, takeover_ns: int) -> None:
        self.is_active = False
        self.generation = 0
        """The largest known generation that a controller has used."""
        self._own, self._other, self._takeover_ns = own, other, takeover_ns
        self._sign_ns = now_ns

    def on_peer(self, now_ns: int, is_active: bool, generation: int) -> bool:
        """Handles a message with the other controller's state.

        Returns whether this controller must step down.
        """
        if self.is_active:
            return is_active and (generation, self._other) > (self.generation, self._own)
        self.generation = max(self.generation, generation)
        # If both controllers are standbys, the controller whose name sorts first becomes active. The
        # controller with the other name waits.
        if is_active or self._other < self._own:
            self._sign_ns = now_ns
        return False

    def on_switch(self, now_ns: int, generation: int, demoted: bool) -> bool:
        """Handles the generation id of a switch. Returns whether this controller must step down.

        Args:
            now_ns: the time.
            generation: the switch's generation id.
            demoted: whether this controller was the switch's master before, and no longer is.
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
        """Takes over after `takeover_ns` without a sign. Returns whether the controller became active."""
        if self.is_active or now_ns - self._sign_ns < self._takeover_ns:
            return False
        self.is_active = True
        self.raise_generation()
        return True

    def raise_generation(self) -> int:
        """Raises the generation and returns it. The new generation shows that this controller is alive."""
        self.generation = min(self.generation + 1, GENERATIONS - 2)
        return self.generation
