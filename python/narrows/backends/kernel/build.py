"""Creates a network in the kernel, and removes it even after errors."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from narrows.backends.kernel import namespaces, ovs
from narrows.backends.kernel.commands import Commands, commands
from narrows.backends.kernel.layout import Layout
from narrows.backends.kernel.processes import Processes, processes
from narrows.backends.kernel.shell import call, inside


@contextmanager
def built(layout: Layout) -> Iterator[Processes]:
    """Create the network of a layout for the duration of the context. Yields the programs of the run.

    Raises:
        KernelError: if the kernel refuses a part. Before this error, all created objects are removed.
    """

    def switches(programs: Processes) -> None:
        # The switches must start before the queues are created, because ovs-vswitchd removes the qdisc of
        # each port that it takes over.
        ovs.start(layout, programs)

    with created(lambda prefix: commands(layout, prefix), switches) as programs:
        yield programs


@contextmanager
def created(
    todo: Callable[[str], Commands], before_queues: Callable[[Processes], None] = lambda _: None
) -> Iterator[Processes]:
    """Create a network for the duration of the context. Yields the programs of the run.

    Args:
        todo: returns the commands, given the prefix of the namespaces' names.
        before_queues: called after the devices and before the queues are created.

    Raises:
        KernelError: if the kernel refuses a part. Before this error, all created objects are removed.
    """
    namespaces.sweep()
    prefix = namespaces.new_prefix()
    made = todo(prefix)
    try:
        with processes(prefix) as programs:
            _make_network(made)
            before_queues(programs)
            _make_queues(made)
            yield programs
    finally:
        namespaces.clean(prefix)


def _make_network(todo: Commands) -> None:
    """Create namespaces, devices, addresses and routes.

    Raises:
        KernelError: with the tool's message.
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


def _make_queues(todo: Commands) -> None:
    """Create rates and queues.

    Raises:
        KernelError: with tc's message.
    """
    for name, lines in todo.queues.items():
        call(["tc", "-n", name, "-batch", "-"], lines)
