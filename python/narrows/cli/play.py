"""The work of `narrows play`."""

from __future__ import annotations

import webbrowser
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from narrows import playground
from narrows.cli.commands.shared import INTERRUPTED
from narrows.errors import NarrowsError


def play(scenario: Path | None, port: int | None, *, browser: bool) -> None:
    """Open the playground with a scenario, from its file or from a server."""
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


def _serve(page: Path, port: int, fragment: str, *, browser: bool) -> None:
    content = page.read_bytes()

    class Handler(BaseHTTPRequestHandler):
        """Answers every request for the root with the page."""

        def do_GET(self) -> None:
            if self.path.partition("?")[0] != "/":
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
        server = ThreadingHTTPServer(("127.0.0.1", port), Handler)
    except OSError as error:
        raise NarrowsError(f"--port: found {port}, expected a free port ({error.strerror})") from None
    with server:
        address = f"http://127.0.0.1:{server.server_address[1]}/{fragment}"
        print(f"{address}\nCtrl-C ends the server", flush=True)
        if browser:
            webbrowser.open(address)
        try:
            server.serve_forever()
        except KeyboardInterrupt:
            raise SystemExit(INTERRUPTED) from None
