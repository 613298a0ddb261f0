//! Tests of the whole system: the real binary, namespaces, veth, a path of 20 ms, plain programs, and their failure
//! modes. The tests need root. Without root they are skipped. With NARROWS_REQUIRE_KERNEL=1, they fail instead.
//!
//! All tests print the figures that they judge. Two tests run at a time. Tests that need both cores run alone.

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
