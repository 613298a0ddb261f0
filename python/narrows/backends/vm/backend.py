"""The vm backend runs a plan on the stacks of a distribution's kernel, in a guest whose time is virtual."""

from __future__ import annotations

import json
import shlex
import tempfile
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, cast

from narrows import rate
from narrows.backends import BY_AGENT, Output
from narrows.backends.kernel import cc, features
from narrows.backends.kernel.agents import BRF, PACEC
from narrows.backends.kernel.backend import check_agents, check_plan, has_agents
from narrows.backends.kernel.pings import Pings
from narrows.backends.kernel.transfer import Transfer
from narrows.backends.vm import closure, foreign, image, package, wire
from narrows.backends.vm.errors import VmError
from narrows.backends.vm.machine import Machine, command, version
from narrows.backends.vm.turns import turn
from narrows.errors import ScenarioError
from narrows.plan import KernelPlan, Plan

MOST = 2
"""Maximum number of guests that run at the same time, over all processes that share a cache.

The limit does not apply to guests that are booted only to be saved."""
_PATIENCE_SECONDS = 900.0
"""Fixed part of a run's time limit, in seconds of real time. `_SLOWEST` determines the other part."""
_SLOWEST = 60.0
"""Seconds of real time that each second of virtual time adds to a run's time limit (see
`_PATIENCE_SECONDS`)."""
_NAP_SECONDS = 0.1


