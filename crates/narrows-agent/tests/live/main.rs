//! Tests of the whole system and its failure modes, with the real binary, namespaces, veth, a path of 20 ms and plain
//! programs. The tests need root, and are skipped without it. With NARROWS_REQUIRE_KERNEL=1, they fail instead.
//!
//! All tests print the numbers that they check. At most two tests run at a time. A test that needs the whole machine
//! runs alone.

mod agent;
mod beside;
mod churn;
mod controller;
mod crowd;
mod cut;
mod designated;
mod flood;
mod flow;
mod forged;
mod frames;
mod fuzz;
mod kill;
mod messages;
mod metrics;
mod namespaces;
mod net;
mod orphan;
mod path;
mod pinned;
mod rates;
mod reload;
mod restart;
mod share;
mod trunk;
mod udp;
mod vanish;
