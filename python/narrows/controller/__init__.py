"""The SDN controller discovers the topology, forwards on shortest paths, and signals congestion to agents.

`domain` and its parts make the decisions. These modules have no side effects, but return messages.
`openflow`, `channel` and `http` only do input and output. All decisions are made in one thread (`runtime`).
The congestion detector is the simulator's Rust code.
"""
