//! Senders controlled by the network: its routers, switches or central controller set the rate.
//!
//! | module | idea |
//! | --- | --- |
//! | [`brf`] | a rate from ACKs, or CUBIC without one: senders of BRF and PACEC |
//! | [`stamped`] | the same with the rate in a header of each packet: RCP and OBP |
//! | [`xcp`] | a change of the window for each packet |
//! | [`bdr`] | a share, requested once per window |

pub mod bdr;
pub mod brf;
pub mod stamped;
pub mod xcp;
