"""Starts the parts of the controller: OpenFlow, the agents' channel, and the page."""

from __future__ import annotations

import logging
import os
import signal
import socket
import ssl
import sys
import threading
from pathlib import Path
from urllib.parse import urlsplit

from os_ken.base.app_manager import AppManager, lookup_service_brick
from os_ken.lib import hub

from narrows.controller import http, page_server
from narrows.controller.alertmanager import Sender
from narrows.controller.channel import Channel
from narrows.controller.config import Address, Config, Http
from narrows.controller.config import OpenFlow as OpenFlowConfig
from narrows.controller.files import check_private, read_token
from narrows.controller.limits import Gate, OneLine
from narrows.controller.listener import Handler, Listener
from narrows.controller.messages import Effect, Note
from narrows.controller.openflow import OpenFlow
from narrows.controller.pair import Pair
from narrows.controller.runtime import Runtime
from narrows.controller.systemd import notify
from narrows.controller.tls import own_certificate, tls_context
from narrows.controller.watch import Watch
from narrows.errors import NarrowsError
from narrows.units import NANOS_PER_SEC as SECOND

LOG = logging.getLogger("narrows.controller")
_HANDLER = "os_ken.controller.ofp_handler"


def check_files(config: Config) -> str | None:
    """Checks the files that the configuration names. Returns the page's token.

    Raises:
        NarrowsError: a token, key or certificate is invalid, or other users can read it.
    """
    if config.agents.keys is not None:
        config.agents.keys.check("agents")
    token = None if config.http.token is None else _token(config.http.token)
    _check_page_certificate(config.http)
    _openflow_tls(config.openflow)
    _senders(config)
    return token


def serve(config: Config) -> None:
    """Runs until SIGINT or SIGTERM.

    Raises:
        NarrowsError: an address is in use, or a token, key or certificate is invalid.
    """
    token = check_files(config)
    _try_to_listen("agents", config.agents)
    page_socket = _page_socket(config.http)
    Handler.listener = _listener(config.openflow)
    logging.basicConfig(
        level=logging.INFO, stream=sys.stderr, format="%(asctime)s %(levelname)s %(name)s: %(message)s"
    )
    logging.getLogger("os_ken").setLevel(logging.WARNING)
    _warn(config)

    keys = config.agents.keys
    runtime = Runtime(config.params(), config.name, authenticated=keys is not None)
    pair = _pair(config)
    channel = Channel((config.agents.host, config.agents.port), keys, config.name, runtime.put, pair)
    runtime.to_agent = lambda effect: channel.send(effect.agent, effect.body)

    def to_switch(effect: Effect) -> None:
        app = lookup_service_brick(OpenFlow.__name__)
        if app is not None:
            app.perform(effect)

    runtime.to_switch = to_switch
    if pair is not None:
        _join(pair, runtime)
    OpenFlow.on_event = staticmethod(runtime.put)
    runtime.start()
    watch = Watch(runtime, rules=config.alerts.rules(), senders=_senders(config))
    watch.start()
    if pair is not None:
        pair.start()
    stop = threading.Event()
    for signum in (signal.SIGINT, signal.SIGTERM):
        signal.signal(signum, lambda *_: stop.set())
    threading.Thread(target=_openflow, args=(stop,), name="openflow", daemon=True).start()
    app = http.create(runtime, config.http.is_loopback, token, watch)
    server = page_server.server(app, config.http.key, config.http.certificate)
    for name in ("uvicorn.error", "asyncio"):
        logging.getLogger(name).addFilter(OneLine())
    threading.Thread(target=server.run, args=([page_socket],), name="http", daemon=True).start()
    LOG.info(
        "switches at %s:%d, agents at %s:%d, page at %s://%s:%d/",
        config.openflow.host,
        Handler.listener.port,
        config.agents.host,
        channel.port,
        "http" if config.http.key is None else "https",
        config.http.host,
        page_socket.getsockname()[1],
    )
    notify("READY=1")
    stop.wait()
    LOG.info("stopping; the switches keep their entries")
    watch.stop()
    runtime.stop()
    channel.close()
    sys.stderr.flush()
    # Exit without a clean-up: os-ken's native threads wait for switches and cannot be interrupted, and no
    # data have to be saved.
    os._exit(0)


def _senders(config: Config) -> list[Sender]:
    alerts = config.alerts
    authorization = None if alerts.authorization is None else _authorization(alerts.authorization)
    return [Sender(url, config.name, authorization, alerts.page) for url in alerts.alertmanagers]