class Vm:
    """Runs each plan in a guest of its own. All guests start from the same saved state.

    If there is no saved state, the first run boots a guest and saves it, after the plan has been checked.

    Args:
        say: called with a line before each step that takes long.

    Raises:
        VmError: if `narrows vm prepare` has not prepared guests.
    """

    name = "vm"
    most_jobs: int | None = MOST

    def __init__(self, say: Callable[[str], None] = lambda _: None) -> None:
        image.prepared()
        self._say = say
        self._saved: dict[image.Extra, image.Image] = {}
        self._checked_extra = image.NO_EXTRA
        self._making = threading.Lock()
        self._cancelled = threading.Event()

    def _image(self, extra: image.Extra = image.NO_EXTRA) -> image.Image:
        """The saved guest with these files. The guest is booted and saved when it is first needed."""
        with self._making:
            if extra not in self._saved:
                self._saved[extra] = image.ensure(self._say, extra)
            return self._saved[extra]

    def facts(self) -> dict[str, Any]:
        """Facts about the guest, for `metadata.json`."""
        # The facts are the same for all additional files, so use the guest of the last checked plan.
        saved = self._image(self._checked_extra)
        kernel = saved.kernel
        return {
            **{key: value for key, value in saved.facts.items() if key != "congestion_controls"},
            "guest": {
                "kernel_package": f"{kernel.package} {kernel.version}",
                "emulator": version(),
                "clock": "virtual: 1 ns for each instruction",
            },
        }

    def check(self, plan: Plan) -> None:
        """Check a plan without running it."""
        if plan.get("sdn") is not None:
            raise ScenarioError("found an SDN controller, expected --on sim or --on kernel", "sdn")
        for number, controller in enumerate(plan["rate_controllers"]):
            if controller["kind"] == PACEC:
                raise ScenarioError(
                    f"found {PACEC!r}, which needs an SDN controller, expected --on sim or --on kernel",
                    f"rate_controllers.{number}.kind",
                )
        if plan.get("capture") is not None:
            raise ScenarioError("found a capture, expected --on sim or --on kernel", "capture")
        layout = check_plan(in_guest(plan))
        if has_agents(plan, layout):
            _check_kernel(plan, image.prepared())
            check_agents(plan, layout)
        files = foreign.prepared(plan).files
        if not self._saved:
            self._checked_extra = files
        # The guest runs this machine's programs.
        features.require(lambda: features.asked(plan.get("kernel") or {}))

    def run(self, plan: Plan) -> Output:
        """Run a plan."""
        its_plan, files = foreign.prepared(in_guest(plan))
        output: dict[str, Any] = wire.unpack(self._ask(its_plan, plan["duration"] / 1e9, files))
        return output

    def perform(self, asked: Transfer | Pings) -> dict[str, Any]:
        """Perform a transfer or pings in a guest."""
        # The guest runs this machine's programs.
        features.require(lambda: features.programs(asked.tools))
        what = {asked.kind: asked.as_data(), "seed": asked.repetition}
        output: dict[str, Any] = self._ask(what, asked.seconds)
        return output

    def lacking(self, algorithms: Iterable[str]) -> dict[str, str]:
        """The algorithms in `algorithms` that transfers cannot use, each with the reason."""
        saved = self._image()
        known = saved.facts["congestion_controls"]
        why = f"the guest's Linux {saved.kernel.release} has {', '.join(known)} only"
        return {name: why for name in algorithms if name not in known}

    def _ask(self, what: Mapping[str, Any], seconds: float, extra: image.Extra = image.NO_EXTRA) -> Any:
        """Perform a plan, a transfer or pings in a guest, and return the output.

        Args:
            what: the plan itself, or a mapping from the kind of a task to the transfer or the pings.
            seconds: the duration in the guest.
            extra: additional files of the guest.
        """
        with tempfile.TemporaryDirectory(prefix="narrows-vm-") as name:
            folder = Path(name)
            plan_file = folder / "plan"
            plan_file.write_text(json.dumps(what, separators=(",", ":"), allow_nan=False), encoding="utf-8")
            saved = self._image(extra)
            words = command(saved.kernel.image, saved.initramfs, folder, plan_file)
            words += ["-incoming", f"exec:cat {shlex.quote(str(saved.state))}"]
            with (
                turn(package.cache() / "turns", MOST, self._cancelled, self._say),
                Machine(words, folder) as machine,
            ):
                machine.wake()
                answer = self._answer(machine, folder / "answer", seconds)
        if "refused" in answer:
            raise ScenarioError(answer["refused"], answer["key"])
        if "failed" in answer:
            raise VmError(f"in the guest: {answer['failed']}")
        return answer["output"]

    def _answer(self, machine: Machine, file: Path, duration: float) -> dict[str, Any]:
        patience = _PATIENCE_SECONDS + _SLOWEST * duration
        until = time.monotonic() + patience
        while not self._cancelled.wait(_NAP_SECONDS):
            ended = machine.ended
            text = file.read_bytes()
            if text.endswith(b"\n"):
                answer: dict[str, Any] = json.loads(text)
                return answer
            if ended:
                raise VmError(f"the guest ended: {machine.last_words()}")
            if time.monotonic() > until:
                raise VmError(f"the guest did not end within {patience:.0f} s: {machine.last_words()}")
        raise KeyboardInterrupt

    def cancel(self) -> None:
        """Stop all runs."""
        self._cancelled.set()

    def congestion_controllers(self) -> list[tuple[str, str]]:
        """Names that `cc` may take: the algorithms that the guest's kernel is expected to have.

        If narrows-agent is installed, the algorithms that it loads are included.
        """
        with self._making:
            if image.NO_EXTRA not in self._saved and (existing := image.existing()) is not None:
                self._saved[image.NO_EXTRA] = existing
            saved = self._saved.get(image.NO_EXTRA)
        kernel = package.found()
        loaded = cc.NAMES if closure.agent() else ()
        with_brf = (BRF,) if loaded and kernel is not None and kernel.runs_agents else ()
        ahead = [*image.offered(), *loaded, *with_brf]
        names = saved.facts["congestion_controls"] if saved is not None else ahead
        by_agent = (*cc.NAMES, BRF)
        return [(name, BY_AGENT if name in by_agent else "of the guest's kernel") for name in names]

    def rate_controllers(self) -> list[tuple[str, str]]:
        """Names that a controller's `kind` may take: the kinds that the agent offers."""
        return [(kind, BY_AGENT) for kind in rate.on_switches()]


def _check_kernel(plan: Plan, kernel: package.Kernel) -> None:
    """Check that the guest's kernel runs BRF's agents."""
    if kernel.runs_agents:
        return
    found, key = "agents", "flows"
    if plan["rate_controllers"]:
        found, key = repr(plan["rate_controllers"][0]["kind"]), "rate_controllers.0.kind"
    wanted = ".".join(map(str, package.AGENTS_SINCE))
    raise ScenarioError(
        f"found {found}, which needs Linux {wanted}, but the guest has {kernel.release}: "
        f"run narrows vm prepare --kernel {package.RECENT}",
        key,
    )


def in_guest(plan: Plan) -> Plan:
    """The plan with the guest's defaults: netem makes delays, and Open vSwitch uses the kernel's datapath.

    The alternatives, the relay and the userspace datapath, are programs. Because the guest executes only 1e9
    instructions per second, these programs would take tens of microseconds for each packet.
    """
    asked: KernelPlan = plan.get("kernel") or {}
    given = {key: value for key, value in asked.items() if value is not None}
    kernel = {"delay": "netem", "datapath": "system"} | given
    return {**plan, "kernel": cast("KernelPlan", kernel)}
