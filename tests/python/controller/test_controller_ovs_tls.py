"""Real Open vSwitch with TLS, with the keys and commands of the documentation."""

from __future__ import annotations

import shutil

import ovs_lab as laboratory
import pytest
from ovs_lab import Lab, Shape, run, wait

PAIR = Shape((("s1", "s2"),), {"h1": "s1", "h2": "s2"})


@pytest.fixture(scope="module")
def lab(tmp_path_factory):
    laboratory.require()
    if shutil.which("ovs-pki") is None:
        pytest.skip("ovs-pki missing: OpenFlow by TLS was NOT tried with Open vSwitch")
    folder = tmp_path_factory.mktemp("tls")

    def pki(*command):
        # ovs-pki writes into the working directory.
        quoted = " ".join(("ovs-pki", f"--dir={folder}/pki", f"--log={folder}/log", *command))
        run("sh", "-c", f"cd {folder} && {quoted}")

    pki("init")
    pki("req+sign", "controller", "controller")
    pki("req+sign", "switch", "switch")
    switch = (folder / "switch-privkey.pem", folder / "switch-cert.pem")
    lab = Lab(folder, PAIR, tag="nrwt", ssl=(*switch, folder / "pki/controllerca/cacert.pem"))
    lab.start_controller(
        "--openflow-key", str(folder / "controller-privkey.pem"),
        "--openflow-certificate", str(folder / "controller-cert.pem"),
        "--openflow-ca", str(folder / "pki/switchca/cacert.pem"),
    )  # fmt: skip
    yield lab
    lab.close()


def test_switches_connect_and_forward(lab):
    wait(lambda: len(lab.get("topology")["links"]) == 1, "the link")
    wait(lambda: lab.ping(1) == 1, "a first answer")
    assert lab.ping() == 5
    log = (lab.folder / "controller.log").read_text()
    assert "ERROR" not in log and "Traceback" not in log and "WARNING narrows.controller.openflow" not in log


def test_a_switch_without_tls_or_with_another_authority_is_refused(lab):
    lab.vsctl("set-controller", "s2", f"tcp:127.0.0.1:{laboratory.OPENFLOW}")
    wait(lambda: len(lab.get("switches")) == 1, "the switch to disconnect")
    wait(lambda: "disconnected" in (lab.folder / "controller.log").read_text(), "the refusal")
    assert len(lab.get("switches")) == 1
    # The switch presents a certificate of an authority that the controller does not trust.
    folder = lab.folder
    run("sh", "-c", f"cd {folder} && ovs-pki --dir={folder}/pki --log={folder}/log req+sign alien controller")
    alien = (folder / "alien-privkey.pem", folder / "alien-cert.pem")
    lab.vsctl("set-ssl", *map(str, alien), str(folder / "pki/controllerca/cacert.pem"))
    lab.vsctl("set-controller", "s2", lab.remotes[0])
    wait(lambda: "certificate verify failed" in (folder / "controller.log").read_text(), "the refusal")
    assert not any(switch["id"].endswith("2") for switch in lab.get("switches"))
    lab.vsctl("set-ssl", *map(str, lab.ssl))
    wait(lambda: len(lab.get("switches")) == 2, "the switches to connect again")
