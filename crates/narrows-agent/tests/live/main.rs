//! The whole at work: the real binary, namespaces, veth, a path of 20 ms, plain programs, and everything that may go wrong
//! with them. As root; else skipped, or failed with NARROWS_REQUIRE_KERNEL=1.
//!
//! All tests print the figures that they judge. They run one at a time: each takes a core or two.

mod agent;
mod beside;
mod churn;
mod controller;
mod cut;
mod flood;
mod flow;
mod frames;
mod fuzz;
mod kill;
mod net;
mod path;
mod pinned;
mod share;
