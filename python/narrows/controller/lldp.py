"""Makes and checks authenticated LLDP frames. A frame contains the switch and the port that sent it.

The frames are IEEE 802.1AB frames with a message authentication code in an organisationally specific TLV.
Only this process has the key, so a host cannot forge a link. A host can still relay a frame from one port to
another. As a result, the two ports look as if a cable connected them.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Sequence

from os_ken.lib import addrconv
from os_ken.lib.packet import lldp

from narrows.controller.messages import PortKey

DESTINATION = "01:80:c2:00:00:0e"
"""The address "nearest bridge", which no bridge forwards (IEEE 802.1AB, table 7-1)."""
ETHERTYPE = 0x88CC
_OUI = b"\x02\x4e\x52"
"""A locally administered identifier. The authentication code proves the origin."""
_TTL_S = 120
_MAC_BYTES = 16

_KEY = os.urandom(32)


def frame(port: PortKey, source: str) -> bytes:
    """The frame to send through `port`, whose MAC address is `source`."""
    dpid, number = port
    chassis = lldp.ChassisID(subtype=lldp.ChassisID.SUB_LOCALLY_ASSIGNED, chassis_id=b"dpid:%016x" % dpid)
    port_id = lldp.PortID(subtype=lldp.PortID.SUB_PORT_COMPONENT, port_id=number.to_bytes(4, "big"))
    ours = lldp.OrganizationallySpecific(oui=_OUI, subtype=1, info=_mac(port))
    tlvs = (chassis, port_id, lldp.TTL(ttl=_TTL_S), ours, lldp.End())
    body = lldp.lldp(tlvs).serialize(bytearray(), None)
    addresses = addrconv.mac.text_to_bin(DESTINATION) + addrconv.mac.text_to_bin(source)
    return bytes(addresses + ETHERTYPE.to_bytes(2, "big") + body)


def origin(tlvs: Sequence[object]) -> PortKey | None:
    """The port through which this controller sent a frame (None: another sender)."""
    dpid = number = mac = None
    for tlv in tlvs:
        match tlv:
            case lldp.ChassisID(subtype=lldp.ChassisID.SUB_LOCALLY_ASSIGNED, chassis_id=name):
                try:
                    dpid = int(bytes(name).removeprefix(b"dpid:"), 16)
                except ValueError:
                    return None
            case lldp.PortID(subtype=lldp.PortID.SUB_PORT_COMPONENT, port_id=port) if len(port) == 4:
                number = int.from_bytes(port, "big")
            case lldp.OrganizationallySpecific(oui=oui, info=info) if oui == _OUI:
                mac = bytes(info)
    if dpid is None or number is None or mac is None or not 0 <= dpid < 1 << 64:
        return None
    return (dpid, number) if hmac.compare_digest(mac, _mac((dpid, number))) else None


def _mac(port: PortKey) -> bytes:
    message = port[0].to_bytes(8, "big") + port[1].to_bytes(4, "big")
    return hmac.digest(_KEY, message, hashlib.sha256)[:_MAC_BYTES]
