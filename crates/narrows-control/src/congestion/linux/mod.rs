//! Linux's window-based controllers (`tcp_cong.c`). These controllers set a window and leave recovery to the transport
//! (PRR).
//!
//! | module | idea |
//! | --- | --- |
//! | [`reno`] | adds a segment per round trip, halves on congestion |
//! | [`cubic`] | a cubic function of the time since the last congestion |
//! | [`bic`] | a binary search for the window of the last congestion |
//! | [`highspeed`] | Reno with a table that gives the increase and the decrease for each window |
//! | [`htcp`] | grows faster with time since congestion; the depth of the queue sets the decrease |
//! | [`hybla`] | increases the rate on a long path as fast as Reno on a path of 25 ms |
//! | [`scalable`] | adds 1 % of the ACKed segments, removes an eighth on congestion |
//! | [`dctcp`] | backs off in proportion to the share of marks |
//! | [`vegas`] | keeps two to four packets in the queue |
//! | [`veno`] | Reno, but a loss removes only a fifth of the window if the queue was short |
//! | [`westwood`] | sets the window after congestion from the measured bandwidth |
//! | [`yeah`] | Scalable while the queue is short, otherwise Reno |
//! | [`illinois`] | backs off on losses; the queueing delay sets the speed of growth and the size of the decrease |
//! | [`lp`] | yields when the one-way delay rises; needs synchronised clocks |
//! | [`slow_start`] | shared parts: slow start, additive increase |
//! | [`rounds`] | the minimum RTT of each round trip, for Vegas, Veno and YeAH |
//! | [`hystart`] | the end of CUBIC's slow start |
//! | [`hystartpp`] | RFC 9406's slow start for CUBIC and Reno |

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
