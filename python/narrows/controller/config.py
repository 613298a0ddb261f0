"""Reads the controller's configuration.

The configuration is a TOML file with the same units as scenarios. Errors have one line.
"""

from __future__ import annotations

import ipaddress
import tomllib
from pathlib import Path
from typing import Annotated, Any, get_args
from urllib.parse import urlsplit

from pydantic import AfterValidator, BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from narrows import units
from narrows.controller import wire
from narrows.controller.alerts import AGENTS_MAX, AgentRule, FlowRule, QueueRule, Rules
from narrows.controller.domain import Params, PortParams
from narrows.controller.messages import PortKey
from narrows.controller.tls import Keys
from narrows.controller.view import AlertSeverity
from narrows.errors import TYPES, Expected, NarrowsError, found, hint, one_line, unreadable
from narrows.units import NANOS_PER_SEC as SECOND


def _duration(value: object) -> int:
    nanos = units.parse_duration(value)
    if not SECOND // 1000 <= nanos <= 86_400 * SECOND:
        raise Expected("a time from 1ms to 24h")
    return nanos


def _port_key(value: object) -> PortKey:
    expected = "a switch's datapath id and a port number, e.g. '0x1:2'"
    if not isinstance(value, str):
        raise Expected(expected)
    dpid, _, number = value.partition(":")
    try:
        key = (int(dpid, 0), int(number))
    except ValueError:
        raise Expected(expected) from None
    if not (0 <= key[0] < 2**64 and 0 < key[1] < 2**32):
        raise Expected(expected)
    return key


def _host(value: str) -> str:
    if not value.strip():  # an empty host would mean all addresses
        raise Expected("an address such as '127.0.0.1', or the name of a host")
    return value


Name = Annotated[str, Field(pattern=f"^{wire.NAME}$")]
Duration = Annotated[int, BeforeValidator(_duration)]
Delay = Annotated[int, BeforeValidator(units.parse_duration)]
Rate = Annotated[int, BeforeValidator(units.parse_rate)]
Host = Annotated[str, AfterValidator(_host)]
TcpPort = Annotated[int, Field(strict=True, ge=0, le=65535)]
Connections = Annotated[int, Field(strict=True, ge=1, le=65535)]
_AGENTS_PORT = 6690


