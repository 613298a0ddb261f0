"""The bodies of agents' messages, and their checks. An authenticated agent can send invalid messages."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AliasChoices, BaseModel, ConfigDict, Field, TypeAdapter, field_validator

Word = Annotated[str, Field(max_length=64, pattern=r"^[\x20-\x7e]*$")]
Interface = Annotated[str, Field(max_length=64, pattern=r"^[\x21-\x2e\x30-\x7e]+$")]
"""Without `/`, which divides agent and interface in the identifier of a port."""
Count = Annotated[int, Field(ge=0, lt=2**63)]


class _Body(BaseModel):
    # A newer agent can send more fields.
    model_config = ConfigDict(extra="ignore", frozen=True)


class PortInfo(_Body):
    """A port that an agent controls."""

    port: Annotated[int, Field(ge=0, lt=2**32)]
    interface: Interface
    ifindex: Count
    mac: Word
    mtu: Count
    capacity: Count
    """L3 bytes/s."""
    rate_controller: Annotated[
        Word, Field(validation_alias=AliasChoices("rate_controller", "controller"))
    ] = "brf"
    """The rate controller. Earlier agents of this protocol call it `controller`."""
    params: dict[str, object] = {}
    """The rate controller's parameters in base units. They are checked where they are used."""
    thresholds: dict[str, object] | None = None
    """`brf::congestion::Thresholds`; the detector checks it."""


class Ports(_Body):
    """All ports of an agent."""

    type: Literal["ports"]
    ports: Annotated[list[PortInfo], Field(max_length=1024)]

    @field_validator("ports")
    @classmethod
    def _once(cls, ports: list[PortInfo]) -> list[PortInfo]:
        if len({port.port for port in ports}) < len(ports):
            raise ValueError("found a port twice")
        if len({port.interface for port in ports}) < len(ports):
            raise ValueError("found an interface twice")
        return ports


class FlowKey(_Body):
    """A flow in its data direction."""

    saddr: Word
    daddr: Word
    sport: Count
    dport: Count
    proto: Word


class FlowInfo(_Body):
    """A flow at a port."""

    key: FlowKey
    class_: Annotated[Word, Field(alias="class")]
    leaf: Word
    allocation: Count | None = None
    """L3 bytes/s."""
    rate: Count
    """L3 bytes/s."""
    rtt: Count | None = None
    """Nanoseconds."""


class Flows(_Body):
    """The flows of a port."""

    type: Literal["flows"]
    port: Count
    flows: Annotated[list[FlowInfo], Field(max_length=1000)]


class FlowChanges(_Body):
    """Flows that began, ended or changed at a port, checked where they are used."""

    type: Literal["flow-changes"]
    port: Count
    changes: Annotated[list[object], Field(max_length=1000)]


class Relayed(BaseModel):
    """A report or an advertisement. The detector checks the other fields."""

    model_config = ConfigDict(extra="allow", frozen=True)
    type: Literal["report", "flow-advertisement"]
    port: Count


Body = Ports | Flows | FlowChanges | Relayed
_ADAPTER: TypeAdapter[Body] = TypeAdapter(Annotated[Body, Field(discriminator="type")])


def parse(text: str) -> Body:
    """Parses a body.

    Raises:
        ValueError: it is invalid.
    """
    return _ADAPTER.validate_json(text)
