"""Changes that happen when a flow enters a phase of its congestion controller."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from narrows.errors import ScenarioError, found, hint
from narrows.plan import AppChangePlan, FlowPlan, LinkChangePlan, TriggerPlan
from narrows.scenario import parts
from narrows.scenario.beginning import Beginning

if TYPE_CHECKING:
    from narrows.scenario.network import Change
    from narrows.scenario.traffic import AppChange


class Triggers:
    """Collects the triggers of a plan."""

    def __init__(self, flows: Sequence[FlowPlan], kernel: str) -> None:
        self.made: list[TriggerPlan] = []
        self._kernel = kernel
        single = (
            (flow["name"], i)
            for i, flow in enumerate(flows)
            if flow["transport"]["kind"] == "tcp" and flow["app"]["kind"] != "poisson" and flow["count"] == 1
        )
        self._flows = dict(single)

    def of_link(self, link: int, changes: Sequence[Change], key: str) -> None:
        """Adds the changes of a link at phases. `key` is the scenario's key of the link.

        Raises:
            ScenarioError: if no single TCP flow has the name.
        """
        for number, change in enumerate(changes):
            given = (change.rate, change.delay, change.loss, change.jitter)
            if change.when is None or given == (None, None, None, None):
                continue
            values: LinkChangePlan = {
                "kind": "link",
                "link": link,
                "rate": None if change.rate is None else change.rate // 8,
                "delay": change.delay,
                "loss": None if change.loss is None else parts.loss_plan(change.loss),
                "jitter": None if change.jitter is None else parts.jitter_plan(change.jitter),
            }
            self._add(change.when, change.time, values, f"{key}.at.{number}.when")

    def of_app(self, flow: int, changes: Sequence[AppChange], key: str) -> None:
        """Adds the changes of an application at phases. `key` is the scenario's key of the flow.

        Raises:
            ScenarioError: if no single TCP flow has the name.
        """
        for number, change in enumerate(changes):
            if change.when is not None:
                rate = None if change.rate is None else change.rate // 8
                values: AppChangePlan = {"kind": "app", "flow": flow, "rate": rate}
                self._add(change.when, change.time, values, f"{key}.app.at.{number}.when")

    def _add(
        self, when: Beginning, after: int | None, change: LinkChangePlan | AppChangePlan, key: str
    ) -> None:
        if self._kernel:
            raise ScenarioError(
                "found a phase, expected --on sim, because real stacks do not report phases", key
            )
        if when.flow not in self._flows:
            raise ScenarioError(
                f"found {found(when.flow)}, expected the name of a single TCP flow"
                f"{hint(when.flow, self._flows)}",
                f"{key}.flow",
            )
        trigger: TriggerPlan = {
            "flow": self._flows[when.flow],
            "phase": when.phase,
            "visit": when.visit,
            "after": after or 0,
            "change": change,
        }
        self.made.append(trigger)
