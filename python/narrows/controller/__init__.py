"""The SDN controller: topology, shortest-path forwarding, congestion signals to the switches' agents.

`domain` and its parts make the decisions. They are pure and return messages. `openflow`, `channel` and `http`
only do input and output. All decisions are made in one thread (`runtime`). The detector is the simulator's
Rust code.
"""