def _authorization(path: Path) -> str:
    """The header for the Alertmanagers, such as `Bearer` and a token."""
    check_private("alerts.authorization", path)
    try:
        text = path.read_text(encoding="ascii").strip()
    except OSError as error:
        raise NarrowsError(f"alerts.authorization: {path}: {error.strerror}") from None
    except UnicodeDecodeError:
        text = ""
    if not text.isprintable() or " " not in text:
        raise NarrowsError(
            f"alerts.authorization: {path}: found something else, expected one line such as 'Bearer TOKEN'"
        )
    return text


def _pair(config: Config) -> Pair | None:
    standby = config.standby
    if standby is None:
        return None
    address = (standby.host, standby.port)
    return Pair(config.name, standby.name, address, config.agents.keys, standby.takeover / SECOND)


def _join(pair: Pair, runtime: Runtime) -> None:
    """Connects the pair to the other parts of this controller, so that they follow the pair's decisions."""

    def pulse() -> None:
        app = lookup_service_brick(OpenFlow.__name__)
        if app is not None:
            app.pulse()

    def take_over() -> None:
        text = f"controller {pair.name} is active; its standby is {pair.other}"
        runtime.restart(Note("active", text, {"controller": pair.name}))

    def step_down(reason: str) -> None:
        # Replace the process, because os-ken's threads cannot be interrupted. A standby must not have old
        # state, and the new process has none.
        LOG.warning("stepping down: %s", reason)
        sys.stderr.flush()
        os.execv(sys.executable, [sys.executable, *sys.orig_argv[1:]])

    runtime.is_active = lambda: pair.is_active
    pair.on_pulse, pair.on_active, pair.on_yield = pulse, take_over, step_down
    OpenFlow.pair = pair


def _openflow_tls(config: OpenFlowConfig) -> ssl.SSLContext | None:
    if config.tls is None:
        return None
    key, certificate, ca = config.tls
    check_private("openflow.key", key)
    try:
        return tls_context(str(key), str(certificate), str(ca))
    except OSError as error:  # includes ssl.SSLError
        raise NarrowsError(
            f"openflow: cannot use {key}, {certificate} and {ca}: {error.strerror or error}"
        ) from None


def _listener(config: OpenFlowConfig) -> Listener:
    tls = _openflow_tls(config)
    gate = Gate(config.connections, config.connections_per_address)
    try:
        return Listener((config.host, config.port), gate, tls)
    except OSError as error:
        raise _cannot_listen("openflow", config, error) from None


def _token(path: Path) -> str:
    check_private("http.token", path)
    return read_token(path)


def _check_page_certificate(config: Http) -> None:
    if config.key is None or config.certificate is None:
        return
    check_private("http.key", config.key)
    try:
        own_certificate(str(config.key), str(config.certificate))
    except OSError as error:
        raise NarrowsError(
            f"http: cannot use {config.key} and {config.certificate}: {error.strerror or error}"
        ) from None


def _openflow(stop: threading.Event) -> None:
    try:
        manager = AppManager.get_instance()
        manager.load_apps([_HANDLER, "narrows.controller.openflow"])
        manager.applications_cls[_HANDLER] = Handler
        hub.joinall(manager.instantiate_apps(**manager.create_contexts()))
    except Exception:
        LOG.exception("OpenFlow has ended")
    stop.set()


def _try_to_listen(what: str, address: Address) -> None:
    """Raises a one-line error if an address is in use.

    Without this check, a thread would fail later with a traceback.
    """
    family = socket.AF_INET6 if ":" in address.host else socket.AF_INET
    try:
        socket.create_server((address.host, address.port), family=family).close()
    except OSError as error:
        raise _cannot_listen(what, address, error) from None


def _page_socket(config: Http) -> page_server.ListeningSocket:
    try:
        return page_server.ListeningSocket((config.host, config.port), page_server.Bounds())
    except OSError as error:
        raise _cannot_listen("http", config, error) from None


def _cannot_listen(what: str, address: Address, error: OSError) -> NarrowsError:
    return NarrowsError(
        f"{what}: cannot listen at {address.host} port {address.port}: {error.strerror or error}; "
        f"choose another address with --{what}-host or --{what}-port"
    )


def _warn(config: Config) -> None:
    if config.alerts.authorization is not None:
        for url in config.alerts.alertmanagers:
            if url.startswith("http:") and not _is_on_loopback(url):
                LOG.warning("alerts.authorization can be read on the way to %s: use https", url)
    if config.agents.keys is None:
        LOG.warning("agents.key is not set: any program on this host can act as an agent")
    if not config.openflow.is_loopback and config.openflow.tls is None:
        LOG.warning(
            "OpenFlow is neither encrypted nor authenticated: let only switches reach %s",
            config.openflow.host,
        )
    if not config.http.is_loopback and config.http.key is None:
        LOG.warning(
            "http.key is not set: the page's token can be read on the network of %s", config.http.host
        )


def _is_on_loopback(url: str) -> bool:
    return Address(host=urlsplit(url).hostname or "").is_loopback
