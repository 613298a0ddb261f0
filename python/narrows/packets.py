"""The size of a full packet, as Linux sends it with Ethernet's MTU and TCP's timestamp option."""

from __future__ import annotations

MSS = 1448
"""Payload of a full packet, in bytes."""
HEADERS = 52
"""L3 bytes beyond the payload: 20 of IPv4, 20 of TCP, and 12 of the timestamp option."""
FULL_PACKET = MSS + HEADERS
"""L3 bytes of a full packet."""
ETHERNET = 14
"""Bytes of the Ethernet header, which precedes the IP header in a frame."""
PAYLOAD = MSS / FULL_PACKET
"""Payload of a full packet, divided by its L3 bytes."""
INITIAL_WINDOW = 10
"""Initial congestion window of a TCP connection on current stacks, in packets (RFC 6928)."""
