"""Serves the REST API, live events and the page.

The API, the events and the page are read-only. The page loads nothing from other servers.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import json
import logging
import threading
import time
from collections.abc import AsyncIterator
from importlib import resources
from typing import Annotated

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import HTMLResponse, PlainTextResponse, StreamingResponse
from starlette.datastructures import Headers, MutableHeaders
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from narrows import _native
from narrows.controller import flows as flow_search
from narrows.controller import metrics as prometheus
from narrows.controller import view
from narrows.controller.limits import Warnings
from narrows.controller.runtime import Runtime
from narrows.controller.watch import Watch

WARNINGS = Warnings(logging.getLogger("narrows.controller.http"))
LIVE_S = 1.0
"""Interval between two states in a live stream."""
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HOSTS_LOOPBACK = {"127.0.0.1", "localhost", "[::1]"}


class _Guard:
    """Refuses requests that lack the token, or whose Host header has a name that is not allowed.

    The guard also adds headers to the answers of all other requests. These headers tell the browser to forbid
    everything that the page does not need.
    """

    def __init__(self, app: ASGIApp, loopback: bool, token: str | None) -> None:
        self.app, self.loopback = app, loopback
        self._token = None if token is None else _digest(token)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        headers = Headers(scope=scope)
        host = headers.get("host", "").rsplit(":", 1)[0]
        if self.loopback and host not in _HOSTS_LOOPBACK:
            refusal = PlainTextResponse("only the controller's own host can open this page\n", 421)
            await refusal(scope, receive, send)
            return
        if not self._is_allowed(headers.get("authorization", "")):
            client = scope.get("client")
            if "authorization" in headers:
                WARNINGS.warn("page: wrong token from %s", client[0] if client else "an unknown address")
            fields = {
                "WWW-Authenticate": 'Basic realm="Narrows controller", charset="UTF-8"',
                "Cache-Control": "no-store",
            }
            refusal = PlainTextResponse(
                "the token is required, as the password or as a bearer token\n", 401, fields
            )
            await refusal(scope, receive, send)
            return

        async def with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers["Content-Security-Policy"] = _POLICY
                headers["X-Content-Type-Options"] = "nosniff"
                headers["Cache-Control"] = "no-store"
            await send(message)

        await self.app(scope, receive, with_headers)

    def _is_allowed(self, authorization: str) -> bool:
        if self._token is None:
            return True
        scheme, _, value = authorization.partition(" ")
        match scheme.lower():
            case "basic":
                try:
                    given = base64.b64decode(value, validate=True).decode().partition(":")[2]
                except (binascii.Error, UnicodeDecodeError, ValueError):
                    return False
            case "bearer":
                given = value
            case _:
                return False
        # Compare digests instead of tokens. All digests have the same length, so the time of the comparison
        # reveals nothing about the token.
        return hmac.compare_digest(_digest(given), self._token)


def _digest(token: str) -> bytes:
    return hashlib.sha256(token.encode("utf-8", "replace")).digest()


def create(
    runtime: Runtime, loopback: bool = True, token: str | None = None, watch: Watch | None = None
) -> FastAPI:
    """The application.

    Args:
        runtime: the source of all data.
        loopback: whether only this host is served. If so, a request is refused unless its Host header is a
            loopback name, because a hostile web page could send requests with other names (DNS rebinding).
        token: the token that each request must contain (`None`: no token is needed). It is the password of
            HTTP Basic (with any user name), or a bearer token.
        watch: the recorder of the last hour (`None`: the history stays empty).
    """
    app = FastAPI(
        title="Narrows controller",
        version=_native.version,
        description="State of the SDN controller: topology, loads, flows, congestion. Read-only.",
        openapi_url="/api/v1/openapi.json",
        docs_url=None,  # FastAPI's pages would load scripts from a content delivery network
        redoc_url=None,
    )

    app.add_middleware(_Guard, loopback=loopback, token=token)
    watch = watch or Watch(runtime)
    _add_api(app, runtime, watch)
    _add_history(app, runtime, watch)
    _add_live(app, runtime, watch)
    _add_page(app)
    return app


def _state(runtime: Runtime, watch: Watch, flows_max: int | None) -> view.State:
    return runtime.state(flows_max).model_copy(update={"alerts": watch.alerts()})


def _add_api(app: FastAPI, runtime: Runtime, watch: Watch) -> None:
    @app.get("/api/v1/state", tags=["all"])
    def state() -> view.State:
        """All data of the page."""
        return _state(runtime, watch, None)

    @app.get("/api/v1/topology", tags=["network"])
    def topology() -> view.Topology:
        """Switches, links and hosts."""
        return runtime.look(lambda domain, _: view.topology(domain))

    @app.get("/api/v1/switches", tags=["network"])
    def switches() -> list[view.Switch]:
        """Connected switches with their ports."""
        return runtime.look(lambda domain, _: view.switches(domain))

    @app.get("/api/v1/links", tags=["network"])
    def links() -> list[view.Link]:
        """Links between switches with their loads."""
        return runtime.look(lambda domain, _: view.links(domain))

    @app.get("/api/v1/flows", tags=["rates"])
    def flows(
        response: Response,
        search: Annotated[str, Query(max_length=200, description="Words that must all occur.")] = "",
        port: Annotated[str, Query(max_length=200, description="Identifier of a port (`key`).")] = "",
        class_: Annotated[str, Query(max_length=64, alias="class", description="Traffic class.")] = "",
        order: Annotated[
            flow_search.Order,
            Query(
                description="Order: fastest, slowest, lowest share of the allocation or longest RTT first."
            ),
        ] = "fastest",
        offset: Annotated[int, Query(ge=0, le=10_000_000, description="Number of flows to leave out.")] = 0,
        limit: Annotated[
            int | None, Query(ge=0, le=10_000_000, description="Maximum number of flows.")
        ] = None,
    ) -> list[view.Flow]:
        """Flows at the agents' ports. The header `X-Total-Count` has the number of matches."""
        query = flow_search.Query(search, port, class_, order, offset, limit)
        count, shown = runtime.select_flows(query)
        response.headers["X-Total-Count"] = str(count)
        return shown

    @app.get("/api/v1/congestion", tags=["rates"])
    def congestion() -> list[view.CongestionState]:
        """Controlled ports and the detector's results."""
        return runtime.look(view.congestion)

    @app.get("/api/v1/agents", tags=["rates"])
    def agents() -> list[view.Agent]:
        """Connected agents."""
        return runtime.look(view.agents)

    @app.get("/api/v1/alerts", tags=["all"])
    def alerts() -> view.AlertState:
        """Alerts that have begun and not ended, and the state of their delivery."""
        return watch.alerts()

    @app.get("/api/v1/events", tags=["all"])
    def events(
        after: int = Query(0, ge=0, description="Return only events with a greater id."),
    ) -> list[view.Event]:
        """The last thousand events, oldest first."""
        return runtime.events(after)


