"""The OpenFlow controller: topology, shortest-path forwarding, congestion signals to the switches' agents.

What decides is pure and returns messages (`domain` and what it is made of); what acts is thin (`openflow`,
`channel`, `http`), and `runtime` is the one thread in which all decisions are made. The detector is the
simulator's own, in Rust.
"""
