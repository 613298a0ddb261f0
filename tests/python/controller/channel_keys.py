"""Keys of the agents' channel, in files."""

from __future__ import annotations

import subprocess
from pathlib import Path

from narrows.controller import tls


def by_openssl(folder):
    """Makes a key and a certificate with OpenSSL. This certificate is that of an authority. The certificates
    that the agent makes are not.
    """

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
    """Keys of a controller and of agents that trust each other.

    `make` writes NAME.key and NAME.crt into the folder.
    """

    def __init__(self, folder, agents, make=None, controllers=("controller",)):
        self.folder, self.agents, self.controllers = Path(folder), agents, controllers
        make = make or by_openssl(folder)
        for name in (*controllers, *agents):
            make(name)
        self.join("agents", agents)
        self.join("controllers", controllers)

    def join(self, name, names):
        """Writes the certificates of these names into one file."""
        text = "".join((self.folder / f"{one}.crt").read_text() for one in names)
        (self.folder / f"{name}.trusted").write_text(text)

    def of_agent(self, name):
        """The files of an agent: key, certificate, and trusted certificates."""
        return tls.Keys(
            self.folder / f"{name}.key", self.folder / f"{name}.crt", self.folder / "controllers.trusted"
        )

    def of_controller(self, name=None):
        """The files of a controller."""
        return self.of_agent(name or self.controllers[0])._replace(trusted=self.folder / "agents.trusted")

    def of(self, name):
        """Lines of an agent's table [controller]."""
        key, certificate, trusted = self.of_agent(name)
        return f'name = "{name}"\nkey = "{key}"\ncertificate = "{certificate}"\ntrusted = "{trusted}"\n'

    def options(self, name=None):
        """Options of `narrows controller`."""
        return [
            word
            for option, path in self.of_controller(name)._asdict().items()
            for word in (f"--agents-{option}", str(path))
        ]
