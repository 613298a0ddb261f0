"""Fuzzes the parser of frames of hosts, which switches copy to the controller."""

from narrows.controller import lldp
from narrows.controller.messages import FrameSeen, LldpSeen
from narrows.controller.openflow import read_frame

lldp._KEY = bytes(32)  # so that the corpus can contain links


def run(data):
    assert isinstance(read_frame(1, 2, data), FrameSeen | LldpSeen | None)
