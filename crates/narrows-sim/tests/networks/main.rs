//! Tests of whole networks: laws, properties and snapshots. All modules form one test program, so the simulator is
//! linked only once. The tests of different modules can also run at the same time.
#![allow(missing_docs, unreachable_pub)]

mod bbr;
mod behaviour;
mod brf_common;
mod brf_congestion;
mod brf_crowd;
mod brf_paths;
mod brf_return;
mod brf_sharing;
mod catalogue;
mod common;
mod custom_headers;
mod explicit;
mod laws;
mod max_min;
mod pacec;
mod queues;
mod rtt_fairness;
mod runs;
mod signalling;
mod spread;
mod stamped;
mod triggers;