class _Table(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class Address(_Table):
    """An address to listen on (default: loopback)."""

    host: Host = "127.0.0.1"
    port: TcpPort = 0

    @property
    def is_loopback(self) -> bool:
        """Whether the address is a loopback address, which only programs on this host can reach."""
        try:
            return ipaddress.ip_address(self.host).is_loopback
        except ValueError:
            return self.host == "localhost"


class OpenFlow(Address):
    """The address for switches, the files of TLS (all or none), and limits on connections."""

    port: TcpPort = 6653
    key: Path | None = None
    certificate: Path | None = None
    ca: Path | None = None
    connections: Connections = 512
    connections_per_address: Connections = 128

    @property
    def tls(self) -> tuple[Path, Path, Path] | None:
        """The files of the key, the certificate and the CA; None unless all three are set."""
        if self.key is None or self.certificate is None or self.ca is None:
            return None
        return self.key, self.certificate, self.ca


class Agents(Address):
    """The address for agents, and the files of the keys. Either all files are set or none."""

    port: TcpPort = _AGENTS_PORT
    key: Path | None = None
    certificate: Path | None = None
    trusted: Path | None = None

    @property
    def keys(self) -> Keys | None:
        """The files of the key and of the certificates; None unless all are set."""
        if self.key is None or self.certificate is None or self.trusted is None:
            return None
        return Keys(self.key, self.certificate, self.trusted)


class Standby(_Table):
    """The other controller of a pair. Only one of the two controllers is active at a time."""

    name: Name
    host: Host
    port: Annotated[TcpPort, Field(ge=1)] = _AGENTS_PORT
    takeover: Duration = 3 * SECOND


class Http(Address):
    """The address of the read-only page, the page's token, and the two files of TLS (both or none)."""

    port: TcpPort = 6680
    token: Path | None = None
    key: Path | None = None
    certificate: Path | None = None


_OLD_SECRET = (
    "found the secret of an earlier version, expected agents.key, agents.certificate and agents.trusted: "
    "make them with 'narrows-agent key NAME'"
)
_EXPECTED = {**TYPES, "string_pattern_mismatch": "1 to 64 printable characters without spaces"}
_DEFAULTS = Params()


class Forwarding(_Table):
    """See `domain.Params`."""

    lldp: Duration = _DEFAULTS.lldp_ns
    probe: Duration = _DEFAULTS.probe_ns
    link_expire: Duration = _DEFAULTS.link_expire_ns
    host_idle: Duration = _DEFAULTS.host_idle_s * SECOND
    hold: Duration = _DEFAULTS.hold_ns


class Detection(_Table):
    """See `domain.Params`."""

    poll: Duration = _DEFAULTS.poll_ns
    counters: Duration = _DEFAULTS.counters_ns


def _alertmanager(value: object) -> str:
    expected = "an address such as 'http://127.0.0.1:9093'"
    if not isinstance(value, str) or not value.isascii() or not value.isprintable():
        raise Expected(expected)
    try:
        parts = urlsplit(value)
        parts.port  # noqa: B018 (raises for a wrong port)
    except ValueError:
        raise Expected(expected) from None
    if parts.scheme not in ("http", "https") or not parts.hostname or " " in value:
        raise Expected(expected)
    if parts.username is not None or parts.query or parts.fragment:
        raise Expected(f"{expected} without a user, query or fragment")
    return value


Url = Annotated[str, BeforeValidator(_alertmanager)]
_FOR = 10 * SECOND


class QueueAlert(_Table):
    """See `alerts.QueueRule`."""

    above: Duration
    for_: Annotated[Duration, Field(alias="for")] = _FOR
    severity: AlertSeverity = QueueRule(0, 0).severity


class AgentAlert(_Table):
    """See `alerts.AgentRule`."""

    silent: Duration = _FOR
    expected: Annotated[list[Name], Field(max_length=AGENTS_MAX)] = []
    severity: AlertSeverity = AgentRule(0).severity


class FlowAlert(_Table):
    """See `alerts.FlowRule`."""

    below: Annotated[float, BeforeValidator(units.parse_share)]
    for_: Annotated[Duration, Field(alias="for")] = 3 * _FOR
    severity: AlertSeverity = FlowRule(0, 0).severity


class Alerts(_Table):
    """Thresholds, and the Alertmanagers that get the alerts."""

    alertmanagers: Annotated[list[Url], Field(max_length=8)] = []
    authorization: Path | None = None
    page: Url | None = None
    queue: QueueAlert | None = None
    agent: AgentAlert | None = None
    flow: FlowAlert | None = None

    def rules(self) -> Rules:
        """The thresholds of all alerts."""
        queue, agent, flow = self.queue, self.agent, self.flow
        return Rules(
            None if queue is None else QueueRule(queue.above, queue.for_, queue.severity),
            None if agent is None else AgentRule(agent.silent, tuple(agent.expected), agent.severity),
            None if flow is None else FlowRule(flow.below, flow.for_, flow.severity),
        )


class PortConfig(_Table):
    """Facts about a port. The controller cannot measure these facts."""

    port: Annotated[PortKey, BeforeValidator(_port_key)]
    rate: Rate | None = None
    delay: Delay = 0
    counted: Annotated[bool, Field(strict=True)] = True


def _address(value: object) -> str:
    try:
        return str(ipaddress.ip_address(str(value)))
    except ValueError:
        raise Expected("an IP address") from None


def _agent_port(value: str) -> str:
    agent, _, interface = value.partition("/")
    if not agent or not interface or "/" in interface:
        raise Expected("an agent and one of its interfaces, e.g. 'edge1/eth1'")
    return value


class PathConfig(_Table):
    """The path of the flows from one address to another.

    Paths are needed in networks whose forwarding the controller does not control.
    """

    from_: Annotated[str, BeforeValidator(_address), Field(alias="from")]
    to: Annotated[str, BeforeValidator(_address)]
    ports: Annotated[list[Annotated[str, AfterValidator(_agent_port)]], Field(min_length=1, max_length=64)]


class Config(_Table):
    """The content of the configuration file."""

    name: Name = "controller"
    openflow: OpenFlow = OpenFlow()
    agents: Agents = Agents()
    standby: Standby | None = None
    http: Http = Http()
    forwarding: Forwarding = Forwarding()
    detection: Detection = Detection()
    alerts: Alerts = Alerts()
    ports: list[PortConfig] = []
    paths: list[PathConfig] = []

    def params(self) -> Params:
        """The parameters of the domain."""
        ways, detection = self.forwarding, self.detection
        return Params(
            lldp_ns=ways.lldp,
            probe_ns=ways.probe,
            link_expire_ns=ways.link_expire,
            counters_ns=detection.counters,
            poll_ns=detection.poll,
            host_idle_s=max(1, min(65535, ways.host_idle // SECOND)),
            hold_ns=ways.hold,
            ports={port.port: PortParams(port.rate, port.delay, port.counted) for port in self.ports},
            paths={(path.from_, path.to): tuple(path.ports) for path in self.paths},
        )


def load(path: Path | None, overrides: dict[str, Any]) -> Config:
    """Read the configuration in a file (None: all defaults), and replace some values.

    Args:
        path: the file.
        overrides: values by dotted key, e.g. ``http.port``. They replace the file's values.

    Raises:
        NarrowsError: if the configuration is invalid. The message is one line with file, key, what was found
        and what was expected.
    """
    source = "controller" if path is None else str(path)
    data: dict[str, Any] = {}
    if path is not None:
        try:
            data = tomllib.loads(path.read_text(encoding="utf-8"))
        except OSError as error:
            raise NarrowsError(f"{source}: {unreadable(error, 'a configuration')}") from None
        except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
            raise NarrowsError(one_line(f"{source}: not TOML: {error}")) from None
    for key, value in overrides.items():
        table, _, name = key.rpartition(".")
        place = data.setdefault(table, {}) if table else data
        if isinstance(place, dict):
            place[name] = value
    try:
        config = Config.model_validate(data)
    except ValidationError as error:
        raise NarrowsError(one_line(f"{source}: {_explain(error)}")) from None
    except Expected as error:
        raise NarrowsError(one_line(f"{source}: {error}")) from None
    _check(source, config)
    return config


def _check(source: str, config: Config) -> None:
    _check_files(source, "agents", config.agents, ("key", "certificate", "trusted"))
    if config.agents.keys is None and not config.agents.is_loopback:
        raise NarrowsError(
            f"{source}: agents.host: found {found(config.agents.host)} without keys, "
            "expected files as agents.key, agents.certificate and agents.trusted, or a loopback address"
        )
    if config.standby is not None:
        _check_standby(source, config, config.standby)
    if config.http.token is None and not config.http.is_loopback:
        raise NarrowsError(
            f"{source}: http.host: found {found(config.http.host)} without a token, "
            "expected a file as http.token, or a loopback address"
        )
    _check_files(source, "openflow", config.openflow, ("key", "certificate", "ca"))
    _check_files(source, "http", config.http, ("key", "certificate"))
    if config.alerts.alertmanagers and not config.alerts.rules():
        raise NarrowsError(
            f"{source}: alerts.alertmanagers: found addresses without a threshold, "
            "expected one of the tables alerts.queue, alerts.agent, alerts.flow"
        )
    seen: set[PortKey] = set()
    for number, entry in enumerate(config.ports):
        if entry.port in seen:
            name = "{:#x}:{}".format(*entry.port)
            raise NarrowsError(
                f"{source}: ports.{number}.port: found '{name}' a second time, expected it once"
            )
        seen.add(entry.port)
    ends: set[tuple[str, str]] = set()
    for number, path in enumerate(config.paths):
        if (path.from_, path.to) in ends:
            raise NarrowsError(
                f"{source}: paths.{number}: found a second path from {path.from_} to {path.to}, expected one"
            )
        ends.add((path.from_, path.to))
    ways = config.forwarding
    if ways.link_expire < 2 * ways.lldp:
        raise NarrowsError(
            f"{source}: forwarding.link_expire: found {units.format_duration(ways.link_expire)}, "
            "expected at least twice forwarding.lldp"
        )


def _check_standby(source: str, config: Config, standby: Standby) -> None:
    if standby.name == config.name:
        raise NarrowsError(
            f"{source}: standby.name: found {found(standby.name)}, expected a name that differs from `name`"
        )
    if config.agents.keys is None and not Address(host=standby.host).is_loopback:
        raise NarrowsError(
            f"{source}: standby.host: found {found(standby.host)} without keys, "
            "expected files as agents.key, agents.certificate and agents.trusted, or a loopback address"
        )


def _check_files(source: str, table: str, address: Address, names: tuple[str, ...]) -> None:
    missing = [name for name in names if getattr(address, name) is None]
    if 0 < len(missing) < len(names):
        all_names = ", ".join(f"{table}.{name}" for name in names)
        raise NarrowsError(f"{source}: {table}.{missing[0]}: not found, expected all or none of {all_names}")


def _explain(error: ValidationError) -> str:
    """A text about the first error, with the key, what was found and what was expected."""
    first = error.errors()[0]
    where = ".".join(str(part) for part in first["loc"])
    if first["loc"] == ("agents", "secret"):
        return f"{where}: {_OLD_SECRET}"
    if first["type"] == "extra_forbidden":
        names = _names(first["loc"][:-1])
        return f"{where}: unknown key{hint(first['loc'][-1], names)}"
    if first["type"] == "missing":
        return f"{where}: found nothing, expected this key"
    message = first["msg"].removeprefix("Value error, ").removeprefix("Input should be ")
    expected = _EXPECTED.get(first["type"], message[0].lower() + message[1:])
    return f"{where}: found {found(first['input'])}, expected {expected}"


def _names(table: tuple[int | str, ...]) -> list[str]:
    model: type[BaseModel] = Config
    for part in table:
        if isinstance(part, str):
            kinds = (kind for kind in _kinds(model.model_fields[part].annotation) if isinstance(kind, type))
            model = next(kind for kind in kinds if issubclass(kind, BaseModel))
    return [field.alias or name for name, field in model.model_fields.items()]


def _kinds(annotation: Any) -> tuple[Any, ...]:
    """For a union, its types; for a list, the type of its items; else the type itself."""
    return get_args(annotation) or (annotation,)
