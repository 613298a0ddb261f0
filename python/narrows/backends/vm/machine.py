"""A guest as a process: QEMU's command line, and its control by QMP over its standard input and output."""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import subprocess
import threading
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from narrows.backends.vm.errors import VmError

CPU = "qemu64,+ssse3,+sse4.1,+sse4.2,+popcnt,+cx16,+lahf-lm"
"""What numpy is compiled for (x86-64-v2), and no more: what a processor has not is not emulated."""
MEMORY_MB = 2048
_NAP_SECONDS = 0.05
_turns = itertools.count(os.getpid())
QEMU = "qemu-system-x86_64"
KERNEL_WORDS = (
    "mitigations=off clearcpuid=112 tsc=reliable thash_entries=256 no5lvl nowatchdog "
    "console=ttyS0 loglevel=4 panic=-1 random.trust_bootloader=on net.ifnames=0"
)
"""What makes emulation fast; clearcpuid=112 takes SMAP away, each use of which would be emulated."""


def command(kernel: Path, initramfs: Path, folder: Path, plan: Path) -> list[str]:
    """QEMU's command line.

    One processor whose clock counts its own instructions, a nanosecond each, and jumps over what it sleeps
    (`icount`, `sleep=off`); the calendar hangs on that clock too.

    Args:
        kernel: its image.
        initramfs: all of the guest's files.
        folder: where its console and its answer are written.
        plan: the file that the guest reads.
    """
    return [
        *("setpriv", "--pdeathsig", "KILL", QEMU),
        *("-nodefaults", "-no-user-config", "-display", "none", "-no-reboot"),
        *("-machine", "q35,usb=off,smbus=off,sata=off", "-cpu", CPU, "-smp", "1", "-m", str(MEMORY_MB)),
        *("-accel", "tcg", "-icount", "shift=0,sleep=off", "-rtc", "base=2020-01-01,clock=vm"),
        *("-kernel", str(kernel), "-initrd", str(initramfs), "-append", KERNEL_WORDS),
        *("-device", "pvpanic", "-action", "panic=pause"),
        *("-chardev", f"file,id=console,path={folder / 'console'}", "-serial", "chardev:console"),
        *("-device", "virtio-serial-pci"),
        *("-chardev", f"file,id=answer,path={folder / 'answer'}"),
        *("-device", "virtserialport,chardev=answer,name=narrows"),
        *("-fw_cfg", f"name=opt/narrows/plan,file={plan}"),
        *("-chardev", "stdio,id=control,signal=off", "-mon", "chardev=control,mode=control"),
    ]


def version() -> str:
    """QEMU's own words about itself."""
    try:
        done = subprocess.run([QEMU, "--version"], capture_output=True, text=True, check=False)
    except FileNotFoundError:
        raise VmError(f"found no {QEMU}, needed for guests: narrows vm prepare") from None
    return done.stdout.partition("\n")[0]


def _alone() -> list[str]:
    """What keeps QEMU's threads from running beside each other, and the guest behind other work.

    Beside the thread that executes, another may find the guest's processor asleep before its last
    instructions are counted, and then moves the clock too far by them, some microseconds
    (icount_start_warp_timer, softmmu/icount.c). On one processor of the host, and as a batch job, which no
    waking thread preempts, it hardly can.
    """
    processors = sorted(os.sched_getaffinity(0))
    processor = processors[next(_turns) % len(processors)]
    return ["chrt", "--batch", "0", "taskset", "--cpu-list", str(processor)]


class Machine:
    """A QEMU that runs until the context ends.

    Args:
        words: its command line.
        folder: where its console, its answer and its own words are written.
        alone: see `_alone`; what is not measured need not be.
    """

    def __init__(self, words: Sequence[str], folder: Path, alone: bool = True) -> None:
        self.folder = folder
        self._errors = (folder / "qemu").open("w+b")
        self._process = subprocess.Popen(
            ["nice", "-n", "10", *(_alone() if alone else []), *words],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            start_new_session=True,  # Ctrl-C at a terminal goes to all of its processes
        )
        self._events: list[dict[str, Any]] = []
        self._news = threading.Condition()
        self._ended = False
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        self.ask("qmp_capabilities")

    def __enter__(self) -> Machine:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def kill(self) -> None:
        """End it at once."""
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()
        self._process.wait()
        self._reader.join()
        self._errors.close()

    def ask(self, what: str, **arguments: Any) -> Any:
        """A QMP command and its answer.

        Raises:
            VmError: if QEMU ends or refuses.
        """
        stdin = self._process.stdin
        assert stdin is not None
        request = {"execute": what} | ({"arguments": arguments} if arguments else {})
        try:
            stdin.write(json.dumps(request).encode() + b"\n")
            stdin.flush()
        except BrokenPipeError:
            raise VmError(f"QEMU ended: {self.last_words()}") from None
        while True:
            message = self.hear(("return", "error"))
            if "error" in message:
                raise VmError(f"QEMU refuses {what}: {message['error'].get('desc')}")
            return message["return"]

    def hear(self, keys: Sequence[str], timeout: float = 60.0, event: str | None = None) -> dict[str, Any]:
        """The next message with one of these keys (and of this event).

        Raises:
            VmError: if none comes.
        """

        def find() -> int | None:
            for i, message in enumerate(self._events):
                if any(key in message for key in keys) and (event is None or message.get("event") == event):
                    return i
            return None

        with self._news:
            self._news.wait_for(lambda: find() is not None or self._ended, timeout)
            place = find()
            if place is None:
                why = "ended" if self._ended else f"did not answer within {timeout:.0f} s"
                raise VmError(f"the guest {why}: {self.last_words()}")
            return self._events.pop(place)

    def save(self, state: Path) -> None:
        """Write the machine, which must have stopped, into a file.

        Raises:
            VmError: if that fails.
        """
        self.ask("migrate-set-parameters", **{"max-bandwidth": 1 << 40})
        self.ask("migrate", uri=f"exec:cat > {shlex.quote(str(state))}")
        while (status := self.ask("query-migrate")["status"]) != "completed":
            if status in ("failed", "cancelled"):
                raise VmError("saving the guest failed: is the disk full?")
            time.sleep(_NAP_SECONDS)

    def wake(self) -> None:
        """Go on from a saved state (`-incoming`), once it is read."""
        while self.ask("query-status")["status"] == "inmigrate":
            time.sleep(_NAP_SECONDS)
        self.ask("cont")

    @property
    def ended(self) -> bool:
        """Whether QEMU is gone."""
        return self._ended

    def last_words(self) -> str:
        """The tail of what QEMU and the console said."""
        for name in ("qemu", "console"):
            with contextlib.suppress(OSError):
                lines = (self.folder / name).read_text("utf-8", "replace").strip().splitlines()
                if lines:
                    return " / ".join(line.strip() for line in lines[-4:])
        return "it said nothing"

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        for line in stdout:
            with contextlib.suppress(ValueError):
                message = json.loads(line)
                with self._news:
                    self._events.append(message)
                    self._news.notify_all()
        with self._news:
            self._ended = True
            self._news.notify_all()
