"""The SDN controller: topology, shortest-path forwarding, congestion signals to the switches' agents.

The decisions are pure and return messages (`domain` and its parts). The input and output is thin (`openflow`,
`channel`, `http`). All decisions are made in one thread, `runtime`. The detector is the simulator's, in Rust.
"""
