"""Congestion controllers written in Python.

A controller is a class. Each flow has its own instance. A scenario names the class by its file:

    cc = "copa.py:Copa"                            # relative to the folder of the scenario
    cc = { name = "copa.py:Copa", delta = 0.5 }    # parameters are keyword arguments of the class

Whole numbers are passed as `int`, all other numbers as `float`.

Required methods (times in seconds, amounts in segments, rates in L3 bytes/s):

    on_ack(ack, window)             after each ACK, except while PRR sets the window
    on_congestion(event, window)    event.signal is "loss", "ecn" or "timeout": set window.ssthresh

Optional methods:

    on_established(connection, window)    the handshake is complete; `flow` and `flow_id` tell flows apart
    on_sample(ack)                        after each ACK, in any state, before `on_ack`
    on_lost(lost, window)                 a segment was marked lost; the window cannot be changed
    on_recovered(event, window)           recovery has ended
    on_undo(event, window)                the reduction was spurious, and the transport has undone it
    on_restart(event, window)             the flow sends again after an idle time
    on_timer(event, window)               at the time of the attribute `timer`
    trace()                               returns values of the internal state by name, for the table traces

Optional attributes:

    timer             time of the next `on_timer`, or None; hooks set it
    owns_recovery     True: the class also sets the window in recovery, instead of PRR
    exact_ce_echo     True: the flow negotiates ECN, and `ack.ece` tells whether its packets were marked
    wants_feedback    True: the flow asks the network for rates (BRF); `ack.feedback` has them

Methods and attributes are looked up once, after `__init__`. Later changes have no effect, except changes to
the values of `timer` and `owns_recovery`. If the file imports other files of its folder, the imports must be
at the top of the file, not in functions. `_native.pyi` lists the fields of `ack`, `window` and the events.
An exception in a method ends the run. It is raised again with a note that names the class, the method and the
simulated time.
"""

from __future__ import annotations

import functools
import hashlib
import inspect
import sys
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType
from typing import Any

from narrows import _native
from narrows.congestion import class_file, find
from narrows.errors import ScenarioError, described, found
from narrows.parameters import in_base_units

_HOOKS = ("on_ack", "on_congestion")


@dataclass(frozen=True)
class ClassFile:
    """A class in a file. Calling this object creates an instance of the class, in any process.

    The object contains the text of the file, so workers on other machines need no copy of the file.
    """

    name: str
    """The value of `cc`: FILE.py:CLASS."""
    path: str
    """Path of the file."""
    text: str
    """The file's content."""

    def __call__(self, **params: object) -> object:
        """An instance with these parameters."""
        return self.cls(**params)

    @property
    def cls(self) -> Callable[..., object]:
        """The class.

        Raises:
            Exception: any exception that the file raises when it is imported.
            AttributeError: if the file has no such class.
        """
        module = _module(self.path, self.text).module
        return getattr(module, self.name.rpartition(":")[2])  # type: ignore[no-any-return]

    @property
    def digest(self) -> str:
        """SHA-256 of the text, and of the files in the same folder that it imports."""
        imported = _module(self.path, self.text).neighbours
        return hashlib.sha256("\0".join([self.text, *imported]).encode()).hexdigest()


def load(name: str, folder: Path) -> ClassFile:
    """Load a class.

    Args:
        name: the file and the class, as FILE.py:CLASS.
        folder: the folder from which a relative path of the file starts.

    Raises:
        ScenarioError: if the file cannot be read or imported, or if it has no such class.
    """
    named = class_file(name)
    assert named is not None
    file, cls_name = named
    path = folder / file
    try:
        if path.exists() and not path.is_file():
            raise ScenarioError(f"found {found(file)}, which is not a file, expected a Python file")
        source = ClassFile(name, str(path.absolute()), path.read_text(encoding="utf-8"))
    except UnicodeDecodeError:
        raise ScenarioError(f"found {found(file)}, expected a text file") from None
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "not a path"
        raise ScenarioError(f"found {found(file)}, expected a readable file ({reason})") from None
    _import.cache_clear()  # files that the user's file imports may have changed
    try:
        module = _module(source.path, source.text).module
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # the user's file can raise any exception, e.g. SystemExit
        raise ScenarioError(
            f"found {found(file)} that raises {described(error)}, expected a file that can be imported"
        ) from error
    cls = getattr(module, cls_name, None)
    if not callable(cls):
        own = [
            name
            for name, value in vars(module).items()
            if inspect.isclass(value)
            and value.__module__ == module.__name__
            and all(hasattr(value, hook) for hook in _HOOKS)
        ]
        has = f"; it has {', '.join(own)}" if own else ""
        raise ScenarioError(f"found {found(name)}, expected a class of this name in {file}{has}")
    if inspect.isclass(cls) and (lacking := [hook for hook in _HOOKS if not hasattr(cls, hook)]):
        raise ScenarioError(
            f"found {found(name)} without the method {lacking[0]}, expected {' and '.join(_HOOKS)}"
        )
    return source


def check_parameters(factory: Callable[..., object], name: str, params: Mapping[str, Any]) -> None:
    """Check that a class takes these parameters.

    Raises:
        ScenarioError: if the class does not take them.
    """
    target = factory.cls if isinstance(factory, ClassFile) else factory
    try:
        signature = inspect.signature(target)
    except (TypeError, ValueError):
        return  # the signature is unknown, e.g. for a class of an extension module
    try:
        signature.bind(**params)
    except TypeError:
        own = getattr(target, "__name__", name)
        given = ", ".join(params) or "none"
        shown = signature.replace(return_annotation=signature.empty)
        raise ScenarioError(f"found parameters {given}, expected those of {own}{shown}") from None


