//! Packet-level network simulator.
