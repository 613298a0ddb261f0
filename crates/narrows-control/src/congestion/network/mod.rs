//! Senders controlled by the network: its routers, switches or central controller set the rate.
//!
//! | module | idea |
//! | --- | --- |
//! | [`brf`] | senders of BRF and PACEC: the rate comes from ACKs; CUBIC takes over if there is no rate |
//! | [`stamped`] | senders of RCP and OBP: as [`brf`], but the rate comes from a header of each packet |
//! | [`xcp`] | the network changes the window with each packet |
//! | [`bdr`] | the sender requests a share of the bottleneck once per window |

pub mod bdr;
pub mod brf;
pub mod stamped;
pub mod xcp;
