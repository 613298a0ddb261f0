//! Congestion control, decided: pure state machines and nothing else.
//!
//! * [`congestion`]: controllers at the sender (Reno, CUBIC, BBR, ...).
//! * [`rate`]: controllers in the network, at a switch's port (BRF, ...).
//! * [`feedback`]: how a rate travels in sixteen bits of a TCP option.
//! * [`units`]: time, rates and bytes as types.
//!
//! No clock, no socket, no allocation per packet, no randomness but a seed that is handed in. The same code
//! runs in the simulator and on a real switch.

#![forbid(unsafe_code)]

pub mod congestion;
pub mod feedback;
pub mod rate;
pub mod units;
