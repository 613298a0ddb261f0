//! The family of Linux's `tcp_cong.c`: controllers of a window that leave recovery to the transport (PRR).
//!
//! | module | idea |
//! | --- | --- |
//! | [`reno`] | a segment per round trip, half on congestion |
//! | [`cubic`] | a cube of the time since the last congestion |
//! | [`bic`] | a binary search for the window of the last congestion |
//! | [`highspeed`] | Reno with a table of increases and decreases by window |
//! | [`htcp`] | the longer since congestion, the faster; backs off as the queue is deep |
//! | [`hybla`] | a long path grows as one of 25 ms would |
//! | [`scalable`] | a hundredth of a segment per ACKed segment, an eighth off on congestion |
//! | [`dctcp`] | less in proportion to the share of marks |
//! | [`vegas`] | two to four packets in the queue |
//! | [`veno`] | Reno that gives up a fifth when the queue was short |
//! | [`westwood`] | after congestion, the window that the path carried of late |
//! | [`yeah`] | Scalable while the queue is short, Reno while it is not |
//! | [`illinois`] | growth and decrease by the delay, at losses |
//! | [`lp`] | gives way to a rising one-way delay, where clocks let it |
//! | [`slow_start`] | what they share: slow start, additive increase |
//! | [`rounds`] | RTTs per round trip, of Vegas and its kin |
//! | [`hystart`] | when CUBIC leaves slow start |
//! | [`hystartpp`] | another slow start, of CUBIC and Reno, by RFC 9406 |

pub mod bic;
pub mod cubic;
pub mod dctcp;
pub mod highspeed;
pub mod htcp;
pub mod hybla;
pub mod hystart;
pub mod hystartpp;
pub mod illinois;
pub mod lp;
pub mod reno;
pub mod rounds;
pub mod scalable;
pub mod slow_start;
pub mod vegas;
pub mod veno;
pub mod westwood;
pub mod yeah;
