//! The family of Linux's `tcp_cong.c`: controllers of a window that leave recovery to the transport (PRR).
//!
//! | module | idea |
//! | --- | --- |
//! | [`reno`] | a segment per round trip, half on congestion |
//! | [`cubic`] | a cube of the time since the last congestion |
//! | [`dctcp`] | less in proportion to the share of marks |
//! | [`vegas`] | two to four packets in the queue |
//! | [`slow_start`] | what they share: slow start, additive increase |
//! | [`rounds`] | RTTs per round trip, of Vegas and its kin |
//! | [`hystart`] | when CUBIC leaves slow start |

pub mod cubic;
pub mod dctcp;
pub mod hystart;
pub mod reno;
pub mod rounds;
pub mod slow_start;
pub mod vegas;
