"""The program in the guest. When the program is ready, the guest is saved. A resumed guest runs one plan.

The program never waits for the host while virtual time passes. The plan is in the machine's firmware
configuration, which can be read by instructions alone, without interrupts. The program writes the answer at
the end.
"""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import time
import traceback
from pathlib import Path
from typing import Any, cast

from narrows.backends.kernel import ovs
from narrows.backends.kernel.agents import BRF, SENDERS
from narrows.backends.kernel.backend import Kernel, check_plan
from narrows.backends.kernel.pings import Pings
from narrows.backends.kernel.transfer import Transfer
from narrows.backends.vm import wire
from narrows.backends.vm.package import runs_agents
from narrows.errors import NarrowsError, ScenarioError
from narrows.plan import Plan

PORT = Path("/dev/virtio-ports/narrows")
PLAN = "opt/narrows/plan"
_FIRMWARE = Path("/sys/firmware/qemu_fw_cfg/by_name") / PLAN / "raw"
_RNDRESEEDCRNG = 0x5207
"""Number of the ioctl that reseeds the random number generator (linux/random.h)."""
_RESEED_SETTLE_SECONDS = 130
"""Time that the guest sleeps before it is saved. The guest skips idle time, so the sleep takes no real time.

In its first two minutes, the kernel often reseeds its random number generator. Later it does so only once a
minute (crng_has_old_seed, drivers/char/random.c). Because of the sleep, losses in runs of up to a minute
depend only on the run's seed.
"""
_PVPANIC = 0x505
"""The I/O port of QEMU's pvpanic device (docs/specs/pvpanic.txt): a write stops the machine (`-action`)."""


def main() -> None:
    """Wait for a plan, run it and answer."""
    port = _port()
    try:
        kernel = Kernel(virtual=True)
        facts = {
            **kernel.facts(),
            "congestion_controls": sorted(
                name
                for name, _ in kernel.congestion_controllers()
                # Flows with `pacec` need an SDN controller, which guests do not support.
                if name not in SENDERS or (name == BRF and runs_agents(os.uname().release))
            ),
        }
    except NarrowsError as error:
        _say(port, {"failed": str(error)})
        return
    time.sleep(_RESEED_SETTLE_SECONDS)
    _say(port, {"ready": facts})
    _pause()
    subprocess.run(["modprobe", "qemu_fw_cfg"], check=True)
    asked: dict[str, Any] = json.loads(_FIRMWARE.read_bytes())
    _seed(int(asked["seed"]))
    _say(port, _answer(kernel, asked))


def _answer(kernel: Kernel, asked: dict[str, Any]) -> dict[str, Any]:
    try:
        for kind in (Transfer, Pings):
            if kind.kind in asked:
                subprocess.run(["modprobe", "-a", "bridge", "sch_tbf"], check=True)
                return {"output": kernel.perform(kind(**asked[kind.kind]))}
        plan = cast("Plan", asked)
        if ovs.by_module(check_plan(plan)):
            subprocess.run(["modprobe", "openvswitch"], check=True)
        return {"output": wire.pack(kernel.run(plan))}
    except ScenarioError as error:
        return {"refused": error.message, "key": error.key}
    except NarrowsError as error:
        return {"failed": str(error)}
    except Exception:
        return {"failed": traceback.format_exc(limit=-3)}


def _seed(seed: int) -> None:
    """Seed the kernel's random number generator with the run's seed.

    The generator determines netem's losses.
    """
    with open("/dev/urandom", "wb", buffering=0) as numbers:  # noqa: PTH123
        numbers.write(seed.to_bytes(16, "little"))
        fcntl.ioctl(numbers, _RNDRESEEDCRNG)


def _pause() -> None:
    """Stop the guest. In a guest that is resumed from the saved state, this call returns."""
    with open("/dev/port", "r+b", buffering=0) as ports:  # noqa: PTH123
        ports.seek(_PVPANIC)
        ports.write(b"\x01")


def _port() -> int:
    for entry in Path("/sys/class/virtio-ports").iterdir():
        if (entry / "name").read_text().strip() == "narrows":
            return os.open(f"/dev/{entry.name}", os.O_RDWR)
    sys.exit("found no port to the host")


def _say(port: int, message: dict[str, Any]) -> None:
    data = json.dumps(message, separators=(",", ":")).encode() + b"\n"
    while data:
        data = data[os.write(port, data) :]
