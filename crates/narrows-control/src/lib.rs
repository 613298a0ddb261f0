#![doc = include_str!("../README.md")]
//! ## Modules
//!
//! * [`catalogue`]: names, parameters and figure styles of the controllers at senders.
//! * [`congestion`]: controllers at the sender (Reno, CUBIC, BBR, ...).
//! * [`parameter`]: parameters of algorithms, with unit, range, default, meaning and source.
//! * [`rate`]: controllers in the network, at the port of a switch (BRF, RCP, XCP, ...).
//! * [`feedback`]: the encoding of a rate in a TCP option, and congestion headers.
//! * [`units`]: time, rates and bytes as types.
//!
//! Comments cite rules and worked values by id (`BBR-16`, `BRF-60`, `TV-B1`). The folder `docs/reference/rules` of the
//! repository defines these ids.

#![forbid(unsafe_code)]
#![warn(missing_docs)]

pub mod catalogue;
pub mod congestion;
pub mod feedback;
pub mod parameter;
pub mod rate;
pub mod units;
