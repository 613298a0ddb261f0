"""Keys of the agents' channel, in files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from narrows.controller import tls


def by_openssl(folder):
    """Makes a key and a CA certificate with OpenSSL, because narrows-agent cannot make CA certificates."""

    def make(name):
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "ec",
            "-pkeyopt",
            "ec_paramgen_curve:P-256",
            "-nodes",
        ]
        command += ["-days", "36500", "-subj", f"/CN={name}", "-keyout", f"{name}.key", "-out", f"{name}.crt"]
        subprocess.run(command, cwd=folder, check=True, capture_output=True, timeout=60)
        Path(folder, f"{name}.key").chmod(0o600)

    return make


class Keys:
    """Keys and certificates of a controller and its agents, in the files NAME.key and NAME.crt."""

    def __init__(self, folder, agents, make=None, controllers=("controller",)):
        self.folder, self.agents, self.controllers = Path(folder), agents, controllers
        make = make or by_openssl(folder)
        for name in (*controllers, *agents):
            make(name)
        self.join("agents", agents)
        self.join("controllers", controllers)

    def join(self, name, names):
        text = "".join((self.folder / f"{one}.crt").read_text() for one in names)
        (self.folder / f"{name}.trusted").write_text(text)

    def of_agent(self, name):
        return tls.Keys(
            self.folder / f"{name}.key", self.folder / f"{name}.crt", self.folder / "controllers.trusted"
        )

    def of_controller(self, name=None):
        return self.of_agent(name or self.controllers[0])._replace(trusted=self.folder / "agents.trusted")

    def of(self, name):
        """The lines of the table [controller] with the key files of an agent."""
        key, certificate, trusted = self.of_agent(name)
        return f'name = "{name}"\nkey = "{key}"\ncertificate = "{certificate}"\ntrusted = "{trusted}"\n'

    def options(self, name=None):
        return [
            word
            for option, path in self.of_controller(name)._asdict().items()
            for word in (f"--agents-{option}", str(path))
        ]