def description(factory: Callable[..., object]) -> str:
    """The first line of the docstring of a class, or of the class of a `functools.partial`."""
    own = factory.func if isinstance(factory, functools.partial) else factory
    return (own.__doc__ or "").strip().split("\n")[0]


@dataclass(frozen=True)
class _Imported:
    """A file that was imported."""

    module: ModuleType
    neighbours: tuple[str, ...]
    """The texts of the files in the same folder that the file imported, sorted."""


_loading = threading.RLock()


def _module(path: str, text: str) -> _Imported:
    """The module that results from importing a file's text. Each text is imported only once per process."""
    with _loading:
        return _import(path, text)


@functools.lru_cache(maxsize=256)
def _import(path: str, text: str) -> _Imported:
    file = Path(path)
    digest = hashlib.sha256(f"{path}\n{text}".encode()).hexdigest()
    # The name must be unique, because pickle and dataclasses look up modules by name.
    module = ModuleType(f"{file.stem}_{digest[:12]}")
    module.__file__ = path
    sys.modules[module.__name__] = module
    known = set(sys.modules)
    sys.path.insert(0, str(file.parent))  # the file may import other files of its folder
    # Python detects an outdated compiled file by the length and the modification time (in seconds) of its
    # source. If an imported file changes twice within a second, Python could use the old version. Therefore
    # write no compiled files.
    writes_bytecode, sys.dont_write_bytecode = not sys.dont_write_bytecode, True
    try:
        exec(compile(text, path, "exec", dont_inherit=True), module.__dict__)
        return _Imported(module, tuple(sorted(_take_neighbours(known, file.parent))))
    except BaseException:
        _take_neighbours(known, file.parent)
        del sys.modules[module.__name__]
        raise
    finally:
        sys.dont_write_bytecode = not writes_bytecode
        sys.path.remove(str(file.parent))


def _take_neighbours(known: set[str], folder: Path) -> list[str]:
    """Remove the folder's newly imported modules from `sys.modules`, and return their texts.

    If the modules stayed there, a file in another folder that imports the same names would get them. Also, a
    changed file would not be read again.
    """

    def is_neighbour(name: str) -> bool:
        top = name.partition(".")[0]
        source = Path(getattr(sys.modules.get(top), "__file__", None) or "/")
        return folder in (source.parent, source.parent.parent if source.name == "__init__.py" else None)

    taken = [sys.modules.pop(name) for name in sorted(filter(is_neighbour, sys.modules.keys() - known))]
    files = {Path(module.__file__) for module in taken if module.__file__ is not None}
    return [file.read_text(encoding="utf-8", errors="replace") for file in files if file.is_file()]


class BuiltIn:
    """A built-in congestion controller, which a Python class can call, or extend as a subclass.

    A subclass that overrides nothing behaves exactly like the built-in controller:

        class Gentle(narrows.custom.BuiltIn):
            def __init__(self) -> None:
                super().__init__("cubic", beta=0.85)

    Controllers with congestion headers (XCP, OBP) or messages (PACEC) cannot be used.

    Args:
        name: a value of `cc`, e.g. "bbr3".
        params: parameters as in a scenario, e.g. ``min_rtt_window="5s"``.

    Raises:
        ScenarioError: for an unknown name or parameter.
    """

    def __init__(self, name: str, **params: Any) -> None:
        if (row := find(name)) is not None:
            params = dict(in_base_units(params, row[0].parameters, row[0].name, "params"))
        try:
            self._inner = _native.BuiltIn(name, params)
        except ValueError as error:
            raise ScenarioError(str(error)) from None

    def on_established(self, connection: _native.Connection, window: _native.Window) -> None:
        """Called when the handshake is complete."""
        self._inner.on_established(connection, window)

    def on_lost(self, lost: _native.Lost, window: _native.Window) -> None:
        """Called when a segment was marked lost."""
        self._inner.on_lost(lost, window)

    def on_sample(self, ack: _native.Ack) -> None:
        """Called after each ACK, before `on_ack`."""
        self._inner.on_sample(ack)

    def on_ack(self, ack: _native.Ack, window: _native.Window) -> None:
        """Called after each ACK, except while PRR sets the window."""
        self._inner.on_ack(ack, window)

    def on_congestion(self, event: _native.Congestion, window: _native.Window) -> None:
        """Called on congestion. Sets the slow-start threshold."""
        self._inner.on_congestion(event, window)

    def on_recovered(self, event: _native.Moment, window: _native.Window) -> None:
        """Called when recovery has ended."""
        self._inner.on_recovered(event, window)

    def on_undo(self, event: _native.Moment, window: _native.Window) -> None:
        """Called when the transport has undone a spurious reduction."""
        self._inner.on_undo(event, window)

    def on_restart(self, event: _native.Restart, window: _native.Window) -> None:
        """Called when the flow sends data again after an idle time."""
        self._inner.on_restart(event, window)

    def trace(self) -> dict[str, float]:
        """The internal state."""
        return self._inner.trace()

    @property
    def owns_recovery(self) -> bool:
        """Whether the controller itself sets the window in recovery, instead of PRR."""
        return self._inner.owns_recovery

    @property
    def exact_ce_echo(self) -> bool:
        """Whether the controller needs to know which packets were marked."""
        return self._inner.exact_ce_echo

    @property
    def wants_feedback(self) -> bool:
        """Whether the flow asks the network for rates."""
        return self._inner.wants_feedback
