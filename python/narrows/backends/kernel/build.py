"""Makes a layout in the kernel, and unmakes it whatever happens: the thin layer of effects."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from narrows.backends.kernel import namespaces, ovs
from narrows.backends.kernel.commands import Commands, commands
from narrows.backends.kernel.layout import Layout
from narrows.backends.kernel.processes import Processes, processes
from narrows.backends.kernel.shell import call, inside


@contextmanager
def built(layout: Layout) -> Iterator[Processes]:
    """A layout for as long as the context lasts; gives the programs of the run, which know its prefix.

    Raises:
        KernelError: if the kernel refuses a part; nothing is left then.
    """
    namespaces.sweep()
    prefix = namespaces.new_prefix()
    todo = commands(layout, prefix)
    try:
        with processes(prefix) as programs:
            make_network(todo)
            ovs.start(layout, programs)
            # Last: ovs-vswitchd removes the qdisc of a port that it is handed.
            make_queues(todo)
            yield programs
    finally:
        namespaces.clean(prefix)


def make_network(todo: Commands) -> None:
    """Make namespaces, devices, addresses, routes.

    Raises:
        KernelError: with the tool's own words.
    """
    call(["ip", "-batch", "-"], [f"netns add {name}" for name in todo.namespaces])
    for name, lines in todo.settings.items():
        inside(name, ["sh", "-e"], lines)
    call(["ip", "-batch", "-"], todo.links)
    for name, lines in todo.addresses.items():
        call(["ip", "-n", name, "-batch", "-"], lines)
    for name, lines in todo.offloads.items():
        inside(name, ["sh", "-e"], lines)
    for name, lines in todo.crossings.items():
        call(["bridge", "-n", name, "-batch", "-"], lines)


def make_queues(todo: Commands) -> None:
    """Make rates and queues.

    Raises:
        KernelError: with tc's own words.
    """
    for name, lines in todo.queues.items():
        call(["tc", "-n", name, "-batch", "-"], lines)
