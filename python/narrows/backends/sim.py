"""The simulator, in this process: virtual time, and the same bytes for the same seed on any machine."""

from __future__ import annotations

import json

from narrows import _native
from narrows.backends import Output
from narrows.errors import ScenarioError
from narrows.scenario.parts import Plan


class Simulator:
    """Runs plans in the native module, which releases the interpreter's lock."""

    name = "sim"

    def __init__(self) -> None:
        self._cancel = _native.Cancel()

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        try:
            _native.check(_json(plan))
        except ValueError as error:
            raise ScenarioError(str(error)) from None

    def run(self, plan: Plan) -> Output:
        """Run a plan."""
        try:
            return _native.run(_json(plan), self._cancel)
        except ValueError as error:
            raise ScenarioError(str(error)) from None

    def cancel(self) -> None:
        """Make all runs end soon."""
        self._cancel.set()

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Names that `cc` may take."""
        return _native.congestion_controllers()

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Names that a controller's `kind` may take."""
        return _native.rate_controllers()


def _json(plan: Plan) -> str:
    return json.dumps(plan, separators=(",", ":"), allow_nan=False)
