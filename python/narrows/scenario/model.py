"""The scenario: the content of a TOML file after a check of each key.

The crate `narrows-scenario` has the format: its keys, their checks, and the way to plans. This module shows
what the rest of the package reads of a scenario.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

from narrows import _native, retired
from narrows.scenario.expectations import Data, Expectation


@dataclass(frozen=True, slots=True)
class Congestion:
    """A congestion controller and its parameters."""

    name: str
    """Name of the congestion controller, or ``FILE.py:CLASS``."""
    params: dict[str, Data]
    """The parameters that the scenario sets, as it writes them."""


@dataclass(frozen=True, slots=True)
class Flow:
    """An entry of [[flows]]."""

    name: str
    """Name in results."""
    transport: str
    """Transport protocol: ``tcp``, ``udp`` or an external stack."""
    cc: Congestion
    """Congestion controller."""
    count: int
    """Number of equal flows."""
    has_program: bool
    """Whether unmodified programs exchange the data."""


class Scenario:
    """A scenario. `narrows.load` reads it from a file. In Python, the keys of the file are arguments.

    Raises:
        ScenarioError: if a key or value is wrong.
    """

    def __init__(self, **data: Any) -> None:
        self._checked = _native.Scenario(data, "scenario")
        for old, new in self._checked.renamed:
            retired.report(retired.caller(), old, new)

    @classmethod
    def of(cls, checked: _native.Scenario) -> Scenario:
        """The scenario that the native module has checked."""
        scenario = cls.__new__(cls)
        scenario._checked = checked
        return scenario

    @property
    def checked(self) -> _native.Scenario:
        """The scenario for functions of the native module."""
        return self._checked

    @property
    def name(self) -> str:
        """Name of the results folder."""
        return self._checked.name

    @property
    def duration(self) -> int:
        """Length of a run, ns."""
        return self._checked.duration

    @property
    def seed(self) -> int:
        """Seed of all random choices."""
        return self._checked.seed

    @property
    def seeds(self) -> int:
        """Number of seeds of the sweep per point."""
        return self._checked.seeds

    @property
    def has_capture(self) -> bool:
        """Whether runs record packets."""
        return self._checked.has_capture

    @property
    def source(self) -> str:
        """The scenario's file, for messages and relative paths."""
        return self._checked.source

    @cached_property
    def flows(self) -> tuple[Flow, ...]:
        """The entries of [[flows]]."""
        return tuple(
            Flow(name, transport, Congestion(cc, params), count, has_program)
            for name, transport, cc, params, count, has_program in self._checked.flows()
        )

    @cached_property
    def expect(self) -> tuple[Expectation, ...]:
        """Conditions that the results must meet."""
        return tuple(map(Expectation.of, self._checked.expectations()))

    def with_source(self, source: str) -> Scenario:
        """The same scenario with `source` as its file."""
        return Scenario.of(self._checked.with_source(source))

    def with_seed(self, seed: int) -> Scenario:
        """The same scenario with another seed."""
        return Scenario.of(self._checked.with_seed(seed))

    def beside_real(self) -> Scenario:
        """The same scenario with the receive buffers of real sockets, for a comparison with real stacks."""
        return Scenario.of(self._checked.beside_real())

    def raw(self) -> dict[str, Any]:
        """Only the keys that were set, with units, as in a scenario file."""
        return self._checked.raw()

    def facts(self) -> dict[str, Any]:
        """All keys that determine the results, with units. These are all keys except the expectations."""
        return self._checked.facts()

    def full(self) -> dict[str, Any]:
        """All keys with units, including those with default values."""
        return self._checked.full()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Scenario):
            return NotImplemented
        return self.source == other.source and self.full() == other.full()

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Scenario(name={self.name!r}, source={self.source!r})"

    def __reduce__(self) -> tuple[object, ...]:
        return _again, (self.raw(), self.source)


def _again(data: dict[str, Any], source: str) -> Scenario:
    """The scenario with this content, in another process."""
    return Scenario.of(_native.Scenario(data, source))
