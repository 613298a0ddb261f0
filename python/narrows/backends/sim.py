"""The simulator, in this process: virtual time, and the same bytes for the same seed on any machine."""

from __future__ import annotations

import json
from collections.abc import Mapping

from narrows import _native
from narrows.backends import Output
from narrows.errors import ScenarioError
from narrows.scenario.parts import Plan


class Simulator:
    """Runs plans in the native module, which releases the interpreter's lock.

    Args:
        controllers: congestion controllers of your own: classes by the name that `cc` has in the scenario.
            Each flow has an instance. A class has `on_ack(ack, window)` and `on_congestion(event, window)`
            and changes `window.cwnd` and `window.ssthresh` (segments) and `window.pacing_rate` (L3 bytes/s
            or None); optional are `on_established`, `on_recovered`, `on_undo`, `on_restart` and the attribute
            `owns_recovery`. Times are seconds.
    """

    name = "sim"

    def __init__(self, controllers: Mapping[str, type] | None = None) -> None:
        self._cancel = _native.Cancel()
        self._controllers = dict(controllers or {})

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        try:
            _native.check(_json(plan), list(self._controllers))
        except ValueError as error:
            raise ScenarioError(str(error)) from None

    def run(self, plan: Plan) -> Output:
        """Run a plan."""
        try:
            return _native.run(_json(plan), self._cancel, self._controllers)
        except ValueError as error:
            raise ScenarioError(str(error)) from None

    def cancel(self) -> None:
        """Make all runs end soon."""
        self._cancel.set()

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Names that `cc` may take."""
        own = [(name, (cls.__doc__ or "").strip().split("\n")[0]) for name, cls in self._controllers.items()]
        return own + _native.congestion_controllers()

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Names that a controller's `kind` may take."""
        return _native.rate_controllers()


def _json(plan: Plan) -> str:
    return json.dumps(plan, separators=(",", ":"), allow_nan=False)
