"""The work of `narrows play`."""

from __future__ import annotations

import sys
import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from narrows import playground
from narrows.cli.commands.shared import INTERRUPTED
from narrows.errors import NarrowsError

SCENARIO = "/scenario"
"""Path at which the server redirects to the page with the scenario. The page's full address can be too long
to copy."""


def play(scenario: Path | None, port: int | None, *, browser: bool) -> None:
    """Open the playground with a scenario. The page comes from its file or, with `port`, from a server."""
    fragment = "" if scenario is None else playground.fragment(playground.checked(scenario))
    page = playground.page()
    if port is not None:
        _serve(page, port, fragment, browser=browser)
        return
    file = playground.write_redirect(page.as_uri() + fragment) if fragment else page
    if browser and webbrowser.open(file.as_uri()):
        print(f"opened {file}")
    elif browser:
        print(f"found no browser; open this file: {file}")
    else:
        print(file)


class _Server(ThreadingHTTPServer):
    """Prints nothing if a browser closes a connection early."""

    def handle_error(self, request: Any, client_address: Any) -> None:
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


def _serve(page: Path, port: int, fragment: str, *, browser: bool) -> None:
    pages = {"/": page.read_bytes()}
    if fragment:
        pages[SCENARIO] = playground.redirect(f"/{fragment}").encode()

    class Handler(BaseHTTPRequestHandler):
        """Answers requests for the page, and for the page with the scenario."""

        def do_GET(self) -> None:
            content = pages.get(self.path.partition("?")[0])
            if content is None:
                self.send_error(404)
                return
            self.send_response(200)
            self.send_header("Content-Type", "text/html; charset=utf-8")
            self.send_header("Content-Length", str(len(content)))
            self.end_headers()
            self.wfile.write(content)

        def log_message(self, *_: object) -> None:
            """Print nothing."""

    try:
        server = _Server(("127.0.0.1", port), Handler)
    except OSError as error:
        raise NarrowsError(f"--port: found {port}, expected a free port ({error.strerror})") from None
    with server:
        address = f"http://127.0.0.1:{server.server_address[1]}{SCENARIO if fragment else '/'}"
        print(f"{address}\nCtrl-C ends the server", flush=True)
        if browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
