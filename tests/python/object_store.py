"""An S3 server that keeps its objects when it is killed: moto's server with a journal.

    python tests/python/object_store.py PORT JOURNAL [DIE_AT]

moto keeps objects in memory. This server appends each changing request to JOURNAL before the request runs,
and repeats the requests of JOURNAL when it starts. With DIE_AT, it kills itself during the DIE_AT-th upload
of a Parquet file.
"""

from __future__ import annotations

import base64
import io
import json
import os
import socket
import subprocess
import sys
import threading
import time
import urllib.request
from pathlib import Path

BUCKET = "sweeps"
START_SECONDS = 60


def _journaled(app, journal, die_at):
    lock = threading.Lock()
    written = 0

    def answer(environ, start_response):
        nonlocal written
        if environ["REQUEST_METHOD"] in ("PUT", "POST", "DELETE"):
            entry = _entry(environ)
            with lock:
                if environ["REQUEST_METHOD"] == "PUT" and ".parquet" in entry["path"]:
                    written += 1
                    if written == die_at:
                        os._exit(1)
                with journal.open("a") as file:
                    file.write(json.dumps(entry) + "\n")
        return app(environ, start_response)

    return answer


def _entry(environ):
    """Makes the journal's entry of a request. The server can still read the request's body."""
    body = environ["wsgi.input"].read(int(environ.get("CONTENT_LENGTH") or 0))
    environ["wsgi.input"] = io.BytesIO(body)
    headers = {
        key.removeprefix("HTTP_").replace("_", "-"): value
        for key, value in environ.items()
        if key.startswith("HTTP_") or key == "CONTENT_TYPE"
    }
    return {
        "method": environ["REQUEST_METHOD"],
        "path": environ["RAW_URI"],
        "headers": headers,
        "body": base64.b64encode(body).decode(),
    }


def _replay(app, journal):
    from werkzeug.test import Client

    client = Client(app)
    for line in journal.read_text().splitlines() if journal.exists() else ():
        try:
            entry = json.loads(line)
        except ValueError:
            continue  # the server was killed while it wrote this line
        client.open(
            entry["path"],
            method=entry["method"],
            headers=entry["headers"],
            data=base64.b64decode(entry["body"]),
        )


def serve(port, journal, die_at=0):
    from moto.server import DomainDispatcherApplication, create_backend_app
    from werkzeug.serving import make_server
    from werkzeug.test import Client

    app = DomainDispatcherApplication(create_backend_app)
    Client(app).put(f"/{BUCKET}")
    _replay(app, journal)
    make_server("127.0.0.1", port, _journaled(app, journal, die_at), threaded=True).serve_forever()


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


class Server:
    def __init__(self, port, journal):
        self.port, self.journal = port, journal
        self.address = f"http://127.0.0.1:{port}"
        self.starts = 0
        self._process = None

    def start(self, die_at=0):
        self.starts += 1
        command = [sys.executable, __file__, str(self.port), str(self.journal), str(die_at)]
        self._process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        for _ in range(START_SECONDS * 20):
            try:
                urllib.request.urlopen(f"{self.address}/", timeout=START_SECONDS).close()
                return
            except OSError as error:
                if getattr(error, "code", None) is not None:
                    return  # an HTTP error shows that the server answers
            if self._process.poll() is not None:
                raise RuntimeError("the S3 server has ended")
            time.sleep(0.05)
        raise RuntimeError("the S3 server does not answer")

    def wait(self):
        """Wait until the server has killed itself."""
        self._process.wait()

    def kill(self):
        """Kill the server. The journal keeps its objects."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()


if __name__ == "__main__":
    serve(int(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]))