def _add_history(app: FastAPI, runtime: Runtime, watch: Watch) -> None:
    @app.get("/api/v1/history", tags=["rates"])
    def history(
        port: Annotated[list[str], Query(max_length=8, description="Identifiers of ports (`key`).")],
        after: Annotated[int, Query(ge=-1, description="Return only later intervals.")] = -1,
    ) -> list[view.Series]:
        """The last hour of some ports: rates, queue and number of flows. Unknown ports are left out."""
        return [series for name in port if (series := watch.series(name, after)) is not None]

    @app.get("/metrics", include_in_schema=False)
    def metrics() -> Response:
        """Metrics for Prometheus."""
        return Response(prometheus.page(runtime, watch), headers={"Content-Type": prometheus.CONTENT_TYPE})


class _States:
    """The state as text. All clients get the same text, which is computed at most once per interval."""

    def __init__(self, runtime: Runtime, watch: Watch) -> None:
        self._runtime, self._watch = runtime, watch
        self._lock = threading.Lock()
        self._made: dict[int | None, tuple[float, str]] = {}

    def text(self, flows_max: int | None) -> str:
        """The state as JSON."""
        with self._lock:
            made_s, text = self._made.get(flows_max, (0.0, ""))
            if not text or time.monotonic() - made_s >= LIVE_S / 2:
                text = _state(self._runtime, self._watch, flows_max).model_dump_json(by_alias=True)
                self._made[flows_max] = (time.monotonic(), text)
            return text


def _add_live(app: FastAPI, runtime: Runtime, watch: Watch) -> None:
    states = _States(runtime, watch)

    @app.get(
        "/api/v1/live",
        tags=["all"],
        response_class=StreamingResponse,
        responses={
            200: {
                "description": "Server-sent events: `state` each second, `events` as they happen.",
                "content": {"text/event-stream": {"schema": {"type": "string"}}},
            }
        },
    )
    async def live(
        request: Request,
        flows: Annotated[bool, Query(description="Whether a state contains the flows.")] = True,
    ) -> StreamingResponse:
        """The state each second, and events as they happen."""

        async def stream() -> AsyncIterator[str]:
            last = 0
            while not await request.is_disconnected():
                text = await asyncio.to_thread(states.text, None if flows else 0)
                yield f"event: state\ndata: {text}\n\n"
                news = runtime.events(last)
                if news:
                    last = news[-1].id
                    text = json.dumps([event.model_dump() for event in news])
                    yield f"event: events\ndata: {text}\n\n"
                await asyncio.sleep(LIVE_S)

        return StreamingResponse(stream(), media_type="text/event-stream")


def _add_page(app: FastAPI) -> None:
    folder = resources.files("narrows.controller") / "page"
    files = {
        "/": ("index.html", "text/html"),
        "/page.css": ("page.css", "text/css"),
        "/page.js": ("page.js", "text/javascript"),
        "/format.js": ("format.js", "text/javascript"),
        "/drawing.js": ("drawing.js", "text/javascript"),
        "/charts.js": ("charts.js", "text/javascript"),
        "/flows.js": ("flows.js", "text/javascript"),
        "/events.js": ("events.js", "text/javascript"),
        "/uplot.js": ("vendor/uplot/uPlot.iife.min.js", "text/javascript"),
        "/uplot.css": ("vendor/uplot/uPlot.min.css", "text/css"),
    }
    for path, (name, media_type) in files.items():
        text = folder.joinpath(*name.split("/")).read_text(encoding="utf-8")

        def serve(text: str = text, media_type: str = media_type) -> Response:
            return HTMLResponse(text) if media_type == "text/html" else Response(text, media_type=media_type)

        app.add_api_route(
            path,
            lambda serve=serve: serve(),
            include_in_schema=False,
            response_class=Response,
            response_model=None,
        )
